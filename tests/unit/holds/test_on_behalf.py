"""tidegate.holds.on_behalf; what the watcher makes of it is tried in test_watcher.py and the table of escapes."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from tidegate.holds.on_behalf import RefusedError, attempt, field, meet


def _address(path: str) -> bytes:
    return b"\1\0" + os.fsencode(path) + b"\0"


@pytest.mark.parametrize("blocking", [True, False])
def test_an_attempt_never_waits_and_leaves_the_socket_as_it_was(tmp_path: Path, blocking: bool) -> None:
    """HLD-14: a full backlog is EAGAIN at once, and whether the caller's socket blocks stays the caller's affair."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(0)
        codes = []
        clients = []
        for _ in range(3):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(blocking)
            codes.append(attempt(client.fileno(), _address(path), unix=True))
            assert os.get_blocking(client.fileno()) is blocking
            clients.append(client)
        assert codes[0] == 0
        assert codes[-1] == errno.EAGAIN
        for client in clients:
            client.close()


def test_an_internet_attempt_on_loopback_is_settled_at_once() -> None:
    """A blocking caller gets its answer from one look, connected or refused."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        where = b"\2\0" + port.to_bytes(2, "big") + bytes((127, 0, 0, 1)) + bytes(8)
        with socket.socket() as client:
            assert attempt(client.fileno(), where, unix=False) == 0
    with socket.socket() as client:
        assert attempt(client.fileno(), where, unix=False) == errno.ECONNREFUSED


def test_a_process_is_read_by_its_status() -> None:
    """The numbers of a line; a process that has no such line, or is gone, is a refusal or an OSError."""
    assert field(os.getpid(), "Tgid") == [os.getpid()]
    with pytest.raises(RefusedError):
        field(os.getpid(), "NoSuchLine")
    with pytest.raises(OSError, match="No such"):
        field(0, "Tgid")
    assert sys.platform == "linux"


def _place(address: str, port: int) -> bytes:
    if ":" in address:
        return b"\n\0" + port.to_bytes(2, "big") + bytes(4) + socket.inet_pton(socket.AF_INET6, address) + bytes(4)
    return b"\2\0" + port.to_bytes(2, "big") + socket.inet_aton(address) + bytes(8)


def _listener(address: str = "127.0.0.1", port: int = 0) -> socket.socket:
    return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)


@pytest.mark.usefixtures("isolated")
@pytest.mark.parametrize("blocking", [True, False])
def test_a_place_is_the_tasks_own_where_it_listens(blocking: bool) -> None:
    """HLD-10: its own listener is connected to; where there is none the detour is, and the answer is there at once."""
    detour = _listener("127.116.103.1")
    there = _place("127.116.103.1", detour.getsockname()[1])
    own = _listener()
    port = own.getsockname()[1]
    here = _place("127.0.0.1", port)
    with socket.socket() as client:
        client.setblocking(blocking)
        assert meet(client.fileno(), here, there, os.getpid()) == (0, here)
        assert client.getpeername() == ("127.0.0.1", port)
        assert os.get_blocking(client.fileno()) is blocking
    own.close()
    with socket.socket() as client:
        client.setblocking(blocking)
        assert meet(client.fileno(), here, there, os.getpid()) == (0, there)
        assert client.getpeername()[0] == "127.116.103.1"
        assert os.get_blocking(client.fileno()) is blocking
    detour.close()
    with socket.socket() as client:
        client.setblocking(blocking)
        assert meet(client.fileno(), here, there, os.getpid()) == (errno.ECONNREFUSED, here)


@pytest.mark.usefixtures("isolated")
def test_whoever_listens_on_the_other_loopback_is_not_passed_by() -> None:
    """HLD-10: a client of `localhost` tries ::1 first; the task's server on 127.0.0.1 wins all the same."""
    detour = _listener("127.116.103.1")
    there = _place("::ffff:127.116.103.1", detour.getsockname()[1])
    own = _listener()
    port = own.getsockname()[1]
    here = _place("::1", port)
    with socket.socket(socket.AF_INET6) as client:
        assert meet(client.fileno(), here, there, os.getpid()) == (errno.ECONNREFUSED, here)
    own.close()
    with socket.socket(socket.AF_INET6) as client:
        assert meet(client.fileno(), here, there, os.getpid()) == (0, there)
    with socket.socket(socket.AF_INET6) as client:
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        assert meet(client.fileno(), here, there, os.getpid()) == (errno.ECONNREFUSED, here)
    detour.close()


@pytest.mark.usefixtures("isolated")
def test_a_full_queue_of_the_tasks_own_is_waited_for_and_never_passed_by() -> None:
    """HLD-10: its listener is there, only busy: the call is under way to it and not to the detour."""
    detour = _listener("127.116.103.1")
    there = _place("127.116.103.1", detour.getsockname()[1])
    own = _listener()
    own.listen(0)
    here = _place("127.0.0.1", own.getsockname()[1])
    clients = [socket.socket() for _ in range(4)]
    codes = [meet(client.fileno(), here, there, os.getpid()) for client in clients]
    assert codes[0] == (0, here)
    assert codes[-1][0] in (errno.EINPROGRESS, errno.EALREADY)
    assert codes[-1][1] == here
    for sock in (*clients, own, detour):
        sock.close()
