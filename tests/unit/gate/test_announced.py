"""Who comes to a gate on the machine's own loopback: only whose socket was announced, and each once."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import pytest

from tests.unit.gate.kit import Serving, policy_of
from tidegate.gate.announced import HERE, MOST, TRIED, Announced
from tidegate.gate.marks import Marks
from tidegate.model.reason import Reason

SO_COOKIE = 57  # asm-generic/socket.h


def cookie_of(wire: socket.socket) -> bytes:
    """The number that the kernel gave a socket for good."""
    return wire.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8)


class Guarded:
    """A gate whose one listener lets in who is announced."""

    def __init__(self) -> None:
        self.strangers: list[Any] = []
        self.serving = Serving(policy_of(), stranger=lambda one, count: self.strangers.append((one, count)))
        self.watcher, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.announced: Announced = self.serving.on_thread(lambda: self._guard(theirs.detach()))

    def _guard(self, fd: int) -> Announced:
        serving = self.serving
        announced = Announced(serving.gate, fd, serving.task, serving.address[1])
        serving.gate.guard(serving.listener, announced.knows, frozenset())
        return announced

    def visit(self, *, announce: bool, wire: socket.socket | None = None) -> bytes:
        """Connect, and return what the gate answers to a request."""
        with wire or socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            if announce:
                self.watcher.send(HERE + cookie_of(client))
            client.settimeout(10)
            client.connect(self.serving.address)
            try:
                client.sendall(b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n")
                return client.recv(99)
            except ConnectionError:
                return b""

    def close(self) -> None:
        """End it."""
        self.watcher.close()
        self.serving.on_thread(self.announced.close)
        self.serving.stop()


@pytest.fixture
def guarded() -> Any:
    """Such a gate."""
    made = Guarded()
    yield made
    made.close()


def test_who_was_announced_comes_in_and_nobody_else(guarded: Guarded) -> None:
    """Another process of the same user is turned away unread and told of; the task's own is answered (GAT-2, HLD-2)."""
    assert guarded.visit(announce=True).startswith(b"HTTP/1.1 403")
    assert guarded.visit(announce=False) == b""
    assert guarded.visit(announce=True).startswith(b"HTTP/1.1 403")
    (stranger, count), *_ = guarded.strangers
    assert (stranger.reason, stranger.uid, count) == (Reason.FOREIGN_PEER, os.geteuid(), 1)
    assert not guarded.serving.faults


def test_a_number_is_good_for_one_socket_and_one_connection(guarded: Guarded) -> None:
    """What was announced for one socket does not let in another one, whatever port that has (GAT-2)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as announced:
        announced.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        announced.bind(("127.0.0.1", 0))
        guarded.watcher.send(HERE + cookie_of(announced))
        thief = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        thief.bind(announced.getsockname())
        assert guarded.visit(announce=False, wire=thief) == b""
        assert guarded.visit(announce=False, wire=announced).startswith(b"HTTP/1.1 403")


def test_many_announced_and_many_strangers_at_once(guarded: Guarded) -> None:
    """The race: strangers between the announcement and the connection change nothing (GAT-2)."""
    for _ in range(50):
        own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        guarded.watcher.send(HERE + cookie_of(own))
        assert guarded.visit(announce=False) == b""
        assert guarded.visit(announce=False, wire=own).startswith(b"HTTP/1.1 403")


def test_the_port_is_marked_and_tries_are_recorded(guarded: Guarded) -> None:
    """No rule leads to it while it is served (ADR-1); what went past the gate is in the journal (JRN-3, B101)."""
    port = guarded.serving.address[1]
    others = Marks()
    assert port in others
    for _ in range(3):
        guarded.watcher.send(TRIED + (443).to_bytes(2, "big") + bytes((1, 2, 3, 4)))
    guarded.watcher.send(TRIED + b"x")
    event = guarded.serving.event()
    assert (event.reason, event.host, event.port, event.count) == (Reason.AROUND_GATE, "1.2.3.4", 443, 1)
    guarded.serving.on_thread(guarded.announced.close)
    assert port not in others
    others.close()
    rest = [one for one in guarded.serving.recording.events if one.reason is Reason.AROUND_GATE]
    assert sum(one.count for one in rest) == 3


def test_without_a_watcher_nobody_comes_in(guarded: Guarded) -> None:
    """When the watcher is gone, whoever was not announced before stays outside (HLD-7)."""
    guarded.watcher.close()
    time.sleep(0.05)
    assert guarded.visit(announce=False) == b""


def test_numbers_are_bounded(guarded: Guarded) -> None:
    """A watcher that announces for ever costs the gate no memory: the newest count."""
    for number in range(MOST + 10):
        guarded.watcher.send(HERE + number.to_bytes(8, "little"))
    guarded.serving.on_thread(lambda: None)
    assert guarded.visit(announce=True).startswith(b"HTTP/1.1 403")
    assert len(guarded.announced._numbers) <= MOST
