"""The life of a question as a table (the diagram in docs/questions.md is made from it).

`TRANSITIONS` says which state a question is in after an event; a pair that is not in it does not happen, and the broker
raises rather than guess. Nothing waits in ANSWERED, EXPIRED and ENDED; only an answer that comes late leads out of one.
"""

from __future__ import annotations

from tidegate.model.closed import Closed
from tidegate.model.question import State


class Event(Closed):
    """What happens to a question."""

    JOIN = "join"  # one more connection waits
    LEAVE = "leave"  # a client gave up
    ANSWER = "answer"  # a person answered
    SAVED = "saved"  # the answer is on the disk
    NOT_SAVED = "not saved"
    TIME_OUT = "time-out"  # the task's wait is over
    END = "end"  # of the task, of its phase, or of the server


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.OPEN, Event.JOIN): State.OPEN,
    (State.OPEN, Event.LEAVE): State.OPEN,  # it outlives an impatient client (ASK-3)
    (State.OPEN, Event.ANSWER): State.SAVING,
    (State.OPEN, Event.TIME_OUT): State.EXPIRED,
    (State.OPEN, Event.END): State.ENDED,
    (State.EXPIRED, Event.ANSWER): State.SAVING,  # too late for those who waited, in time for their next try
    (State.SAVING, Event.JOIN): State.SAVING,
    (State.SAVING, Event.LEAVE): State.SAVING,
    (State.SAVING, Event.SAVED): State.ANSWERED,
    (State.SAVING, Event.NOT_SAVED): State.ENDED,
    (State.SAVING, Event.TIME_OUT): State.SAVING,  # those waiting are refused; the answer was in time
    (State.SAVING, Event.END): State.ENDED,
    (State.ENDED, Event.SAVED): State.ENDED,  # a disk slower than the end of the task
    (State.ENDED, Event.NOT_SAVED): State.ENDED,
}

OPEN = frozenset((State.OPEN, State.SAVING))


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> open: ask"]
    lines += [f"    {before.value} --> {after.value}: {event.value}" for (before, event), after in TRANSITIONS.items()]
    lines += [f"    {state.value} --> [*]" for state in State if state not in OPEN]
    return "\n".join(lines)
