"""view.py: the files of a worker."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.container.engine import DOCKER, PODMAN
from tidegate.holds.container.view import file_mount, mounts_of, trust_mounts, write_readable
from tidegate.holds.hold import LaunchSpec, Share
from tidegate.holds.plan import make_plan
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


def view(workspace: Path, engine: str = DOCKER, **more: Any) -> list[str]:
    """The mounts of a worker with this workspace."""
    spec = LaunchSpec(argv=("x",), env={"HOME": "/"}, cwd=str(workspace), workspace=str(workspace), **more)
    options = mounts_of(spec, make_plan(spec, os.geteuid()), engine)
    assert options[::2] == ["--mount"] * (len(options) // 2)
    return options[1::2]


def test_the_workspace_is_at_its_own_place(tmp_path: Path) -> None:
    """The workspace is bound where it is, writable, and nothing else of this machine (HLD-14)."""
    assert view(tmp_path) == [f"type=bind,src={tmp_path},dst={tmp_path}"]


def test_what_is_protected_in_it_is_bound_over_itself(tmp_path: Path) -> None:
    """Files that run later are read-only, the folders on the way cannot be moved, own files are covered (HLD-15)."""
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "state").mkdir()
    found = view(tmp_path, guarded=(f"{tmp_path}/.git/hooks",), hidden=(f"{tmp_path}/state",))
    assert f"type=bind,src={tmp_path}/.git/hooks,dst={tmp_path}/.git/hooks,readonly" in found
    assert f"type=bind,src={tmp_path}/.git,dst={tmp_path}/.git" in found
    assert f"type=tmpfs,dst={tmp_path}/state,tmpfs-mode=0000" in found


def test_what_is_hidden_is_empty_with_each_engine(tmp_path: Path) -> None:
    """What lies under a folder in memory is copied into it by podman, unless it is told not to (HLD-14, HLD-15)."""
    (tmp_path / "state").mkdir()
    found = view(tmp_path, PODMAN, hidden=(f"{tmp_path}/state",))
    assert f"type=tmpfs,dst={tmp_path}/state,tmpfs-mode=0000,notmpcopyup" in found


def test_protected_files_elsewhere_are_not_there_at_all(tmp_path: Path) -> None:
    """What lies outside the workspace needs no mount: the container does not have it (HLD-14)."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "profile").write_text("")
    assert view(work, guarded=(f"{tmp_path}/profile",)) == [f"type=bind,src={work},dst={work}"]


def test_shares_are_read_only_where_that_is_said(tmp_path: Path) -> None:
    """`--share PATH:ro` and `--share PATH` (HLD-14)."""
    for name in ("work", "a", "b"):
        (tmp_path / name).mkdir()
    shares = (Share(f"{tmp_path}/a", readonly=True), Share(f"{tmp_path}/b"))
    found = view(tmp_path / "work", shares=shares)
    assert f"type=bind,src={tmp_path}/a,dst={tmp_path}/a,readonly" in found
    assert f"type=bind,src={tmp_path}/b,dst={tmp_path}/b" in found


def test_an_engines_socket_is_refused(tmp_path: Path) -> None:
    """Whoever has it owns this machine (B79)."""
    path = tmp_path / "podman.sock"
    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(str(path))
        (tmp_path / "work").mkdir()
        with pytest.raises(StartError, match="engine's socket"):
            view(tmp_path / "work", shares=(Share(str(path)),))


def test_a_folder_with_an_engines_socket_is_refused(tmp_path: Path) -> None:
    """However deep it lies; with another socket, or where it is gone, the folder is shared (B79, HLD-14)."""
    (tmp_path / "work").mkdir()
    share = tmp_path / "run"
    (share / "podman").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as engine, socket.socket(socket.AF_UNIX) as other:
        other.bind(str(share / "other.sock"))
        assert f"type=bind,src={share},dst={share}" in view(tmp_path / "work", shares=(Share(str(share)),))
        engine.bind(str(share / "podman" / "podman.sock"))
        with pytest.raises(StartError, match=r"podman\.sock is an engine's socket, which is in"):
            view(tmp_path / "work", shares=(Share(str(share)),))


@pytest.mark.parametrize("name", ["with,comma", 'with"quote', "with\nline"])
def test_a_name_that_an_engine_would_read_as_more_is_refused(tmp_path: Path, name: str) -> None:
    """A folder's name cannot add an option of its own to the mount (HLD-13)."""
    (tmp_path / name).mkdir()
    with pytest.raises(StartError, match="cannot be mounted"):
        view(tmp_path / name)


def test_the_neighbour_with_a_blank_passes(tmp_path: Path) -> None:
    """Other names are fine."""
    (tmp_path / "with blank = and ä").mkdir()
    assert len(view(tmp_path / "with blank = and ä")) == 1


def test_a_file_of_ours_is_read_only() -> None:
    """The resolver's file is not the task's to change (HLD-6)."""
    assert file_mount("/x/resolv.conf", "/etc/resolv.conf")[1].endswith(",readonly")


def test_what_says_whom_to_trust_is_written_once(tmp_path: Path) -> None:
    """INS-2: one file for one text, readable for whoever the container runs as, mounted read-only at each place."""
    files = (("/run/x/ca.pem", b"roots"), ("/run/x/ca.p12", b"java"), ("/etc/ssl/cert.pem", b"roots"))
    options = trust_mounts(files, str(tmp_path))
    assert options[::2] == ["--mount"] * 3
    assert options[1] == f"type=bind,src={tmp_path}/trust-0,dst=/run/x/ca.pem,readonly"
    assert options[5] == f"type=bind,src={tmp_path}/trust-0,dst=/etc/ssl/cert.pem,readonly"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trust-0", "trust-1"]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}
    before = (tmp_path / "trust-0").stat().st_ino
    write_readable(str(tmp_path / "trust-0"), b"new")
    assert ((tmp_path / "trust-0").stat().st_ino, (tmp_path / "trust-0").read_bytes()) == (before, b"new")
