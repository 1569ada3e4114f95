"""The roles that end by themselves: what they say, and with which status."""

from __future__ import annotations

import signal
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.relay.running import PATIENCE, listen
from tidegate.holds.container.relay.roles import ask, main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.holds.container.relay.running import Owner


@pytest.mark.parametrize(
    ("make", "status", "says"), [(True, 0, "connected"), (False, 1, "ENOENT")], ids=["there", "not there"]
)
def test_the_socket_check_says_what_it_saw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: bool, status: int, says: str
) -> None:
    """HLD-4: whether a container can connect to a socket of the machine is found out by connecting to one."""
    gate = listen(tmp_path / "gate.sock") if make else None
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["check", str(tmp_path)]) == status
    finally:
        signal.signal(signal.SIGTERM, before)
        if gate is not None:
            gate.close()
    assert says in capsys.readouterr().out


def test_it_asks_what_the_worker_would(owner: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-11: the first line of the answer, through the relay; and of no answer, why."""

    def serve() -> None:
        with owner.accepted() as gate:
            assert gate.recv(1000) == b"CONNECT a HTTP/1.1\r\n\r\n"
            gate.sendall(b"HTTP/1.1 403 Forbidden\r\nX: y\r\n\r\n")

    with owner.ready():
        thread = threading.Thread(target=serve)
        thread.start()
        assert ask(owner.port, "CONNECT a HTTP/1.1") == 0
        thread.join(PATIENCE)
    assert capsys.readouterr().out == "HTTP/1.1 403 Forbidden\n"
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert ask(port, "CONNECT a HTTP/1.1") == 0
    assert "refused" in capsys.readouterr().out
