"""The second relay where its listener is not to be had; with a real one and TLS it is tried in test_door_link.py."""

from __future__ import annotations

import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.relay.running import PATIENCE, argv
from tidegate.holds.container import door_link
from tidegate.holds.container.certificates import open_authority
from tidegate.holds.container.relay.ends import connect_unix
from tidegate.holds.container.relay.words import AUTHORITY, CERTIFICATE

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with a task's certificate."""
    state, folder = tmp_path / "state", tmp_path / "keys"
    state.mkdir(0o700)
    folder.mkdir()
    made = open_authority(str(state), door_link.now()).task("t", door_link.now())
    (folder / CERTIFICATE).write_bytes(made.pem)
    (folder / AUTHORITY).write_bytes(made.authority)
    return folder


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A port at which somebody listens who says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def start(folder: Path, port: int, keys: Path, grace: float) -> subprocess.Popen[str]:
    """Start the relay; it listens when this returns."""
    words = argv("far", str(folder), f"127.0.0.1:{port}", str(keys), str(grace))
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "tidegate-relay 1 listening\n"
    return process


def test_whoever_comes_is_cut_where_nobody_listens(tmp_path: Path, keys: Path, silent: socket.socket) -> None:
    """HLD-7: no connection hangs at a listener that is gone; the relay itself goes on for the next one."""
    port = silent.getsockname()[1]
    silent.close()
    process = start(tmp_path, port, keys, 60.0)
    try:
        for name in ("gate.sock", "life.sock", "gate.sock"):
            with connect_unix(str(tmp_path / name)) as client:
                client.settimeout(PATIENCE)
                if name == "gate.sock":
                    client.send(b"\0\1G")  # what it wants, as the relay beside a worker says it
                    client.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):
                    while client.recv(100):
                        pass
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_without_an_owner_it_ends_and_says_so(tmp_path: Path, keys: Path, silent: socket.socket) -> None:
    """HLD-8: what a crash left is gone after its grace, with status 3, also where the listener never answers."""
    process = start(tmp_path, silent.getsockname()[1], keys, 0.5)
    with connect_unix(str(tmp_path / "life.sock")):
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (3, "tidegate-relay 1 nobody is there any more\n", "")


def test_without_its_keys_it_does_not_begin(tmp_path: Path, silent: socket.socket) -> None:
    """HLD-7: no certificate, no socket that anybody could come in by."""
    words = argv("far", str(tmp_path), f"127.0.0.1:{silent.getsockname()[1]}", str(tmp_path / "none"), "60")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode not in (0, 3)
    assert not (tmp_path / "gate.sock").exists()
