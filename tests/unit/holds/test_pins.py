"""Names that are held in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds.pins import names_on_the_way, needed_pins

if TYPE_CHECKING:
    from pathlib import Path


def test_every_name_on_the_way_is_found(tmp_path: Path) -> None:
    """Folders, symlinks, what they lead through, `..`, and the end at something missing (HLD-15)."""
    base = os.path.realpath(tmp_path)
    os.makedirs(f"{base}/real/deep/goal")
    os.symlink("real/deep", f"{base}/short")
    os.symlink(f"{base}/short/../deep", f"{base}/absolute")

    def found(path: str) -> list[str]:
        names = [os.path.join(folder, name) for folder, name in names_on_the_way(path)]
        return [name.removeprefix(base + "/") for name in names if name.startswith(base + "/")]

    assert found(f"{base}/real/deep/goal") == ["real", "real/deep", "real/deep/goal"]
    assert found(f"{base}/short/goal") == ["short", "real", "real/deep", "real/deep/goal"]
    assert found(f"{base}/absolute/goal") == ["absolute", "short", "real", "real/deep", "real/deep/goal"]
    assert found(f"{base}/real/missing/x") == ["real"]
    assert found(f"{base}//real/./deep/") == ["real", "real/deep"]


@pytest.mark.parametrize("goal", ["loop", "x" * 300])
def test_what_leads_nowhere_ends_the_way(goal: str, tmp_path: Path) -> None:
    """A loop, and a name longer than names can be: a task could leave either where the next start looks (HLD-15)."""
    real = os.path.realpath(tmp_path)
    os.symlink(goal, f"{real}/loop")
    assert (real, "loop") in names_on_the_way(f"{real}/loop")
    os.symlink("goal", f"{real}/link")
    os.mkdir(f"{real}/goal")
    assert (real, "goal") in names_on_the_way(f"{real}/link")


def test_only_names_that_the_task_could_change_are_held(tmp_path: Path) -> None:
    """An ordinary user's own folders are; root could change every name (HLD-15)."""
    path = os.path.join(os.path.realpath(tmp_path), "goal")
    os.mkdir(path)
    assert (os.path.dirname(path), "goal") in needed_pins([path], os.getuid())
    assert ("/", path.split("/")[1]) in needed_pins([path], 0)
    if os.getuid() != 0:
        assert ("/", path.split("/")[1]) not in needed_pins([path], os.getuid())
    assert needed_pins([path, path], 0) == needed_pins([path], 0)


def test_held_names_cannot_be_renamed_and_their_neighbours_can(tmp_path: Path) -> None:
    """Rename, exchange, remove and replace are refused by every path; nothing else changes (HLD-15)."""
    code = """
    from tidegate.holds import device, pins
    from tidegate.holds.masks import Masks
    base = os.path.realpath(sys.argv[1])
    os.makedirs(base + '/home/.config/tidegate')
    os.makedirs(base + '/other')
    os.symlink('.config', base + '/home/link')
    open(base + '/home/file', 'w').close()
    uid = os.getuid()
    inside()
    taken = device.take_nodes()
    masks = Masks()
    mounts.attach(mounts.clone(base + '/home'), base + '/other')
    wanted = pins.needed_pins([base + '/home/link/tidegate', base + '/home/file'], uid)
    pins.hold_in_place(wanted, masks)
    device.make_dev(taken)
    home = base + '/home'
    print(attempt(os.rename, home, base + '/x'), attempt(os.rename, home + '/.config', home + '/x'))
    print(attempt(os.rename, home + '/.config/tidegate', home + '/x'), attempt(os.unlink, home + '/link'))
    print(attempt(os.unlink, home + '/file'), attempt(os.rename, base + '/other/.config', base + '/other/x'))
    print(attempt(os.rmdir, home + '/.config/tidegate'), os.listdir(home + '/link'))
    open(home + '/mine', 'w').close()
    print(attempt(os.rename, home + '/mine', home + '/.config/mine'), attempt(os.link, home + '/file', home + '/link2'))
    """
    assert apart(code, str(tmp_path)).splitlines() == [
        "EBUSY EBUSY",
        "EBUSY EBUSY",
        "EBUSY EBUSY",
        "EBUSY ['tidegate']",
        "done done",
    ]
