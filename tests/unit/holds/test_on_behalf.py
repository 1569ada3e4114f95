"""tidegate.holds.on_behalf; what the watcher makes of it is tried in test_watcher.py and the table of escapes."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from tidegate.holds.on_behalf import RefusedError, attempt, field


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
