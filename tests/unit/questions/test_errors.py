"""What can be wrong with an answer."""

from __future__ import annotations

from tests.unit.questions.kit import wanted
from tidegate.model.question import Answer, Question, State
from tidegate.model.verdict import Phase
from tidegate.questions.errors import AlreadyAnsweredError, NoSuchQuestionError


def _question(**changes: object) -> Question:
    question = Question(7, "t1", "/w", "a.test", 443, Phase.RUNTIME, wanted("a.test:443"), 0.0, 900.0)
    return question.replace(**changes)


def test_who_comes_second_hears_who_was_first() -> None:
    """ASK-2: two browsers, one answer; the other one says what it was."""
    error = AlreadyAnsweredError(_question(state=State.ANSWERED, answer=Answer.DENY, by="alice"))
    assert str(error) == "question 7 is answered 'deny' by alice already"
    assert str(AlreadyAnsweredError(_question(state=State.EXPIRED))) == "question 7 is expired already"


def test_a_number_of_no_question_says_where_they_are_listed() -> None:
    """A clear line for a mistyped number."""
    assert str(NoSuchQuestionError(3)) == "there is no question 3: see `tidegate questions`"
