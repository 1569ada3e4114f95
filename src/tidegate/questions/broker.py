"""Who waits for which question, and what an answer does: a pure state machine (SPEC section 5).

Rules of the file:

* Nothing here reads a clock, blocks or calls out. Each method takes the moment and returns effects, in order.
* A ticket is one waiting connection. It ends in exactly one Release, or in a withdrawal, and in nothing after that.
* An answer does not release anything: it asks for a Save, and `saved` releases (JRN-5).
* All connections of a task to the same host and port, in the same phase, share one question (ASK-1).
* States change along table.TRANSITIONS only. Everything is bounded.

What it does not do: say who may answer, whether somebody is there, or how a question is shown.
"""

from __future__ import annotations

from collections import OrderedDict

from tidegate.model.question import Answer, AnswerRecord, Question, State, Terms
from tidegate.model.reason import Reason
from tidegate.model.rule import Shape
from tidegate.model.verdict import Verdict
from tidegate.questions.display import domain_of, look, ungrouped
from tidegate.questions.effects import Cut, Release, Save
from tidegate.questions.errors import AlreadyAnsweredError, BadAnswerError, NoSuchQuestionError
from tidegate.questions.grants import NEXT_TRY, Grants
from tidegate.questions.meaning import answered, check_terms, key_of, of, refused
from tidegate.questions.table import TRANSITIONS, Event
from tidegate.questions.values import LONGEST_WAIT, MOST_OPEN, SHORTEST_WAIT, AskingTask, Moment, QuestionEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.model.decision import Decision
    from tidegate.model.question import FolderKey, GrantRecord
    from tidegate.model.verdict import Phase
    from tidegate.questions.effects import Effect
    from tidegate.questions.grants import Key

KEPT = 256  # closed questions that are still shown
FOLD = 0.25  # seconds between two tellings that nothing but the number of those waiting changed


class _Entry:
    """A question that is not closed."""

    __slots__ = ("deadline", "folder", "gave_up", "key", "question", "stale", "tickets", "told")

    def __init__(self, question: Question, key: Key, folder: FolderKey, deadline: float, told: float) -> None:
        self.question = question
        self.key = key
        self.folder = folder
        self.deadline = deadline
        self.told = told
        self.stale = False  # people have not been told how many wait
        self.gave_up = False
        self.tickets: dict[int, Decision] = {}


class Broker:
    """See the head of the file."""

    def __init__(self) -> None:
        self._tasks: dict[str, AskingTask] = {}
        self._entries: dict[int, _Entry] = {}
        self._of_task: dict[str, dict[int, _Entry]] = {}  # what a task asks costs nothing for the others' questions
        self._by_key: dict[Key, _Entry] = {}
        self._tickets: dict[int, _Entry] = {}
        self._closed: OrderedDict[int, Question] = OrderedDict()
        self._grants = Grants()
        self._stopped = False

    # Tasks.

    def open_task(self, task: AskingTask, grants: Iterable[GrantRecord] = ()) -> None:
        """Let a task ask from now on. `grants` are those of its past in another server.

        Those that count connections or bytes are not taken up: what was used of them is not known, so they are asked
        again.

        Raises:
            ValueError: when its wait is not from 1 minute to 8 hours.
        """
        if not SHORTEST_WAIT <= task.wait_seconds <= LONGEST_WAIT:
            raise ValueError(f"a wait of {task.wait_seconds} s is not from {SHORTEST_WAIT} to {LONGEST_WAIT} s")
        self._tasks[task.id] = task
        self._grants.restore(task.id, grants)

    def end_task(self, task: str) -> list[Effect]:
        """The task ended: its questions end with it, and so do its grants."""
        self._tasks.pop(task, None)
        self._grants.drop_task(task)
        return self._end(lambda entry: entry.key[0] == task, Reason.STOPPING)

    def phase_changed(self, task: str, phase: Phase) -> list[Effect]:
        """The task is in `phase` now: questions of another one end, and a new try is judged anew."""
        return self._end(lambda entry: entry.key[0] == task and entry.key[1] is not phase, Reason.PHASE_CHANGED)

    def stop(self) -> list[Effect]:
        """Refuse all that wait, and whoever asks from now on."""
        self._stopped = True
        self._tasks.clear()
        self._grants.clear()
        return self._end(lambda _: True, Reason.STOPPING)

    def settle(self, task: str, judge: Callable[[Decision], Decision], by: str) -> list[Effect]:
        """What a task may reach has changed: end the questions that are none any more.

        `judge` returns the decision of now in place of the one that asked. Those who wait go on, or are refused, by it.
        """
        effects: list[Effect] = []
        for entry in list(self._of_task.get(task, {}).values()):
            if entry.question.state is State.OPEN and judge(entry.question.decision).verdict is not Verdict.ASK:
                effects += [Release(ticket, judge(decision)) for ticket, decision in entry.tickets.items()]
                self._step(entry, Event.END, by=by)
                self._close(entry)
                effects.append(QuestionEvent(State.ENDED.value, self._closed[entry.question.id]))
        return effects

    # Connections.

    def known(self, task: str, decision: Decision, at: Moment) -> Decision | None:
        """Return the decision that an earlier answer makes of this one, counting the connection; None without one."""
        key = key_of(task, decision)
        held = self._grants.find(key, at.now, at.wall)
        if held is None:
            return None
        self._grants.use(key)
        return answered(decision, held.kind, held.question, held.by, held.terms)

    def ask(
        self, ticket: int, task: str, decision: Decision, at: Moment, *, number: int, present: bool
    ) -> list[Effect] | None:
        """Let a connection wait for an answer; None where its task may not ask.

        `number` is that of the question, should this open one. Where nobody is `present` it is refused at once.
        """
        if self._stopped:
            return [Release(ticket, decision.refuse(Reason.STOPPING, fix=""))]
        asking = self._tasks.get(task)
        if asking is None:
            return None
        known = self.known(task, decision, at)
        if known is not None:
            return [Release(ticket, known)]
        key = key_of(task, decision)
        entry = self._by_key.get(key)
        if not present or (entry is not None and at.now >= entry.deadline):
            if entry is not None:
                entry.gave_up = True  # what is answered later counts for its next try
            number = 0 if entry is None else entry.question.id
            return [Release(ticket, refused(decision, Reason.NOT_ANSWERED if present else Reason.NOBODY_THERE, number))]
        if entry is not None:
            entry.tickets[ticket] = decision
            self._tickets[ticket] = entry
            return self._counted(entry, Event.JOIN, at)
        if len(self._of_task.get(task, ())) >= MOST_OPEN:
            return [Release(ticket, decision.refuse(Reason.TOO_MANY_QUESTIONS, fix=""))]
        entry = self._open(asking, key, decision, at, number)
        entry.tickets[ticket] = decision
        self._tickets[ticket] = entry
        grouped = self._group(task, entry)
        return [QuestionEvent("opened", entry.question), *grouped]

    def withdraw(self, ticket: int, at: Moment) -> list[Effect]:
        """A client gave up. Its question stays open, and an answer counts for its next try (ASK-3)."""
        entry = self._tickets.pop(ticket, None)
        if entry is None:
            return []
        del entry.tickets[ticket]
        entry.gave_up = True
        return self._counted(entry, Event.LEAVE, at)

    def spend(self, decision: Decision, count: int) -> tuple[list[Effect], bool]:
        """Count bytes under a grant, and say whether it is good for them.

        When they are used up the grant ends, and with it what is open under it (ASK-7).
        """
        number = decision.grant.question if decision.grant is not None else 0
        enough, ended = self._grants.spend(number, count)
        return ([] if ended is None else [_cut(ended)]), enough

    def failed(self, decision: Decision) -> list[Effect]:
        """What a person allowed is refused all the same, by its address: they are told once (ADR-4)."""
        number = decision.grant.question if decision.grant is not None else 0
        question = self._closed.get(number)
        if question is None or question.problem:
            return []
        leads = f"; it leads to {decision.address}" if decision.address else ""
        question = self._closed[number] = question.replace(problem=f"{decision.reason.sentence}{leads}")
        return [QuestionEvent("failed", question)]

    # People.

    def answer(self, number: int, answer: Answer, terms: Terms, by: str, at: Moment) -> list[Effect]:
        """Take an answer; the first one counts. The effect is a Save, and `saved` or `not_saved` goes on from there.

        Raises:
            NoSuchQuestionError: for a number of no question.
            AlreadyAnsweredError: for a question that was answered, or is closed.
            BadAnswerError: for an answer that this question cannot have.
        """
        entry = self._entries.get(number)
        question = self._closed.get(number) if entry is None else entry.question
        if question is None:
            raise NoSuchQuestionError(number)
        if question.state is not State.OPEN and not self._may_be_late(question):
            raise AlreadyAnsweredError(question)
        if answer is Answer.REMEMBER and question.no_remember:
            raise BadAnswerError(f"this cannot be remembered: {question.no_remember}", fix="answer `task` or `allow`")
        check_terms(answer, terms, at.wall)
        if entry is None:
            entry = self._again(question, at)
        self._step(entry, Event.ANSWER, answer=answer, terms=terms, by=by, answered_at=at.wall)
        task, phase, host, port = entry.key
        return [Save(AnswerRecord(number, task, entry.folder, host, port, phase, answer, terms, by, at.wall))]

    def saved(self, number: int, at: Moment) -> list[Effect]:
        """The answer is on the disk: let those go on that wait, and keep what it means for later."""
        entry = self._entries.get(number)
        if entry is None:
            closed = self._closed[number]  # it ended meanwhile, and nobody waits for it any more
            assert TRANSITIONS[closed.state, Event.SAVED] is closed.state, "only an end overtakes a save"
            if closed.task in self._tasks:
                self._grants.keep(of(closed), closed, 0, at, gave_up=False)
            return []
        self._step(entry, Event.SAVED)
        question, tickets = entry.question, list(entry.tickets.items())
        answer, terms = question.answer, question.terms
        assert answer is not None, "what was saved is an answer"
        until = terms.until
        room = 0 if until is not None and at.wall >= until else terms.connections
        effects: list[Effect] = []
        for count, (ticket, decision) in enumerate(tickets):
            if answer.allows and room is not None and count >= room:
                effects.append(Release(ticket, decision.refuse(Reason.GRANT_ENDED, fix="")))
            else:
                effects.append(Release(ticket, answered(decision, answer, number, question.by, terms)))
        self._grants.keep(entry.key, question, len(tickets), at, gave_up=entry.gave_up)
        if answer is Answer.DENY_TASK:
            effects.append(Cut(question.task, question.host, question.port, Reason.DENIED_BY_PERSON))
        self._close(entry)
        return [*effects, QuestionEvent("answered", self._closed[number])]

    def not_saved(self, number: int) -> list[Effect]:
        """The answer is not on the disk: it does not count, and those who wait are refused (JRN-5)."""
        entry = self._entries.get(number)
        if entry is None:
            return []
        return self._finish(entry, Event.NOT_SAVED, Reason.NOT_SAVED)

    def forget_rule(self, folder: FolderKey, host: str, port: int, phase: Phase) -> None:
        """A remembered host was forgotten: living tasks of that folder that were told to remember it ask again."""
        for key, held in self._grants.every():
            task = self._tasks.get(key[0])
            here = task is not None and task.folder == folder and key[1:] == (phase, host, port)
            if here and held.kind is Answer.REMEMBER:
                self._grants.drop(key, held.question)

    def questions(self) -> list[Question]:
        """Return the open questions in the order they were opened, then closed ones, the latest first."""
        return [*(entry.question for entry in self._entries.values()), *reversed(self._closed.values())]

    def question(self, number: int) -> Question | None:
        """Return one question, None where there is none any more."""
        entry = self._entries.get(number)
        return self._closed.get(number) if entry is None else entry.question

    # Time.

    def tick(self, at: Moment) -> list[Effect]:
        """Do what is due: refuse what has waited to its end, end grants, and tell what was folded."""
        effects: list[Effect] = []
        for entry in list(self._entries.values()):
            if at.now >= entry.deadline:
                if entry.question.state is State.OPEN:
                    effects += self._finish(entry, Event.TIME_OUT, Reason.NOT_ANSWERED)
                    continue
                self._step(entry, Event.TIME_OUT)
                effects += self._refuse(entry, Reason.NOT_ANSWERED)
            if entry.stale and at.now >= entry.told + FOLD:
                effects += self._tell(entry, at)
        effects += [_cut(key) for key in self._grants.sweep(at)]
        return effects

    def next_due(self, at: Moment) -> float | None:
        """Return the seconds until `tick` has something to do, None when it has nothing."""
        due = [
            entry.deadline for entry in self._entries.values() if entry.tickets or entry.question.state is State.OPEN
        ]
        due += [entry.told + FOLD for entry in self._entries.values() if entry.stale]
        seconds = [moment - at.now for moment in due]
        seconds += self._grants.seconds_left(at.wall)
        return max(0.0, min(seconds)) if seconds else None

    # Inside.

    def _open(self, asking: AskingTask, key: Key, decision: Decision, at: Moment, number: int) -> _Entry:
        task, phase, host, port = key
        label, warnings = look(host)
        no_remember = asking.no_remember
        rule = decision.rule
        if not decision.destination.host.fits_a_rule:
            no_remember = "no rule can name this host"
        elif rule is not None and rule.port is not None and rule.shape in {Shape.EXACT, Shape.LITERAL}:
            no_remember = "a rule says to ask for exactly this host and port, and among equals ask wins"  # B146
        question = Question(
            number, task, asking.folder.path, host, port, phase, decision, at.wall, at.wall + asking.wait_seconds,
            label=label, warnings=warnings, no_remember=no_remember,
        )  # fmt: skip
        entry = _Entry(question, key, asking.folder, at.now + asking.wait_seconds, at.now)
        self._entries[number] = self._by_key[key] = entry
        self._of_task.setdefault(task, {})[number] = entry
        return entry

    def _may_be_late(self, question: Question) -> bool:
        """Whether an answer still counts, for a next try: nobody answered in time, and the task lives."""
        if question.state is not State.EXPIRED or question.task not in self._tasks:
            return False
        newer = self._by_key.get(of(question))
        if newer is not None:
            what = (
                f"question {question.id} was not answered in time, and is asked again as question {newer.question.id}"
            )
            raise BadAnswerError(what, fix=f"answer that one: tidegate answer {newer.question.id}")
        return True

    def _again(self, question: Question, at: Moment) -> _Entry:
        """Take up a question that expired; those who waited are gone, so an answer is for their next try (B140)."""
        del self._closed[question.id]
        entry = _Entry(question, of(question), self._tasks[question.task].folder, at.now + NEXT_TRY, at.now)
        entry.gave_up = True
        self._entries[question.id] = self._by_key[entry.key] = entry
        return entry

    def _group(self, task: str, opened: _Entry) -> list[Effect]:
        # Many names under one domain are shown together; each is answered by itself all the same (ASK-7).
        entries = self._of_task[task]
        told: list[Effect] = []
        domain = domain_of(opened.question.host)
        for number in ungrouped(opened.question, [entry.question for entry in entries.values()]):
            entry = entries[number]
            entry.question = entry.question.replace(group=domain)
            if entry is not opened:
                told.append(QuestionEvent("changed", entry.question))
        return told

    def _step(self, entry: _Entry, event: Event, **changes: object) -> None:
        entry.question = entry.question.replace(state=TRANSITIONS[entry.question.state, event], **changes)

    def _counted(self, entry: _Entry, event: Event, at: Moment) -> list[Effect]:
        self._step(entry, event, waiting=len(entry.tickets))
        if at.now < entry.told + FOLD:
            entry.stale = True
            return []
        return self._tell(entry, at)

    def _tell(self, entry: _Entry, at: Moment) -> list[Effect]:
        entry.stale, entry.told = False, at.now
        return [QuestionEvent("changed", entry.question)]

    def _refuse(self, entry: _Entry, reason: Reason) -> list[Effect]:
        tickets = list(entry.tickets.items())
        for ticket, _ in tickets:
            del entry.tickets[ticket], self._tickets[ticket]
        if tickets:
            entry.gave_up = True
            entry.question = entry.question.replace(waiting=0)
        return [Release(ticket, refused(decision, reason, entry.question.id)) for ticket, decision in tickets]

    def _finish(self, entry: _Entry, event: Event, reason: Reason) -> list[Effect]:
        self._step(entry, event)
        effects = self._refuse(entry, reason)
        self._close(entry)
        return [*effects, QuestionEvent(entry.question.state.value, self._closed[entry.question.id])]

    def _end(self, which: Callable[[_Entry], bool], reason: Reason) -> list[Effect]:
        effects: list[Effect] = []
        for entry in [entry for entry in self._entries.values() if which(entry)]:
            effects += self._finish(entry, Event.END, reason)
        return effects

    def _close(self, entry: _Entry) -> None:
        question = entry.question
        for ticket in entry.tickets:
            del self._tickets[ticket]
        entry.tickets = {}
        del self._entries[question.id], self._by_key[entry.key]
        of_task = self._of_task.get(question.task, {})
        of_task.pop(question.id, None)  # one that was answered late is not among those that its task may have open
        if not of_task:
            self._of_task.pop(question.task, None)
        self._closed[question.id] = question.replace(waiting=0)
        while len(self._closed) > KEPT:
            self._closed.popitem(last=False)


def _cut(key: Key) -> Cut:
    task, _, host, port = key
    return Cut(task, host, port, Reason.GRANT_ENDED)
