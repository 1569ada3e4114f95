"""Fronts with `--ask`: they hear of the questions of their task, and answer those at their terminal (ASK-5).

Rules of the file: everything on the loop's thread, but for `present`. An answer is bound to the front's own task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.errors import TidegateError, UsageError
from tidegate.model.question import NO_TERMS, Answer, State
from tidegate.questions.errors import AlreadyAnsweredError, NoSuchQuestionError
from tidegate.questions.shape import question_shape

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from tidegate.model.question import Question, Terms
    from tidegate.server.living import Exec

BY = "terminal"
_LIVE = frozenset((State.OPEN, State.SAVING))


class Terminals:
    """See the head of the file. `questions` gives what there is now; `answer` is the server's."""

    def __init__(
        self,
        questions: Callable[[], Iterable[Question]],
        answer: Callable[[int, Answer, Terms, str], Awaitable[Question]],
    ) -> None:
        self._questions = questions
        self._answer = answer
        self._fronts: dict[str, list[Exec]] = {}

    def present(self, task: str) -> bool:
        """Whether a terminal is there that asks for this task. On any thread."""
        return task in self._fronts

    def join(self, exec_: Exec) -> None:
        """Tell this command's front of its task's questions from now on, and of those that are open."""
        self._fronts.setdefault(exec_.task.id, []).append(exec_)
        for question in self._questions():
            if question.state in _LIVE and question.task == exec_.task.id:
                exec_.say(["asked", question_shape(question, exec_.task.name)])

    def leave(self, exec_: Exec) -> None:
        """Its front is gone, or its terminal; a second time changes nothing."""
        fronts = self._fronts.get(exec_.task.id, [])
        if exec_ in fronts:
            fronts.remove(exec_)
        if not fronts:
            self._fronts.pop(exec_.task.id, None)

    def tell(self, question: Question) -> None:
        """A question opened, changed or is over."""
        word = "asked" if question.state in _LIVE else "closed"
        for exec_ in self._fronts.get(question.task, ()):
            exec_.say([word, question_shape(question, exec_.task.name)])

    async def answer(self, exec_: Exec, number: int, answer: str) -> None:
        """Take an answer from a front. One that comes too late is nobody's fault.

        Raises:
            UsageError: for a question of another task.
        """
        if all(question.id != number or question.task != exec_.task.id for question in self._questions()):
            raise UsageError(f"question {number} is not one of {exec_.task.id}", code="front")
        try:
            await self._answer(number, Answer(answer), NO_TERMS, BY)
        except (AlreadyAnsweredError, NoSuchQuestionError):
            return
        except TidegateError as error:
            exec_.say(["warn", str(error)])
