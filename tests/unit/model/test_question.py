"""The values of an answer."""

from __future__ import annotations

import pytest

from tidegate.model.question import NO_TERMS, Answer, FolderKey, State, Terms


@pytest.mark.parametrize(
    ("answer", "allows"),
    [
        (Answer.ALLOW, True),
        (Answer.TASK, True),
        (Answer.REMEMBER, True),
        (Answer.DENY, False),
        (Answer.DENY_TASK, False),
    ],
)
def test_an_answer_allows_or_it_does_not(answer: Answer, *, allows: bool) -> None:
    """ASK-2: three answers let bytes move, two do not, and each has its stable word."""
    assert answer.allows is allows
    assert Answer(answer.value) is answer
    assert len(Answer) == 5


def test_terms_are_no_bound_by_default() -> None:
    """ASK-7: an answer without an end has none."""
    assert Terms() == NO_TERMS
    assert Terms(bytes=1) != NO_TERMS


def test_a_folder_is_all_three_of_its_parts() -> None:
    """ASK-8: another inode or device under the same path is another folder."""
    assert FolderKey("/w", 1, 2) == FolderKey("/w", 1, 2)
    assert len({FolderKey("/w", 1, 2), FolderKey("/w", 1, 3), FolderKey("/w", 2, 2), FolderKey("/v", 1, 2)}) == 4


def test_states_have_stable_words() -> None:
    """ASK-1: the words that the API and the docs use."""
    assert [state.value for state in State] == ["open", "saving", "answered", "expired", "ended"]
