"""tidegate.runtime.tool_holds: a real gate, and a tool's sockets that are the test's."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING

import pytest

from tests.lab.api import raw
from tests.served import until
from tests.unit.gate.kit import Serving, policy_of
from tidegate.gate.tool_door import ToolDoor
from tidegate.holds.inside import PROXY
from tidegate.model.reason import Reason
from tidegate.runtime.tool_holds import BEGIN, SERVED, hold_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"


class Held:
    """A gate, its task, and one tool that is held to the task's hosts."""

    def __init__(self) -> None:
        self.gate = Serving(policy_of("a.test:80"))
        ours, self.keeper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door: ToolDoor = self.gate.on_thread(lambda: ToolDoor(self.gate.gate, ours.detach(), self.gate.task))
        self.control, theirs = socket.socketpair()
        self.control.settimeout(30)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        task, fds = self.gate.task, [theirs.detach(), listener.detach()]
        self.gate.on_thread(lambda: hold_tool(self.gate.gate, task, self.door, (), (PROXY,), fds))

    def begin(self) -> None:
        """Say that the self-test is over."""
        self.control.send(BEGIN + b"%f" % time.time())  # noqa: TID251


@pytest.fixture
def held(lab: Lab) -> Iterator[Held]:
    """One of them, whose host answers with a redirect at /."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    made = Held()
    assert made.control.recv(1) == SERVED
    yield made
    made.gate.stop()
    made.control.close()
    made.keeper.close()


def test_it_is_a_command_of_the_task_that_follows_nothing(held: Held, lab: Lab) -> None:
    """SRV-6: the task's hosts pass, others do not; a redirect is 403 for it alone; all is on the task's record."""
    lab.origin("http", "1.2.3.4", 80, status="302 Found", headers=["Location: http://a.test/x"])
    held.begin()
    answer = raw(held.address, GET)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"redirect-refused" in answer
    assert raw(held.gate.address, GET).startswith(b"HTTP/1.1 302 ")
    assert raw(held.address, GET.replace(b"a.test", b"b.test")).startswith(b"HTTP/1.1 403 ")
    events = held.gate.events(3)
    assert [(one.task, one.host, one.reason) for one in events] == [
        ("t1", "a.test", Reason.REDIRECT_REFUSED),
        ("t1", "a.test", Reason.ALLOWED),
        ("t1", "b.test", Reason.NO_RULE),
    ]


def test_what_changes_the_task_changes_it(held: Held, lab: Lab) -> None:
    """SRV-6, POL-8: another policy, a pause and a cut."""
    lab.origin("http", "1.2.3.4", 80)
    held.begin()
    assert raw(held.address, GET).startswith(b"HTTP/1.1 200 ")
    task, gate = held.gate.task, held.gate
    gate.on_thread(lambda: task.pause(paused=True))
    assert raw(held.address, GET).startswith(b"HTTP/1.1 403 ")
    gate.on_thread(lambda: task.pause(paused=False))
    with socket.create_connection(held.address, timeout=30) as client:
        client.sendall(b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert gate.on_thread(lambda: gate.gate.cut(task, Reason.CUT)) == 1
        assert client.recv(100) == b""
    gate.on_thread(lambda: task.change(policy=policy_of(deny=("a.test",))))
    assert raw(held.address, GET).startswith(b"HTTP/1.1 403 ")


def test_what_came_before_it_began_is_nobodys(held: Held, lab: Lab) -> None:
    """SRV-6: the self-test of its hold is on no record; what came later is, also where its beginning is heard late."""
    lab.origin("http", "1.2.3.4", 80)
    raw(held.address, GET.replace(b"a.test", b"b.test"))
    at = time.time()  # noqa: TID251
    raw(held.address, GET)
    held.control.send(BEGIN + b"%f" % at)
    assert held.gate.event().host == "a.test"
    assert len(held.gate.recording.events) == 1


@pytest.mark.parametrize("how", ["its end", "nonsense", "the door"])
def test_it_ends_with_its_front_and_with_the_task(held: Held, how: str) -> None:
    """SRV-6: its listener and its connections go, and its front sees that; nothing of it stays with the task."""
    held.begin()
    with socket.create_connection(held.address, timeout=30) as client:
        client.sendall(b"GET http")
        until(lambda: held.gate.gate.connections)
        if how == "its end":
            held.control.shutdown(socket.SHUT_RDWR)
        elif how == "nonsense":
            held.control.send(b"begin never")
        else:
            held.gate.on_thread(held.door.close)
        with contextlib.suppress(ConnectionResetError):  # what it said may be unread
            assert client.recv(100) == b""
    until(lambda: not held.gate.task.helpers)
    assert not held.door.holds
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(held.address, timeout=30)


def test_what_cannot_be_served_is_told_so(held: Held) -> None:
    """SRV-6: sockets that are none: the control ends, and the program does not start."""
    ours, theirs = socket.socketpair()
    ours.settimeout(30)
    null = os.open(os.devnull, os.O_RDONLY)
    fds = [theirs.detach(), null]
    held.gate.on_thread(lambda: hold_tool(held.gate.gate, held.gate.task, held.door, (), (PROXY,), fds))
    with ours:
        assert ours.recv(1) == b""
    assert len(held.gate.task.helpers) == 1
