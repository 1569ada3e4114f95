"""Files in which agents keep a sign-in: which are hidden from an agent's task, and what a person is told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.cli.run_options import Share
from tidegate.policy.harnesses import built_in, harness_layer
from tidegate.policy.layers import command_line, join
from tidegate.runtime.secret_store import Stored
from tidegate.runtime.sign_ins import sign_ins, without_sign_ins
from tidegate.runtime.task import Order

if TYPE_CHECKING:
    from pathlib import Path

CLAUDE, CODEX, DROID = ".claude/.credentials.json", ".codex/auth.json", ".factory/auth.v2.file"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder in which three agents keep a sign-in."""
    for name in (CLAUDE, CODEX, DROID):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("{}")
    return tmp_path


def looked(home: Path, name: str, *keys: str, allow: str = "", hides: bool = True, **fields: Any) -> Any:
    """Hidden files, from the home folder on, and notes, for an agent of this name."""
    harness = built_in(name)
    assert harness is not None
    stored = tuple(Stored(key, (("x.test", 443),), "bearer", "", key, "env", (key,)) for key in keys)
    empty: dict[str, Any] = {"shares": (), "hidden": ("/state",), "readonly": (), "selftest": True, "log": ""}
    environ = {"HOME": str(home)}
    order = Order("t", "runtime", (name,), str(home), **{"environ": environ, "keys": stored, **empty, **fields})
    policy = join(command_line(allow=[allow] if allow else []), harness_layer(harness))
    out, notes = without_sign_ins(order, policy, harness, hides=hides)
    assert out.hidden[0] == "/state"
    return [os.path.relpath(path, home) for path in out.hidden[1:]], notes


def test_with_a_key_in_a_variable_none_is_seen(home: Path) -> None:
    """INS-5: what the agent does not need is out of sight; what it has instead is said."""
    hidden, notes = looked(home, "claude", "ANTHROPIC_API_KEY")
    assert hidden == [CLAUDE, CODEX, DROID]
    assert len(notes) == 1
    assert "does not see" in notes[0]
    assert "ANTHROPIC_API_KEY" in notes[0]


def test_without_a_key_its_own_stays_and_that_is_said(home: Path) -> None:
    """INS-5: it could not sign in else; what keeps a key outside is named. Nothing to hide is nothing to say."""
    hidden, notes = looked(home, "claude")
    assert hidden == [CODEX, DROID]
    assert f"the task can read '{home}/{CLAUDE}'" in notes[0]
    (home / CLAUDE).unlink()
    assert looked(home, "claude") == ([CODEX, DROID], ())
    assert looked(home, "gemini", "GEMINI_API_KEY") == ([CODEX, DROID], ())


def test_an_agent_that_the_policy_lets_through_keeps_its_own(home: Path) -> None:
    """POL-12: the agent may run another one there; a rule for something else is no such thing."""
    assert looked(home, "claude", allow="api.openai.com")[0] == [DROID]
    assert looked(home, "claude", allow="x.openai.com")[0] == [CODEX, DROID]


def test_the_key_of_another_service_is_not_its_own(home: Path) -> None:
    """INS-8: Droid with a key for a model of somebody else's still has to be signed in itself."""
    assert looked(home, "droid", "ANTHROPIC_API_KEY")[0] == [CODEX]
    assert looked(home, "droid", "ANTHROPIC_API_KEY", "FACTORY_API_KEY")[0] == [DROID, CODEX]


def test_what_a_person_shares_by_name_stays(home: Path) -> None:
    """HLD-14: also by a link that leads there."""
    (home / "link").symlink_to(home / CODEX)
    share = Share(os.path.realpath(home / "link"), readonly=True)
    assert looked(home, "claude", "ANTHROPIC_API_KEY", shares=(share,))[0] == [CLAUDE, DROID]


def test_a_hold_that_hides_no_single_file_says_so(home: Path) -> None:
    """HLD-7: never silently less."""
    hidden, notes = looked(home, "claude", "ANTHROPIC_API_KEY", hides=False)
    assert hidden == []
    assert [CLAUDE in note for note in notes] == [True, False]
    assert "this hold hides no single file" in notes[1]


def test_variables_move_them(home: Path) -> None:
    """INS-5: where the agent looks then, and where the next shell does."""
    moved = home / "moved"
    (moved / ".gemini").mkdir(parents=True)
    for name in ("auth.json", ".gemini/oauth_creds.json"):
        (moved / name).write_text("{}")
    environ = {"HOME": str(home), "CODEX_HOME": str(moved), "GEMINI_CLI_HOME": str(moved)}
    assert sign_ins("codex", environ) == (str(home / CODEX), str(moved / "auth.json"))
    assert sign_ins("gemini", environ) == (str(moved / ".gemini/oauth_creds.json"),)
    assert sign_ins("aider", environ) == ()
    assert sign_ins("codex", {"HOME": "", "CODEX_HOME": "here"}) == ()
