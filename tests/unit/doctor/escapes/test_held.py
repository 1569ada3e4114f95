"""The table is held by the machinery of a run: its gate, its policy, its journal."""

from __future__ import annotations

import pytest

from tidegate.doctor.escapes.attempt import attempt


@pytest.mark.parametrize("hold", ["netns", "captured", "offline", "open"])
def test_each_column_is_a_hold_that_starts(hold: str) -> None:
    """The self-test of the start is passed in all of them, and the command ends well."""
    answer = attempt(hold, rows=["own_folders"])
    assert answer == answer | {"status": 0, "answers": {"own_folders": "passed"}}


def test_what_keeps_it_from_starting_is_said() -> None:
    """A refused start is an error with the words of `run` and no answers (HLD-7)."""
    answer = attempt("netns", rows=["own_folders"], front=["/bin/false"])
    assert answer["answers"] == {}
    assert "error" in answer
