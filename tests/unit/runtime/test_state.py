"""tidegate.runtime.state."""

from __future__ import annotations

import fcntl
import functools
import os
import pwd
import socket
from pathlib import Path

import pytest

from tests.at_once import at_once
from tests.descriptors import descriptors
from tidegate.model.errors import StartError
from tidegate.runtime import state


def test_folders_follow_the_base_directory_variables(tmp_path: Path) -> None:
    """The state is under XDG_STATE_HOME or ~/.local/state; a relative value is ignored, as its specification says."""
    assert state.state_folder({"HOME": "/h"}) == "/h/.local/state/tidegate"
    assert state.state_folder({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == "/s/tidegate"
    assert state.state_folder({"HOME": "/h", "XDG_STATE_HOME": "s"}) == "/h/.local/state/tidegate"
    assert state.config_folder({"HOME": "/h", "XDG_CONFIG_HOME": str(tmp_path)}) == f"{tmp_path}/tidegate"


def test_no_home_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-16: root could make a wrong HOME a folder; one that is there, and what is in no home, pass."""
    home = tmp_path / "none" / "home"
    monkeypatch.setenv("HOME", f"{home}/")
    with pytest.raises(StartError, match=r"home folder .* is not there"):
        state.make_task_folder(state.state_folder({"HOME": f"{home}/"}), "a")
    assert not home.parent.exists()
    state.make_task_folder(str(tmp_path / "none" / "homes" / "state"), "a")
    home.mkdir()
    state.make_task_folder(state.state_folder({"HOME": f"{home}/"}), "a")
    assert (home / ".local/state/tidegate/tasks/a").is_dir()


def test_without_home_the_password_file_is_asked() -> None:
    """A cron job or a service has no HOME: the record still has a place."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        with pytest.raises(StartError, match="home"):
            state.home_folder({})
        return
    assert state.home_folder({}).startswith("/")
    assert state.home_folder({"HOME": "relative"}).startswith("/")


def test_task_folders_are_private_and_sort_by_time(tmp_path: Path) -> None:
    """JRN-5: records are their owner's only."""
    first = state.new_task_id((2026, 11, 29, 23, 1, 2, 0, 0, 0), b"\x00\x01\x02\x03rest")
    later = state.new_task_id((2026, 11, 29, 23, 1, 3, 0, 0, 0), b"\x00\x01\x02\x03")
    assert first == "20261129-230102-abcd"
    folder = state.make_task_folder(str(tmp_path / "deep" / "tidegate"), later)
    state.make_task_folder(str(tmp_path / "deep" / "tidegate"), first)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert state.task_folders(str(tmp_path / "deep" / "tidegate")) == [first, later]


@pytest.mark.parametrize("kind", ["file", "symlink", "below a file"])
def test_what_is_no_folder_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    """HLD-7: exit 78 naming the variable that moves it; a planted symlink is not followed."""
    path = tmp_path / "tidegate"
    if kind == "symlink":
        path.symlink_to(tmp_path)
    else:
        path.write_text("")
    with pytest.raises(StartError) as raised:
        state.make_private_folder(str(path / "tasks" if kind == "below a file" else path))
    assert "XDG_STATE_HOME" in raised.value.fix
    assert raised.value.exit_status == 78


def test_an_open_folder_is_closed_to_others(tmp_path: Path) -> None:
    """A state folder made by hand with the usual umask becomes private before anything is written."""
    path = tmp_path / "tidegate"
    path.mkdir()
    path.chmod(0o755)
    state.make_private_folder(str(path))
    assert path.stat().st_mode & 0o777 == 0o700


def test_a_folder_with_other_things_in_it_is_not_closed(tmp_path: Path) -> None:
    """XDG_STATE_HOME that points at something else by mistake: refused, and that something is left as it was."""
    path = tmp_path / "tidegate"
    path.mkdir()
    path.chmod(0o755)
    (path / "precious").write_text("")
    with pytest.raises(StartError, match="open to others") as raised:
        state.make_private_folder(str(path))
    assert "XDG_STATE_HOME" in raised.value.fix
    assert path.stat().st_mode & 0o777 == 0o755


def test_runs_that_begin_together_make_the_folder_together(tmp_path: Path) -> None:
    """HLD-1: the first two runs of a person at the same time; neither may fail because the other was faster."""
    for number in range(200):
        path = str(tmp_path / str(number) / "tidegate")
        at_once(*[functools.partial(state.make_private_folder, path)] * 4)
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in tmp_path.glob("*/tidegate"))


def test_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    """The file is one of theirs, whole; nothing else is left beside it."""
    path = tmp_path / "file"
    writers = [functools.partial(state.write_private, str(path), bytes([number]) * 5000) for number in range(4)]
    at_once(*writers, rounds=100)
    assert len(set(path.read_bytes())) == 1
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (5000, 0o600)
    assert os.listdir(tmp_path) == ["file"]


def test_what_is_written_once_stays(tmp_path: Path) -> None:
    """INS-5: with a key that another command has made, something may be sealed already."""
    path = str(tmp_path / "key")
    assert state.write_private_once(path, b"first")
    assert not state.write_private_once(path, b"second")
    assert Path(path).read_bytes() == b"first"
    assert os.stat(path).st_mode & 0o777 == 0o600
    state.write_private(path, b"third")
    assert Path(path).read_bytes() == b"third"
    assert os.listdir(tmp_path) == ["key"]


def test_the_sweep_keeps_the_newest_and_the_living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-5: the number of records is bounded, but the record of a living task is never taken from it."""
    monkeypatch.setattr(state, "KEPT_TASKS", 2)
    for name in ("a", "b", "c", "d"):
        folder = state.make_task_folder(str(tmp_path), name)
        Path(folder, state.LOG_NAME).write_text("{}\n")
        Path(folder, "tool-x", "deep").mkdir(parents=True)  # what a tool left whose keeper was killed (SRV-6)
    with open(tmp_path / "tasks" / "a" / state.LOG_NAME) as living:
        fcntl.flock(living, fcntl.LOCK_SH)
        state.sweep_tasks(str(tmp_path))
        assert state.task_folders(str(tmp_path)) == ["a", "c", "d"]
    state.sweep_tasks(str(tmp_path))
    assert state.task_folders(str(tmp_path)) == ["c", "d"]
    state.sweep_tasks(str(tmp_path / "not there"))


@pytest.mark.parametrize("length", [20, 107, 108, 200])
def test_a_socket_is_reached_however_long_its_path_is(tmp_path: Path, length: int) -> None:
    """unix(7) takes 107 bytes of path; a state folder may be deeper, and no other name must be needed."""
    folder = tmp_path
    while len(str(folder)) + 51 < length:
        folder = folder / ("d" * 50)
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / "s").ljust(length, "s")
    before = descriptors()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        with state.unix_address(path) as address:
            server.bind(address)
        server.listen()
        assert os.path.exists(path)
        with state.unix_address(path) as address:
            client.connect(address)
    assert descriptors() <= before


def test_the_servers_sockets_have_a_folder_of_their_own() -> None:
    """SRV-1: where fronts look for a server."""
    assert state.front_socket("/s") == "/s/run/front.sock"
