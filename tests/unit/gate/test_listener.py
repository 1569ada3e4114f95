"""Listeners: limits, descriptors running out, and whose connections they are."""

from __future__ import annotations

import resource
import socket
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import policy_of, read_exactly, read_head, small, wait
from tidegate.gate.connection import has_ended
from tidegate.gate.gate import GateTask
from tidegate.gate.listener import Listener
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

CONNECT = b"CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: 1.2.3.4:443\r\n\r\n"


def test_the_connection_beyond_the_limit_is_dropped_and_recorded(lab: Lab, serve: Serve) -> None:
    """GAT-6: 256 are served, the 257th is not; when one leaves the next is served again."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    socks = [gate.tunnel("1.2.3.4:443") for _ in range(256)]
    assert gate.raw(CONNECT) == b""
    assert gate.event().reason is Reason.TOO_MANY_CONNECTIONS
    assert gate.event().how is How.REFUSED
    socks.pop().close()
    wait(lambda: gate.gate.connections == 255)
    socks.append(gate.tunnel("1.2.3.4:443"))
    for sock in socks:
        sock.close()
    gate.idle()


def test_each_task_has_its_own_limit_and_policy(lab: Lab, serve: Serve) -> None:
    """GAT-2: who connects to a listener is its task; another's rules do not count, nor its connections."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443", limits=small(connections=1))
    other = GateTask("t2", policy_of(limits=small(connections=1)))
    address, _ = gate.on_thread(lambda: gate.listen(other))
    with gate.tunnel("1.2.3.4:443"), socket.create_connection(address, timeout=10) as sock:
        sock.sendall(CONNECT)
        assert read_exactly(sock, 12) == b"HTTP/1.1 403"
    assert gate.event().task == "t2"


def test_without_descriptors_the_listener_pauses_and_comes_back(lab: Lab, serve: Serve) -> None:
    """EMFILE: recorded, no spinning, and the clients that waited are served."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    gate.tunnel("1.2.3.4:443").close()
    gate.idle()
    socks = [socket.socket() for _ in range(3)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(sock.fileno() for sock in socks) + 1, hard))
        for sock in socks:
            sock.settimeout(10)
            sock.connect(gate.address)
            sock.sendall(CONNECT)
        wait(lambda: any(event.reason is Reason.OUT_OF_RESOURCES for event in gate.recording.events))
        before = time.process_time()
        time.sleep(0.4)
        assert time.process_time() - before < 0.3
        assert len(gate.recording.events) < 20
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for sock in socks:
        assert read_exactly(sock, 12) == b"HTTP/1.1 200"
        sock.close()
    gate.idle()


def test_what_is_no_listening_socket_is_refused(serve: Serve) -> None:
    """The descriptor stays the caller's."""
    gate = serve()
    with socket.socket(socket.AF_UNIX) as sock, pytest.raises(OSError):  # noqa: PT011 - any errno of the kernel
        Listener(gate.gate, sock.fileno(), gate.task)
    assert sock.fileno() == -1


def test_a_removed_listener_accepts_no_one_and_cuts_where_asked(lab: Lab, serve: Serve) -> None:
    """POL-7: open connections live on, or are cut and recorded."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    keep_address, keep = gate.on_thread(lambda: gate.listen(gate.task))
    with gate.tunnel("1.2.3.4:443") as cut:
        stays = socket.create_connection(keep_address, timeout=10)
        stays.sendall(CONNECT)
        assert read_exactly(stays, 12) == b"HTTP/1.1 200"
        gate.on_thread(lambda: gate.gate.remove_listener(keep, cut=False))
        gate.on_thread(lambda: gate.gate.remove_listener(gate.listener, cut=True))
        assert cut.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            gate.connect()
        read_exactly(stays, 27)
        stays.sendall(b"\x00")
        assert stays.recv(1) == b"\x00"
        stays.close()
    assert [event.reason for event in gate.events(2)] == [Reason.STOPPING, Reason.ALLOWED]


def test_a_listener_that_is_broken_rests(serve: Serve) -> None:
    """B57: an error that will be the same at once is not met at full speed."""
    gate = serve("a.test:80")
    gate.on_thread(lambda: gate.listener._sock.shutdown(socket.SHUT_RDWR))
    assert gate.event().reason is Reason.INTERNAL
    assert gate.on_thread(lambda: gate.listener.fd not in gate.gate.reactor.table)
    gate.gate.stop()
    wait(lambda: gate.listener._sock is None)  # closed with its gate, also while it rests


def test_the_bound_of_connections_is_the_tasks_not_each_commands(lab: Lab, serve: Serve) -> None:
    """GAT-6: two commands of one task together have as many connections as it may."""
    lab.origin("raw", "1.2.3.4", 443)
    limits = small(connections=2)
    gate = serve("1.2.3.4:443", limits=limits)
    other = GateTask("t1", policy_of("1.2.3.4:443", limits=limits), recorder=gate.recording)
    other.join(gate.task)
    address, _listener = gate.on_thread(lambda: gate.listen(other))
    with gate.tunnel("1.2.3.4:443"), gate.tunnel("1.2.3.4:443"), socket.create_connection(address, 10) as third:
        third.sendall(CONNECT)
        assert gate.event().reason is Reason.TOO_MANY_CONNECTIONS


@pytest.fixture
def by_unix(lab: Lab, serve: Serve, tmp_path: Path) -> Callable[[], socket.socket]:
    """Connect to a gate whose listener is a unix socket, as a relay does; it allows 1.2.3.4:443, which echoes."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    path = str(tmp_path / "gate.sock")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.listen(16)
    gate.on_thread(lambda: gate.gate.add_listener(sock.detach(), gate.task))

    def connect() -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(10)
        client.connect(path)
        return client

    return connect


def test_a_unix_socket_is_a_listener_as_well(by_unix: Callable[[], socket.socket]) -> None:
    """HLD-4 (b), GAT-2: what a relay carries is judged and tunnelled like what comes by TCP; half-close is kept."""
    with by_unix() as client:
        client.sendall(CONNECT)
        assert read_head(client).startswith(b"HTTP/1.1 200 ")
        client.sendall(b"\0echo\r\n")
        assert read_exactly(client, 7) == b"\0echo\r\n"
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    with by_unix() as client:
        client.sendall(CONNECT.replace(b"1.2.3.4", b"1.2.3.5"))
        assert read_head(client).startswith(b"HTTP/1.1 403 ")


def test_that_a_client_behind_a_unix_socket_left_is_seen() -> None:
    """ASK-3: also while bytes of it wait to be read, as with TCP; the neighbour: one that stays has not left."""
    near, far = socket.socketpair()
    with near:
        assert not has_ended(near)
        far.sendall(b"unread")
        assert not has_ended(near)
        far.close()
        assert has_ended(near)
