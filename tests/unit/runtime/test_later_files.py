"""The table of files that would run outside later."""

from __future__ import annotations

import pytest

from tidegate.runtime.later_files import HOME, OPEN, WHY, WORKSPACE

ROWS = [(sub, kind, name) for group in (HOME, OPEN, WORKSPACE) for sub, kind, names in group for name in names]


def test_each_kind_says_why_and_by_what_source() -> None:
    """Each row has a reason and a place where that is written, and no reason is without a row (HLD-15)."""
    assert {kind for _, kind, _ in ROWS} == set(WHY)
    assert all(why and source for why, source in WHY.values())


def test_names_are_plain_and_stand_once() -> None:
    """A name is relative, normal and listed once in its folder."""
    for group in (HOME, OPEN, WORKSPACE):
        rows = [(sub, name) for sub, _, names in group for name in names]
        assert len(rows) == len(set(rows))
    for sub, _, name in ROWS:
        assert not name.startswith("/")
        assert not {"", ".", ".."} & set(name.split("/"))
        assert not sub.startswith("/")


@pytest.mark.parametrize(
    "name", ["package.json", "Makefile", ".pre-commit-config.yaml", ".github", "src", "pyproject.toml"]
)
def test_what_a_task_is_there_to_edit_is_not_in_it(name: str) -> None:
    """The neighbour: these run later as well, and stay writable (docs/files.md says so)."""
    assert name not in {row for _, _, row in ROWS}


@pytest.mark.parametrize(
    ("folder", "name"),
    [("", ".bashrc"), ("", ".bash_profile"), ("", ".zshenv"), ("", ".ssh"), ("", ".gitconfig"), (".config", "git"),
     (".config", "autostart"), (".config", "systemd"), (".config", "environment.d"), (".local/share", "systemd"),
     (".local/share", "dbus-1"), (".local/share", "applications"), (".local", "bin"), (".local", "lib"), ("", ".npmrc"),
     ("", ".gdbinit"), ("", ".tmux.conf"), ("", ".vimrc"), (".config", "nvim"), (".config", "fish"), (".cargo", "bin")],
)  # fmt: skip
def test_what_the_specification_names_is_in_it(folder: str, name: str) -> None:
    """Shell start-up files, ssh and git, autostart, user units, D-Bus, PATH, editors (HLD-15)."""
    assert any((folder, name) == (sub, row) for sub, _, row in ROWS)
