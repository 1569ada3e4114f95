"""The questions of a run that has a gate of its own: a desk in the gate's process, answered at the run's terminal.

Rules of the file: everything happens on the gate's one thread, also the saving of an answer, which holds up this run
and nobody else's. What is told to the front is a state, not a step: it is folded, and bounded by how many questions a
task may have. Only loaded with --ask.
"""

from __future__ import annotations

from time import monotonic

from tidegate.model.errors import StartError, TidegateError
from tidegate.model.question import NO_TERMS, Answer
from tidegate.questions.errors import AlreadyAnsweredError
from tidegate.questions.shape import question_shape
from tidegate.questions.shell import Desk
from tidegate.questions.values import AskingTask
from tidegate.runtime.answers import AnswerBook
from tidegate.state.folders import folder_key, why_not_remembered
from tidegate.state.sqlite import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tidegate.gate.gate import Gate, GateTask
    from tidegate.model.reason import Reason
    from tidegate.model.verdict import Phase
    from tidegate.questions.values import QuestionEvent
    from tidegate.runtime.alone import AloneBook

BY = "terminal"
_TICK = 1.0  # seconds between looks at the clocks, at most
_LIVE = frozenset(("opened", "changed"))
LOCKED = "the policy is locked"


class TerminalDesk:
    """The desk of one run. `say` sends a message to its front, `wall` gives Unix time.

    Raises:
        StartError: when answers could not be kept.
    """

    def __init__(
        self,
        order: dict[str, Any],
        alone: AloneBook,
        *,
        locked: bool,
        say: Callable[[tuple[Any, ...]], None],
        wall: Callable[[], float],
    ) -> None:
        self._task = order["task"]
        self._alone = alone
        self._say = say
        self._attended = True
        self._ticking = False
        self._gate: Gate | None = None
        self._gate_task: GateTask | None = None
        self._store = open_store(order["state"])
        self._answers = AnswerBook(self._store, alone.open(), alone.folder, warn=lambda line: say(("warn", line)))
        try:
            self._answers.put_right()
            wait = order.get("wait_seconds") or self._store.settings().wait_seconds
        except TidegateError as error:
            raise StartError(error.what, fix=error.fix, code="store") from None
        except OSError as error:
            raise StartError(f"the action log cannot be used: {error.strerror}", code="journal") from None
        self.desk = Desk(
            clock=monotonic,
            wall=wall,
            save=self._answers.save,
            release=self._release,
            cut=self._cut,
            tell=self._tell,
            present=lambda _task: self._attended,
            new_id=self._store.next_question_id,
        )
        folder = folder_key(order["folder"])
        why_not = LOCKED if locked else why_not_remembered(folder, order["home"])
        self._asking = AskingTask(self._task, folder, wait, why_not)
        self.desk.open_task(self._asking)

    def serve(self, gate: Gate, task: GateTask) -> None:
        """Ask about this task of this gate."""
        self._gate, self._gate_task = gate, task

    def phase_changed(self, phase: Phase) -> None:
        """The set-up has ended: what it asked is refused."""
        self.desk.phase_changed(self._task, phase)

    def answer(self, number: int, answer: str) -> None:
        """Take an answer from the front. One that comes too late is nobody's fault."""
        try:
            self.desk.answer(number, Answer(answer), NO_TERMS, BY)
        except AlreadyAnsweredError:
            return
        except TidegateError as error:
            self._say(("warn", str(error)))

    def unattended(self) -> None:
        """The terminal is gone: refuse who waits, and who comes; what was allowed for the task stays so."""
        self._attended = False
        self.desk.close_task(self._task)
        self.desk.open_task(self._asking, self._store.grants(self._task))

    def close(self) -> None:
        """The gate has ended, and everything that waited with it."""
        self._store.close()

    def _release(self, callback: Callable[[], None]) -> None:
        assert self._gate is not None, "who waits, waits in a gate"
        self._gate.post(callback)

    def _cut(self, _task: str, host: str, port: int, reason: Reason) -> None:
        gate, task = self._gate, self._gate_task
        if gate is None or task is None:
            return

        def cut() -> None:
            gate.cut(task, reason, lambda entry: entry.leads_to(host, port))

        gate.post(cut)  # those who wait have their answer first, which is posted too: they are told who refused them

    def _tell(self, event: QuestionEvent) -> None:
        if event.kind == "failed":
            self._say(("warn", f"{event.question.host}:{event.question.port}: {event.question.problem}"))
            return
        if event.kind == "opened":
            self._alone.add(
                "question.opened", question=event.question.id, host=str(event.question.decision.destination)
            )
            self._alone.flush()
        elif event.kind in ("expired", "ended"):
            self._alone.add(f"question.{event.kind}", question=event.question.id)
        self._say(("asked" if event.kind in _LIVE else "closed", question_shape(event.question, "")))
        self._set_clock()

    def _set_clock(self) -> None:
        due = self.desk.next_due()
        if due is not None and self._gate is not None and not self._ticking:
            self._ticking = True
            self._gate.later(min(due, _TICK), self._tick)

    def _tick(self) -> None:
        self._ticking = False
        self.desk.tick()
        self._set_clock()
