"""What questions, state, server and terminal say to each other about a person's answer (ASK-1, ASK-7, ASK-8).

Rules of the file: values and closed enums only. Hosts are canonical (A-labels), times are Unix seconds unless a name
says otherwise. How a question moves from state to state is in questions/table.py.
"""

from __future__ import annotations

from tidegate.model.closed import Closed
from tidegate.model.decision import Decision
from tidegate.model.value import Value
from tidegate.model.verdict import Phase


class Answer(Closed):
    """What a person can say (ASK-2)."""

    ALLOW = "allow"  # those waiting now, and one next try of a client that gave up
    TASK = "task"  # allow until the task ends
    REMEMBER = "remember"  # allow on this folder from now on
    DENY = "deny"
    DENY_TASK = "deny-task"  # deny until the task ends, and cut what is open

    @property
    def allows(self) -> bool:
        """Whether bytes may move."""
        return self in {Answer.ALLOW, Answer.TASK, Answer.REMEMBER}


class State(Closed):
    """Where a question is."""

    OPEN = "open"
    SAVING = "saving"  # answered, and the answer is on its way to the disk
    ANSWERED = "answered"
    EXPIRED = "expired"
    ENDED = "ended"  # with its task or phase, with the server, or because its answer could not be saved


class Terms(Value):
    """The end of what ALLOW or TASK allow (ASK-7); None is no bound, and the first one reached ends it.

    `until` is a time, `connections` a number of them from now on (those waiting count), `bytes` the sum of both
    directions.
    """

    until: float | None = None
    connections: int | None = None
    bytes: int | None = None


NO_TERMS = Terms()


class FolderKey(Value):
    """A folder as remembered answers know it: real path, device and inode, all three (ASK-8)."""

    path: str
    dev: int
    ino: int


class Question(Value):
    """One question as people see it: the state of the connections of one task to one host and port that wait.

    `waiting` is how many wait now. `label` is the Unicode form of `host` where it is safe to show, else ''.
    `warnings` are short clauses about the name. `group` is the domain under which the task asks for so many names that
    one card should show them all, else ''. `no_remember` says why REMEMBER is not offered, '' where it is. `problem`
    says why an allowed connection failed all the same (ADR-4).
    """

    id: int
    task: str
    folder: str
    host: str
    port: int
    phase: Phase
    decision: Decision
    opened_at: float
    deadline_at: float
    waiting: int = 1
    state: State = State.OPEN
    answer: Answer | None = None
    terms: Terms = NO_TERMS
    by: str = ""
    answered_at: float | None = None
    label: str = ""
    warnings: tuple[str, ...] = ()
    group: str = ""
    no_remember: str = ""
    problem: str = ""


class AnswerRecord(Value):
    """An answer as it is saved, before anything moves because of it."""

    question: int
    task: str
    folder: FolderKey
    host: str
    port: int
    phase: Phase
    answer: Answer
    terms: Terms
    by: str
    at: float


class GrantRecord(Value):
    """What an answer means for the rest of its task: `kind` is TASK, REMEMBER or DENY_TASK, or ALLOW with terms."""

    question: int
    task: str
    host: str
    port: int
    phase: Phase
    kind: Answer
    terms: Terms
    by: str
