"""docs/questions.md against the rows that its table is made from."""

from __future__ import annotations

from scripts import questions_reference


def test_the_generated_part_is_fresh() -> None:
    """ASK-3: the table of the page is what tests/clients/test_meeting.py proves; scripts/docs writes it."""
    assert questions_reference.main(["--check"]) == 0, "run scripts/docs"
