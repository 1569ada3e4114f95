"""What can be wrong with an answer. Each is told to the person who gave it; none of them lets anything through."""

from __future__ import annotations

from tidegate.model.errors import TidegateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.question import Question


class AlreadyAnsweredError(TidegateError):
    """The question is closed, or its answer is being saved: `question` says what was answered and by whom."""

    def __init__(self, question: Question) -> None:
        said = f"answered {question.answer.value!r} by {question.by}" if question.answer else question.state.value
        super().__init__(f"question {question.id} is {said} already", code="already-answered")
        self.question = question


class NoSuchQuestionError(TidegateError):
    """No question has this number, or it was closed long ago."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no question {number}", fix="see `tidegate questions`", code="no-such-question")


class BadAnswerError(TidegateError):
    """The answer cannot be given to this question, or its end is none."""
