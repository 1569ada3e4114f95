"""What a task will see, decided before anything is mounted."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import plan
from tidegate.holds.hold import LaunchSpec, Share
from tidegate.holds.layers import readonly_at
from tidegate.holds.plan import Bound, make_plan
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

UID = os.getuid()


def spec(**wishes: object) -> LaunchSpec:
    """A task that wants this."""
    fields = {"argv": ("true",), "env": {"HOME": "/"}, "cwd": "/"} | wishes
    return LaunchSpec(**fields)  # type: ignore[arg-type]


def test_tmp_run_and_shared_memory_are_replaced() -> None:
    """The three are always replaced, each once, and what programs expect in them is made (HLD-14)."""
    plan = make_plan(spec(), 12345)
    assert {"/tmp", "/run", "/dev/shm"} <= set(plan.replaced)
    assert len(set(plan.replaced)) == len(plan.replaced)
    assert {("/run/lock", 0o1777), ("/run/user/12345", 0o700)} <= set(plan.made)


def test_runtime_and_temporary_folders_follow_the_environment(tmp_path: Path) -> None:
    """XDG_RUNTIME_DIR elsewhere is replaced, below /run it is made, as TMPDIR is below /tmp (HLD-14)."""
    elsewhere = os.path.realpath(tmp_path)
    outside_tmp = "/var/tmp" if elsewhere.startswith("/tmp/") else elsewhere
    plan = make_plan(spec(env={"XDG_RUNTIME_DIR": outside_tmp, "TMPDIR": "/tmp/mine"}), UID)
    assert outside_tmp in plan.replaced
    assert ("/tmp/mine", 0o700) in plan.made
    plan = make_plan(spec(env={"XDG_RUNTIME_DIR": "/run/mine/", "TMPDIR": "/var/tmp"}), UID)
    assert ("/run/mine", 0o700) in plan.made
    assert "/var/tmp" not in dict(plan.made)


@pytest.mark.parametrize("runtime", ["/", "/home/x/..", "relative", "", "/proc/self"])
def test_a_runtime_folder_that_is_none_is_not_replaced(runtime: str) -> None:
    """A variable that names the root, the home folder or /proc replaces nothing."""
    assert set(make_plan(spec(env={"HOME": "/home", "XDG_RUNTIME_DIR": runtime}), UID).replaced) <= {
        "/tmp",
        "/run",
        "/var/run",
        "/dev/shm",
    }


def test_workspace_and_home_are_bound_where_they_would_vanish(tmp_path: Path) -> None:
    """Both come back when they lie strictly below a replaced folder, and are left alone elsewhere (HLD-14)."""
    base = os.path.realpath(tmp_path)
    plan = make_plan(spec(workspace=base, env={"HOME": base + "/missing"}), UID)
    wanted = (Bound(base, readonly=False),) if base.startswith("/tmp/") else ()
    assert plan.bound == wanted
    assert make_plan(spec(workspace="/usr", env={"HOME": "/tmp"}), UID).bound == ()


@pytest.mark.parametrize("workspace", ["/tmp", "/run", "/dev", "/dev/pts", "/proc", "/sys/kernel", "/dev/shm"])
def test_a_workspace_that_cannot_be_had(workspace: str) -> None:
    """It is refused with what to do instead (HLD-7)."""
    with pytest.raises(StartError, match="folder of its own") as caught:
        make_plan(spec(workspace=workspace), UID)
    assert caught.value.exit_status == 78


def test_a_hidden_folder_is_made_and_real(tmp_path: Path) -> None:
    """One that is not there is made, private; a symlink's goal is what is covered (HLD-15)."""
    base = os.path.realpath(tmp_path)
    os.symlink("real", f"{base}/link")
    plan = make_plan(spec(hidden=(f"{base}/link/deep", f"{base}/file")), UID)
    assert set(plan.hidden) >= {f"{base}/real/deep", f"{base}/file"}
    assert os.stat(f"{base}/real/deep").st_mode & 0o777 == 0o700
    assert (base, "link") in plan.pins


def test_a_hidden_name_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    """Where a file is in the way, the task could make way: refused (HLD-7)."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StartError, match="cannot be made"):
        make_plan(spec(hidden=(f"{tmp_path}/file/state",)), UID)


def test_a_hidden_folder_that_nobody_of_this_user_can_make_needs_no_cover() -> None:
    """What this user cannot make, the task cannot either; root can make everything, so an ordinary user is tried."""
    if UID == 0:
        os.seteuid(12345)
    try:
        assert make_plan(spec(hidden=("/etc/tidegate-not-there",)), 12345).hidden == ()
    finally:
        os.seteuid(UID)


def test_shares_are_real_and_devices_apart(tmp_path: Path) -> None:
    """A share is its real path; what is below /dev is taken from there (HLD-14)."""
    base = os.path.realpath(tmp_path)
    os.symlink("/dev/null", f"{base}/link")
    plan = make_plan(spec(shares=(Share(base, readonly=True), Share(f"{base}/link"))), UID)
    assert Bound(base, readonly=True) in plan.bound
    assert plan.devices == (Bound("/dev/null", readonly=False),)


@pytest.mark.parametrize("path", ["/", "/proc/self", "/sys", "/dev", "/no-such-thing"])
def test_what_cannot_be_shared(path: str) -> None:
    """It is refused, naming what was asked (HLD-7)."""
    with pytest.raises(StartError, match=f"--share {path}"):
        make_plan(spec(shares=(Share(path),)), UID)


def test_sockets_in_sight_are_found_and_shared_ones_left(tmp_path: Path) -> None:
    """A listener in the workspace is covered, in a share not, in a replaced folder it is out of sight (HLD-14)."""
    base = os.path.realpath(tmp_path)
    for name in ("work", "share", "other"):
        os.mkdir(f"{base}/{name}")
    wires = []
    try:
        for name in ("work", "share", "other"):
            wires.append(socket.socket(socket.AF_UNIX))
            wires[-1].bind(f"{base}/{name}/s")
        plan = make_plan(spec(workspace=f"{base}/work", shares=(Share(f"{base}/share"),)), UID)
        assert f"{base}/work/s" in plan.sockets
        assert f"{base}/share/s" not in plan.sockets
        assert (f"{base}/other/s" in plan.sockets) == (not base.startswith("/tmp/"))
    finally:
        for wire in wires:
            wire.close()


def test_what_lies_in_a_hidden_folder_needs_nothing_more(tmp_path: Path) -> None:
    """An environment, a socket or another hidden folder inside a hidden one is covered with it (HLD-15)."""
    base = os.path.realpath(tmp_path)
    os.makedirs(f"{base}/cache/env/bin")
    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(f"{base}/cache/s")
        plan = make_plan(spec(hidden=(f"{base}/cache", f"{base}/cache/state"), readonly=(f"{base}/cache/env",)), UID)
    assert f"{base}/cache" in plan.hidden
    inside = [*plan.hidden, *plan.readonly, *plan.sockets, *[f"{folder}/{name}" for folder, name in plan.pins]]
    assert not [path for path in inside if path.startswith(f"{base}/cache/")]
    assert (base, "cache") in plan.pins


def test_what_is_read_only_and_missing_is_left_out(tmp_path: Path) -> None:
    """Folders of an installation that this one does not have are no error; those it has are held in place (HLD-15)."""
    base = os.path.realpath(tmp_path)
    os.mkdir(f"{base}/src")
    plan = make_plan(spec(readonly=(f"{base}/src", f"{base}/scripts")), UID)
    assert f"{base}/src" in plan.readonly
    assert f"{base}/scripts" not in plan.readonly
    assert (base, "src") in plan.pins


def test_a_home_with_very_many_folders_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-15: each folder that stays writable is a mount, so the rest is read-only; workspace and shares are not."""
    monkeypatch.setattr(plan, "MOST_FOLDERS", 20)
    for number in range(100):
        (tmp_path / f"d{number}").mkdir()
    home, work, shared = str(tmp_path), str(tmp_path / "work"), tmp_path / "shared"
    os.mkdir(work)
    shared.mkdir()
    for place in (work, f"{home}/d99"):
        wanted = spec(closed=(home,), workspace=place, env={"HOME": home}, shares=(Share(str(shared), readonly=False),))
        said = {step.path: step.readonly for step in make_plan(wanted, os.geteuid()).steps}
        loose = [path for path in said if path.startswith(f"{home}/") and not said[path]]
        assert 20 <= len(loose) <= 22
        assert not readonly_at(place, said, strict=False)
        assert not readonly_at(str(shared), said, strict=False)
        assert readonly_at(f"{home}/new", said, strict=False)


def test_name_files_come_with_capture_alone() -> None:
    """HLD-6: `--capture off` leaves the machine's resolv.conf, hosts and nsswitch.conf in sight."""
    assert make_plan(spec(), UID).names == ()
    for mode in ("on", "ports"):
        names = make_plan(spec(capture=mode), UID).names
        assert any(one.path.endswith("hosts") for one in names)


def test_without_a_resolv_conf_loopback_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """B88: a machine that has none, or one that dangles: programs ask 127.0.0.1, and the resolver listens there."""
    assert not make_plan(spec(capture="on"), UID).asks_loopback
    monkeypatch.setattr("tidegate.holds.name_files.RESOLV", "/etc/no-such-file")
    assert make_plan(spec(capture="on"), UID).asks_loopback
