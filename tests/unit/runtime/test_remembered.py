"""What a folder remembers joins the policy of what starts in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.model.destination import parse_authority
from tidegate.model.errors import StartError
from tidegate.model.question import NO_TERMS, Answer, AnswerRecord
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line
from tidegate.runtime.policy_sources import policy_in_force
from tidegate.runtime.remembered import remembered_hosts
from tidegate.state.folders import folder_key
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from pathlib import Path


def remember(state: Path, folder: Path, host: str) -> None:
    """Have a person remember a host in a folder."""
    store = open_store(str(state))
    number = store.next_question_id()
    store.save_answer(
        AnswerRecord(
            number, "t1", folder_key(str(folder)), host, 443, Phase.RUNTIME, Answer.REMEMBER, NO_TERMS, "alice", 1.0
        )
    )
    store.close()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return a state folder that is not made yet, and a folder to work in."""
    work = tmp_path / "work"
    work.mkdir()
    return tmp_path / "state", work


def test_what_starts_in_the_folder_has_its_hosts(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """ASK-2, ASK-8: the next run of that folder is not asked again; one below it, or in its place, is."""
    state, work = folders
    (work / "sub").mkdir()
    remember(state, work, "a.test")

    def verdict(folder: Path, *deny: str) -> Verdict:
        policy = policy_in_force(
            folder=str(folder), config=str(tmp_path / "none"), state=str(state), options=command_line(deny=deny)
        )
        decision = decide(policy, parse_authority("a.test:443"), Phase.RUNTIME)
        if decision.allowed:
            assert (decision.name, decision.source) == ("remembered", "rule 1, by alice")
        return decision.verdict

    assert verdict(work) is Verdict.ALLOW
    assert verdict(work, "a.test") is Verdict.DENY
    assert verdict(work / "sub") is Verdict.ASK
    work.rename(tmp_path / "moved")
    work.mkdir()
    assert verdict(work) is Verdict.ASK
    assert verdict(tmp_path / "moved") is Verdict.ASK


def test_where_nothing_is_remembered_nothing_is_made(folders: tuple[Path, Path]) -> None:
    """A `run` alone leaves no store behind."""
    state, work = folders
    assert remembered_hosts(str(work), str(state)) is None
    assert not state.exists()
    open_store(str(state)).close()
    assert remembered_hosts(str(work), str(state)) is None


def test_a_store_that_cannot_be_read_stops_the_start(folders: tuple[Path, Path]) -> None:
    """B145: refused with a message, not ignored."""
    state, work = folders
    open_store(str(state)).close()
    (state / "tidegate.db").write_bytes(b"no database" * 100)
    with pytest.raises(StartError) as caught:
        remembered_hosts(str(work), str(state))
    assert caught.value.exit_status == 78
    assert caught.value.fix
