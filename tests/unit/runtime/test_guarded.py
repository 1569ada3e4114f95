"""What of a person's files is protected, found on a machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime.guarded import guarded_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A home with a few files and a workspace in it."""
    for name in (".config/git", ".config/app", ".local/share", "work/.vscode", ".claude"):
        (tmp_path / name).mkdir(parents=True)
    for name in (".bashrc", "notes", ".claude/settings.json", "work/Makefile"):
        (tmp_path / name).touch()
    return os.path.realpath(tmp_path)


def test_what_is_there_is_guarded_and_its_folder_lets_nothing_new_in(home: str) -> None:
    """~/.bashrc is; ~/.zshrc is not there, so ~ is closed; ~/.config and ~/.local/share likewise (HLD-15)."""
    found = guarded_files({}, f"{home}/work", (home,))
    assert {f"{home}/.bashrc", f"{home}/.config/git", f"{home}/work/.vscode"} <= set(found.guarded)
    assert {home, f"{home}/.config", f"{home}/.local", f"{home}/.local/share"} <= set(found.closed)
    assert f"{home}/notes" not in found.guarded
    assert f"{home}/work/Makefile" not in found.guarded


def test_nothing_in_a_workspace_is_closed(home: str) -> None:
    """What is missing there is named afterwards; so is what an agent's folder lacks."""
    found = guarded_files({"XDG_CONFIG_HOME": f"{home}/work/x"}, f"{home}/work", (home,))
    assert not any(path.startswith(f"{home}/work") for path in found.closed)
    assert {f"{home}/work/.envrc", f"{home}/.claude/hooks"} <= set(found.told)
    assert f"{home}/.claude/settings.json" in found.guarded
    assert f"{home}/.claude" not in found.closed


def test_a_home_that_is_the_workspace_is_closed_all_the_same(home: str) -> None:
    """Else a task run from there could make ~/.bash_profile."""
    assert home in guarded_files({}, home, (home,)).closed


def test_links_are_guarded_with_what_they_lead_to(home: str) -> None:
    """A dangling one closes the folder in which its goal could be made (HLD-15)."""
    os.mkdir(f"{home}/dotfiles")
    os.symlink("dotfiles/zshrc", f"{home}/.zshrc")
    found = guarded_files({}, f"{home}/work", (home,))
    assert f"{home}/.zshrc" in found.guarded
    assert f"{home}/dotfiles" in found.closed


def test_folders_on_the_path_are_guarded_with_their_libraries(home: str) -> None:
    """~/tools/bin brings ~/tools/lib; one that is missing closes the folder above; the workspace's own are open."""
    for name in ("tools/bin", "tools/lib", "other", "work/.venv/bin"):
        os.makedirs(f"{home}/{name}")
    path = f"{home}/tools/bin:{home}/other/bin:{home}/work/.venv/bin:/usr/bin:relative:"
    found = guarded_files({"PATH": path}, f"{home}/work", (home,))
    assert {f"{home}/tools/bin", f"{home}/tools/lib"} <= set(found.guarded)
    assert f"{home}/other" in found.closed
    assert not any("venv" in one or one in ("/usr/bin", "/usr/lib") for one in found.guarded)


def test_variables_name_files(home: str) -> None:
    """PYTHONSTARTUP and such; what is no path is none."""
    environ = {"PYTHONSTARTUP": f"{home}/notes", "BASH_ENV": "$HOME/x", "INPUTRC": f"{home}/work/rc"}
    found = guarded_files(environ, f"{home}/work", (home,))
    assert f"{home}/notes" in found.guarded
    assert f"{home}/work/rc" in found.told


@pytest.mark.parametrize("value", ["/", "/proc/self", "..", "."])
def test_configuration_that_leads_astray_protects_no_more_than_it_should(home: str, value: str) -> None:
    """A hooksPath of `/`, of /proc or above the home folder must not make the whole machine read-only."""
    with open(f"{home}/.gitconfig", "w", encoding="ascii") as file:
        file.write(f"[include]\n\tpath = {value}\n")
    found = guarded_files({}, f"{home}/work", (home,))
    assert not {"/", "/proc/self", os.path.dirname(home), home} & set(found.guarded)


def test_without_a_home_there_is_still_the_workspace(home: str) -> None:
    """HOME may be `/` in a container: nothing of the root is closed."""
    found = guarded_files({}, f"{home}/work", ())
    assert found.closed == ()
    assert f"{home}/work/.vscode" in found.guarded
