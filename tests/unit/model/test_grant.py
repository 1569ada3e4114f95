"""What the gate needs of an answer."""

from __future__ import annotations

from tidegate.model.grant import Grant


def test_grants_of_two_questions_are_two() -> None:
    """ASK-7: the bytes of one answer are never another's, so two answers are never the same grant."""
    assert Grant(1, 10) == Grant(1, 10)
    assert Grant(1, 10) != Grant(2, 10)
    assert Grant(1).bytes is None
