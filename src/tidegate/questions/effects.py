"""What the broker wants done: values, carried out by the shell. `QuestionEvent` is the one that people are told."""

from __future__ import annotations

from tidegate.model.decision import Decision
from tidegate.model.question import AnswerRecord
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.questions.values import QuestionEvent


class Release(Value):
    """A waiting connection goes on, or is refused: its decision says which. Its ticket is void from here on."""

    ticket: int
    decision: Decision


class Save(Value):
    """An answer is to be saved; `Broker.saved` or `Broker.not_saved` hears how it went."""

    record: AnswerRecord


class Cut(Value):
    """Open connections of a task to a destination are to be closed, in whatever stage they are."""

    task: str
    host: str
    port: int
    reason: Reason


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Effect: TypeAlias = QuestionEvent | Release | Save | Cut
