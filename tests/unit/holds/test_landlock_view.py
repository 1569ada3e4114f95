"""The plan of a view as levels and rules: what is hidden is under nothing that is given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.holds import landlock, landlock_view
from tidegate.holds.carve import NOTHING, READ, WRITE
from tidegate.holds.hold import LaunchSpec, Share
from tidegate.holds.plan import make_plan

if TYPE_CHECKING:
    from pathlib import Path


def view(base: Path, **wishes: object) -> landlock_view.View:
    """The view of a task in `base`/work."""
    for name in ("work/.git/hooks", "work/src", "state", "own"):
        os.makedirs(base / name, exist_ok=True)
    spec = LaunchSpec(argv=(), env={"HOME": str(base)}, cwd="/", workspace=str(base / "work"))
    spec = spec.replace(hidden=(str(base / "state"),), guarded=(str(base / "work/.git/hooks"),), **wishes)
    return landlock_view.make_view(make_plan(spec, os.geteuid()), str(base / "own"))


def test_levels_say_what_a_namespace_would_show(tmp_path: Path) -> None:
    """Hidden is nothing, guarded is read-only, the machine's /tmp, /run and /dev are not there (HLD-13 to HLD-15)."""
    levels = view(tmp_path).levels
    expected = {
        "state/x": NOTHING, "work/new": WRITE, "work/.git/hooks/pre-commit": READ, "work/.git/index": WRITE,
        "own/x": WRITE,
    }  # fmt: skip
    assert {name: levels.at(str(tmp_path / name)) for name in expected} == expected
    machine = {"/tmp/x": NOTHING, "/run/x": NOTHING, "/dev/sda": NOTHING, "/proc/sys/x": READ, "/sys/power/state": READ}
    assert {path: levels.at(path) for path in machine} == machine
    assert levels.at("/usr/bin/sh") == WRITE
    assert view(tmp_path, strict=True).levels.at("/usr/bin/sh") == READ


def test_rules_name_only_what_may_be_had(tmp_path: Path) -> None:
    """No rule is at, or above, anything with a lower level; devices are the harmless ones (HLD-13)."""
    found = view(tmp_path)
    for path, rights in found.rules:
        if rights & landlock.CHANGE and not path.startswith("/dev/"):
            assert found.levels.lowest(path) == WRITE, path
        elif not path.startswith("/dev/"):
            assert found.levels.lowest(path) >= READ, path
    devices = {path for path, _rights in found.rules if path.startswith("/dev/")}
    assert "/dev/null" in devices
    assert not any(path.startswith("/dev/pts/") and path != "/dev/pts/ptmx" for path in devices)


def test_shares_are_given(tmp_path: Path) -> None:
    """A share is writable or not, as it says, also where it lies in a folder that is refused (HLD-14)."""
    for name in ("open", "closed"):
        os.makedirs(tmp_path / name)
    shares = (Share(str(tmp_path / "open")), Share(str(tmp_path / "closed"), readonly=True))
    levels = view(tmp_path, shares=shares, strict=True).levels
    assert levels.at(str(tmp_path / "open/x")) == WRITE
    assert levels.at(str(tmp_path / "closed/x")) == READ
