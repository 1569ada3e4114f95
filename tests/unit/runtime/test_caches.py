"""The folders that stay writable when all else is read-only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime.caches import not_led_astray, writable_folders

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A home folder, and a folder of programs beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "programs").mkdir()
    return os.path.realpath(tmp_path / "home")


def program(home: str, name: str) -> dict[str, str]:
    """An environment in which this program is found."""
    folder = os.path.join(os.path.dirname(home), "programs")
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii"):
        os.chmod(path, 0o755)
    return {"PATH": folder, "HOME": home}


def test_a_cache_is_made_where_its_tool_is(home: str) -> None:
    """Its tool npm is there, so ~/.npm is made, as ~/.cache always is; others are not (HLD-15)."""
    found = writable_folders(program(home, "npm"), home)
    assert {f"{home}/.cache", f"{home}/.npm"} <= set(found)
    assert sorted(os.listdir(home)) == [".cache", ".npm"]


def test_what_is_there_counts_without_its_tool(home: str) -> None:
    """~/.m2/repository is a cache, the rest of ~/.m2 is none."""
    os.makedirs(f"{home}/.m2/repository")
    found = writable_folders({"PATH": ""}, home)
    assert f"{home}/.m2/repository" in found
    assert f"{home}/.m2" not in found


def test_a_link_that_a_task_could_have_made_is_no_cache(home: str) -> None:
    """~/.cargo/registry -> ~/.ssh would open that; a link in the home folder itself is a person's (HLD-15)."""
    for name in (".ssh", ".cargo", "big"):
        os.mkdir(f"{home}/{name}")
    os.symlink(f"{home}/.ssh", f"{home}/.cargo/registry")
    os.symlink(f"{home}/big", f"{home}/.cache")
    found = writable_folders({"PATH": ""}, home)
    assert f"{home}/.cargo/registry" not in found
    assert found[f"{home}/big"] == f"{home}/.cache"


@pytest.mark.parametrize("value", ["/", "{home}", "{home}/..", "relative", "{home}/missing", "{home}/link"])
def test_a_variable_cannot_open_everything(home: str, value: str) -> None:
    """One that names the root, the home folder, what is above it, or leads elsewhere in it opens nothing."""
    os.mkdir(f"{home}/.config")
    os.makedirs(f"{home}/deep")
    os.symlink(f"{home}/.config", f"{home}/deep/link")
    named = value.format(home=home).replace("/link", "/deep/link")
    plain = set(writable_folders({"PATH": ""}, home))
    assert set(writable_folders({"PATH": "", "XDG_CACHE_HOME": named}, home)) == plain


def test_a_variable_names_a_cache(home: str) -> None:
    """The neighbour: folders that exist count, and of CARGO_HOME only its caches."""
    for name in ("c", "cargo/registry", "cargo/bin"):
        os.makedirs(f"{home}/{name}")
    found = writable_folders({"PATH": "", "PIP_CACHE_DIR": f"{home}/c", "CARGO_HOME": f"{home}/cargo"}, home)
    assert {f"{home}/c", f"{home}/cargo/registry"} <= set(found)
    assert f"{home}/cargo/bin" not in found


def test_a_link_into_what_is_protected_is_no_cache(home: str) -> None:
    """~/.npm -> ~/.ssh, made by a task that had --share ~; the way by its own name stays open (HLD-15)."""
    for name in (".ssh", "big", ".conf/cache"):
        os.makedirs(f"{home}/{name}")
    os.symlink(".ssh", f"{home}/.npm")
    os.symlink("big", f"{home}/.ivy2")
    found = writable_folders({"PATH": "", "PIP_CACHE_DIR": f"{home}/.conf/cache"}, home)
    left = not_led_astray(found, (f"{home}/.ssh", f"{home}/.conf"))
    assert f"{home}/.ssh" in found
    assert f"{home}/.ssh" not in left
    assert {f"{home}/big", f"{home}/.conf/cache"} <= set(left)


@pytest.mark.parametrize("goal", ["/", ".."])
def test_a_link_to_what_holds_the_home_is_no_cache(home: str, goal: str) -> None:
    """~/.npm -> / would open everything."""
    os.symlink(goal, f"{home}/.npm")
    assert not {"/", os.path.dirname(home)} & set(writable_folders({"PATH": ""}, home))
