"""The desk: the thread-safe shell around the broker that gate, server and people talk to.

Rules of the file:

* One lock around the broker, never held while something is saved or anybody is called.
* Connections are answered on the gate's thread only: at once inside `ask`, or through `release`.
* The order of an answer: taken, saved, and only then released. What cannot be saved refuses (JRN-5).
* No thread and no timer of its own: who has one calls `tick` when `next_due` says so, and asks again after each event.
"""

from __future__ import annotations

from itertools import count
from threading import Lock

from tidegate.model.errors import NotSavedError, TidegateError
from tidegate.model.question import NO_TERMS, Answer, Question, Terms
from tidegate.model.reason import Reason
from tidegate.questions.broker import Broker
from tidegate.questions.effects import Cut, Release, Save
from tidegate.questions.errors import NoSuchQuestionError
from tidegate.questions.values import AskingTask, Moment, QuestionEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidegate.model.decision import Decision
    from tidegate.model.question import AnswerRecord, FolderKey, GrantRecord
    from tidegate.model.verdict import Phase
    from tidegate.questions.effects import Effect

MOST_SAID = 80  # characters of who answered


class Desk:
    """Implements model.seams.Asker.

    `clock` gives monotonic seconds, `wall` Unix time. `save` puts an answer on the disk, and raises where it cannot.
    `release` runs a callable on the gate's thread, soon. `cut` closes what a task has open to a host and port.
    `tell` hears of questions; `present` says whether somebody is there to answer a task's; `new_id` numbers them.
    All of them are called without a lock, on any thread; `cut`, `tell` and `present` must not block.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        save: Callable[[AnswerRecord], object],
        release: Callable[[Callable[[], None]], None],
        cut: Callable[[str, str, int, Reason], None],
        tell: Callable[[QuestionEvent], None],
        present: Callable[[str], bool],
        new_id: Callable[[], int],
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._save = save
        self._release = release
        self._cut = cut
        self._tell = tell
        self._present = present
        self._new_id = new_id
        self._lock = Lock()
        self._broker = Broker()
        self._numbers = count(1)
        self._waiting: dict[int, Callable[[Decision], None]] = {}
        self._spare: int | None = None  # a question's number that was drawn and not needed

    # Tasks (the server).

    def open_task(self, task: AskingTask, grants: Iterable[GrantRecord] = ()) -> None:
        """Let a task ask. `grants` are what the store has of its past.

        Raises:
            ValueError: when its wait is not from 1 minute to 8 hours.
        """
        with self._lock:
            self._broker.open_task(task, grants)

    def close_task(self, task: str) -> None:
        """The task ended: refuse what it waits for, and forget its grants."""
        with self._lock:
            effects = self._broker.end_task(task)
        self._do(effects)

    def phase_changed(self, task: str, phase: Phase) -> None:
        """The task is in `phase` now; questions of the phase before are refused, and asked anew by a new try."""
        with self._lock:
            effects = self._broker.phase_changed(task, phase)
        self._do(effects)

    def settle(self, task: str, judge: Callable[[Decision], Decision], by: str) -> None:
        """What the task may reach has changed; see Broker.settle. `judge` is pure, and called with the lock held."""
        with self._lock:
            effects = self._broker.settle(task, judge, by)
        self._do(effects)

    def stop(self) -> None:
        """Refuse all that wait, and all who ask from now on (ASK-3)."""
        with self._lock:
            effects = self._broker.stop()
        self._do(effects)

    # Connections (the gate's thread).

    def ask(self, task: str, decision: Decision, answer: Callable[[Decision], None]) -> Callable[[], None] | None:
        """See Asker.ask. Where nobody is there the answer is a refusal, at once."""
        present = self._present(task)
        try:
            number = self._number()
        except (NotSavedError, OSError):
            answer(decision.refuse(Reason.NOT_SAVED, fix=""))
            return _nothing
        with self._lock:
            ticket = next(self._numbers)
            effects = self._broker.ask(ticket, task, decision, self._at(), number=number, present=present)
            if self._broker.question(number) is None:
                self._spare = number
            if effects is None:
                return None
            own = next((effect for effect in effects if isinstance(effect, Release)), None)
            if own is None:
                self._waiting[ticket] = answer
        if own is not None:
            answer(own.decision)
            return _nothing
        self._do(effects)
        return lambda: self._withdraw(ticket)

    def known(self, task: str, decision: Decision) -> Decision | None:
        """See Asker.known."""
        with self._lock:
            return self._broker.known(task, decision, self._at())

    def failed(self, task: str, decision: Decision) -> None:  # noqa: ARG002 - a question's number is enough here
        """See Asker.failed."""
        with self._lock:
            effects = self._broker.failed(decision)
        self._do(effects)

    def spend(self, task: str, decision: Decision, count: int) -> bool:  # noqa: ARG002 - likewise
        """See Asker.spend."""
        with self._lock:
            effects, enough = self._broker.spend(decision, count)
        self._do(effects)
        return enough

    # People (any thread).

    def answer(self, number: int, answer: Answer, terms: Terms = NO_TERMS, by: str = "") -> Question:
        """Answer a question: returns it once the answer is on the disk and those who wait are on their way.

        Raises:
            NoSuchQuestionError, AlreadyAnsweredError, BadAnswerError: see Broker.answer; nothing has changed.
            NotSavedError: when it could not be saved; those who waited are refused.
        """
        refusal: TidegateError | None = None
        said = by if by.isprintable() else ascii(by)
        with self._lock:
            at = self._at()
            effects = self._broker.tick(at)
            try:
                effects += self._broker.answer(number, answer, terms, said[:MOST_SAID], at)
            except TidegateError as error:
                refusal = error
        self._do(effects)
        if refusal is not None:
            raise refusal
        record = next(effect.record for effect in effects if isinstance(effect, Save))
        try:
            self._save(record)
        except BaseException as error:
            with self._lock:
                effects = self._broker.not_saved(number)
            self._do(effects)
            if not isinstance(error, Exception):
                raise
            raise NotSavedError(
                f"the answer could not be saved, so it does not count: {error}", fix="make room on the disk"
            ) from error
        with self._lock:
            effects = self._broker.saved(number, self._at())
        self._do(effects)
        return self.question(number)

    def forget_rule(self, folder: FolderKey, host: str, port: int, phase: Phase) -> None:
        """A remembered host was forgotten in the store: living tasks that were told to remember it ask again."""
        with self._lock:
            self._broker.forget_rule(folder, host, port, phase)

    def questions(self) -> list[Question]:
        """Return the open questions in the order they were opened, then closed ones, the latest first."""
        with self._lock:
            return self._broker.questions()

    def question(self, number: int) -> Question:
        """Return one question.

        Raises:
            NoSuchQuestionError: when there is none, or it was closed long ago.
        """
        with self._lock:
            found = self._broker.question(number)
        if found is None:
            raise NoSuchQuestionError(number)
        return found

    # Time (whoever has a timer).

    def next_due(self) -> float | None:
        """Return the seconds until `tick` has something to do, None when it has nothing until the next event."""
        with self._lock:
            return self._broker.next_due(self._at())

    def tick(self) -> None:
        """Refuse what has waited to its end, and end grants that are over."""
        with self._lock:
            effects = self._broker.tick(self._at())
        self._do(effects)

    # Inside.

    def _at(self) -> Moment:
        return Moment(self._clock(), self._wall())

    def _number(self) -> int:
        with self._lock:
            number, self._spare = self._spare, None
        return self._new_id() if number is None else number

    def _withdraw(self, ticket: int) -> None:
        with self._lock:
            if self._waiting.pop(ticket, None) is None:
                return
            effects = self._broker.withdraw(ticket, self._at())
        self._do(effects)

    def _do(self, effects: Sequence[Effect]) -> None:
        released = [effect for effect in effects if isinstance(effect, Release)]
        if released:
            self._release(lambda: self._deliver(released))
        for effect in effects:
            if isinstance(effect, Cut):
                self._cut(effect.task, effect.host, effect.port, effect.reason)
            elif isinstance(effect, QuestionEvent):
                self._tell(effect)

    def _deliver(self, released: Sequence[Release]) -> None:
        # On the gate's thread, where withdrawals happen too: a connection gets one or the other.
        failure: Exception | None = None
        for release in released:
            with self._lock:
                answer = self._waiting.pop(release.ticket, None)
            if answer is not None:
                try:
                    answer(release.decision)
                except Exception as error:  # noqa: BLE001 - the others wait for theirs; it is raised below
                    failure = failure or error
        if failure is not None:
            raise failure


def _nothing() -> None:
    """Withdraw a connection that was answered at once."""
