"""What the broker is told: the tasks that may ask, and the time."""

from __future__ import annotations

from tidegate.model.question import FolderKey, Question
from tidegate.model.value import Value

MOST_OPEN = 20  # questions of one task (ASK-7)
SHORTEST_WAIT = 60  # seconds (ASK-2)
LONGEST_WAIT = 8 * 3600
USUAL_WAIT = 15 * 60


class AskingTask(Value):
    """A living task. `wait_seconds` is how long its questions wait; `no_remember` says why its folder cannot remember.

    Raises:
        ValueError: (checked by the broker) when the wait is not from 1 minute to 8 hours.
    """

    id: str
    folder: FolderKey
    wait_seconds: float = USUAL_WAIT
    no_remember: str = ""


class Moment(Value):
    """One reading of both clocks: `now` is monotonic and bounds waits, `wall` is Unix time and is shown."""

    now: float
    wall: float


class QuestionEvent(Value):
    """What people are told. `kind`: opened, changed, answered, expired, ended, or failed (see `question.problem`)."""

    kind: str
    question: Question
