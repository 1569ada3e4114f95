"""tidegate.server.place."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tidegate.model.errors import StartError
from tidegate.server.place import API_SOCKET, INFO, Place


def test_there_is_one_server_of_a_state_folder(tmp_path: Path) -> None:
    """HLD-7: the second is refused, with the pid of the first; when that has gone it may."""
    state = str(tmp_path / "state")
    first, second = Place(state), Place(state)
    first.claim()
    with pytest.raises(StartError, match=rf"pid {os.getpid()}\)") as raised:
        second.claim()
    assert raised.value.exit_status == 78
    second.release()  # a server that was refused takes nothing away from the one that runs
    with pytest.raises(StartError):
        Place(state).claim()
    first.release()
    second.claim()
    second.release()


def test_everything_is_private_and_taken_away_again(tmp_path: Path) -> None:
    """HLD-15: folder 0700, sockets and files 0600; after a clean end nothing says that a server runs."""
    place = Place(str(tmp_path / "state"))
    place.claim()
    sockets = [place.listen("front.sock"), place.listen(API_SOCKET)]
    place.publish({"pid": 1, "api_port": 4000})
    folder = tmp_path / "state" / "run"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == dict.fromkeys(
        ("front.sock", API_SOCKET, INFO, "lock", "port"), 0o600
    )
    assert json.loads((folder / INFO).read_text())["api_port"] == 4000
    for sock in sockets:
        sock.close()
    place.release()
    assert {path.name for path in folder.iterdir()} == {"lock", "port"}


def test_what_a_killed_server_left_is_taken_over(tmp_path: Path) -> None:
    """HLD-8: a socket that nobody listens on does not stop the next start."""
    place = Place(str(tmp_path / "state"))
    place.claim()
    place.listen("front.sock").close()
    place._lock, lock = -1, place._lock
    os.close(lock)
    again = Place(str(tmp_path / "state"))
    again.claim()
    with again.listen("front.sock"), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "state" / "run" / "front.sock"))
    again.release()


def test_a_port_that_was_named_is_that_one_or_an_error(tmp_path: Path) -> None:
    """SRV-1: a taken port is said; any port is the last one again where it is free."""
    place = Place(str(tmp_path / "state"))
    place.claim()
    with place.listen_tcp(0) as sock:
        port = sock.getsockname()[1]
        assert sock.getsockname()[0] == "127.0.0.1"
        with pytest.raises(StartError, match="in use") as raised:
            place.listen_tcp(port)
        assert "--port" in raised.value.fix
        place.publish({"api_port": port})
        with place.listen_tcp(0) as other:
            assert other.getsockname()[1] != port
    with place.listen_tcp(0) as sock:
        assert sock.getsockname()[1] == port
    place.release()


@pytest.mark.parametrize("text", ["", "x", "0", "70000", "-1", "\xff"])
def test_a_file_of_ports_that_is_none_is_passed_over(tmp_path: Path, text: str) -> None:
    """A damaged file never stops a start."""
    place = Place(str(tmp_path / "state"))
    place.claim()
    (tmp_path / "state" / "run" / "port").write_text(text, encoding="latin-1")
    place.listen_tcp(0).close()
    place.release()


def test_a_folder_of_somebody_else_or_open_to_others_is_refused(tmp_path: Path) -> None:
    """HLD-15: a planted folder is not used."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "run").symlink_to(tmp_path)
    with pytest.raises(StartError):
        Place(str(state)).claim()
