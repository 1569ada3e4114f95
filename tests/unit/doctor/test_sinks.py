"""tidegate.doctor.sinks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sinks.rig import Log
from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.doctor.sinks import BEHIND, check_sinks
from tidegate.journal.sinks.definition import Definition, plain
from tidegate.journal.sinks.keeping import Keeper, Kept
from tidegate.runtime.state import write_private


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a state folder with a log of some lines."""
    state = tmp_path / "tidegate"
    log = Log(state)
    log.blocked(BEHIND + 5)
    log.log.close()
    (state / "sinks").mkdir()
    return state


def rows(state: Path) -> list[Check]:
    """Return the rows for this state folder."""
    return check_sinks({"XDG_STATE_HOME": str(state.parent), "HOME": str(state.parent)})


def test_no_sinks_no_row(state: Path, tmp_path: Path) -> None:
    """JRN-6, SRV-5: and none where there is no state at all."""
    assert rows(state) == []
    assert rows(tmp_path / "none" / "x") == []


@pytest.mark.parametrize(
    ("kept", "state_of_it", "says"),
    [
        (Kept(seq=BEHIND + 5, hash="x"), OK, "otlp at h.test"),
        (Kept(seq=4, hash="x"), WARN, f"{BEHIND + 1} lines behind"),
        (Kept(seq=BEHIND + 5, hash="x", lost=3, gaps=((7, 9),)), WARN, "3 lines were gone before it had them (7-9)"),
        (Kept(seq=BEHIND + 5, hash="x", aside=2), WARN, "it refused 2 lines"),
        (Kept(seq=BEHIND, hash="x", error="it answers 401"), WARN, "it answers 401, when it tried last"),
    ],
)
def test_a_row_a_sink(state: Path, kept: Kept, state_of_it: str, says: str) -> None:
    """JRN-6, SRV-5: up to date, behind, with a gap and its range, with lines that were refused."""
    (state / "sinks" / "one.json").write_text(json.dumps(plain(Definition("one", "otlp+https://h.test"))))
    Keeper(str(state / "sinks"), "one", write_private).save(kept)
    (row,) = rows(state)
    assert (row.name, row.state) == ("sink one", state_of_it)
    assert says in row.what
    assert bool(row.fix) == (state_of_it != OK)


def test_what_is_damaged_is_said(state: Path) -> None:
    """JRN-6: a definition and a position."""
    (state / "sinks" / "bad.json").write_text("{")
    (state / "sinks" / "one.json").write_text(json.dumps(plain(Definition("one", "otlp+https://h.test"))))
    (state / "sinks" / "one.position").write_text("{")
    one, bad = rows(state)
    assert (one.state, bad.state) == (WARN, FAIL)
    assert "bad.json" in bad.what
