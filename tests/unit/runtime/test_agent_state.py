"""Where an agent keeps its state when no new name can be made in the home folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime.agent_state import agent_state

if TYPE_CHECKING:
    from pathlib import Path

STATE = '{"numStartups": 3}'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder in which the agent was used before."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude.json").write_text(STATE)
    return tmp_path.resolve()


def asked(home: Path, environ: dict[str, str] | None = None, *, open_folder: bool = True) -> dict[str, str]:
    """What a task's environment gets."""
    return agent_state(environ or {}, str(home), (f"{home}/.claude",) if open_folder else ())


def test_the_state_is_copied_once_for_its_owner(home: Path) -> None:
    """A task finds what was there; what it saves is not overwritten, and what runs outside does not see it (HLD-15)."""
    assert asked(home) == {"CLAUDE_CONFIG_DIR": f"{home}/.claude"}
    copy = home / ".claude/.claude.json"
    assert copy.read_text() == STATE
    assert copy.stat().st_mode & 0o777 == 0o600
    copy.write_text("{}")
    asked(home)
    assert copy.read_text() == "{}"
    assert (home / ".claude.json").read_text() == STATE
    assert os.listdir(home / ".claude") == [".claude.json"]


def test_nothing_is_copied_where_nothing_was(home: Path) -> None:
    """The agent's first start is one inside as well."""
    (home / ".claude.json").unlink()
    assert asked(home) == {"CLAUDE_CONFIG_DIR": f"{home}/.claude"}
    assert os.listdir(home / ".claude") == []


def test_a_persons_word_and_a_closed_folder_count(home: Path) -> None:
    """Nothing is set or copied where the variable is there, the folder is not open, or there is no home."""
    assert asked(home, {"CLAUDE_CONFIG_DIR": "/elsewhere"}) == {}
    assert asked(home, open_folder=False) == {}
    assert agent_state({}, "", ("/.claude",)) == {}
    assert os.listdir(home / ".claude") == []


@pytest.mark.parametrize("name", [".claude.json", ".claude/.claude.json"])
def test_no_link_is_followed(home: Path, name: str) -> None:
    """A task's link makes nobody write through it, and nobody put what it leads to where tasks read (HLD-15)."""
    secret = home / "secret"
    secret.write_text("secret")
    (home / name).unlink(missing_ok=True)
    (home / name).symlink_to(secret)
    asked(home)
    assert secret.read_text() == "secret"
    copy = home / ".claude/.claude.json"
    assert os.readlink(copy) == str(secret) if name == ".claude/.claude.json" else not copy.exists()


def test_what_is_no_file_is_left(home: Path) -> None:
    """A pipe in its place is not waited for."""
    (home / ".claude.json").unlink()
    os.mkfifo(home / ".claude.json")
    asked(home)
    assert os.listdir(home / ".claude") == []
