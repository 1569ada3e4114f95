"""The broker under any order of events (SPEC section 5).

A model keeps what must hold: who waits and until when, what was answered for which task, phase, host and port, how much
of each answer was used. Whatever the broker lets through is checked against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.questions.kit import START, later, task, wanted
from tidegate.model.question import NO_TERMS, Answer, State, Terms
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.questions.broker import Broker
from tidegate.questions.effects import Cut, Release, Save
from tidegate.questions.errors import AlreadyAnsweredError, BadAnswerError, NoSuchQuestionError
from tidegate.questions.meaning import key_of
from tidegate.questions.table import OPEN, TRANSITIONS
from tidegate.questions.values import MOST_OPEN, QuestionEvent

if TYPE_CHECKING:
    from tidegate.model.decision import Decision
    from tidegate.model.question import AnswerRecord, Question
    from tidegate.questions.effects import Effect
    from tidegate.questions.grants import Key

TASKS = ("t1", "t2")
WAITS = {"t1": 60.0, "t2": 300.0}
DECISIONS = {
    (host, phase): wanted(f"{host}:443", phase)
    for phase in Phase
    for host in ("a.test", "b.test", *(f"x{index}.gen.test" for index in range(25)))
}
HOSTS = st.sampled_from(["a.test", "a.test", "b.test"])
TERMS = st.one_of(
    st.just((None, None, None)),
    st.tuples(st.one_of(st.none(), st.integers(1, 400)), st.one_of(st.none(), st.integers(1, 3)), st.none()),
    st.tuples(st.none(), st.none(), st.integers(1, 100)),
)


class Life(RuleBasedStateMachine):
    """One server's life. See the head of the file."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = Broker()
        self.at = START
        self.living: set[str] = set()
        self.phase = dict.fromkeys(TASKS, Phase.RUNTIME)
        self.stopped = False
        self.ticket = 0
        self.number = 0
        self.waiting: dict[int, tuple[Key, float]] = {}  # ticket -> what it wants, and when it must be over
        self.ended: set[int] = set()
        self.saving: dict[int, AnswerRecord] = {}
        self.saved: dict[int, AnswerRecord] = {}
        self.allowed: dict[int, int] = {}  # question -> connections that its answer let through
        self.at_saving: dict[int, int] = {}  # question -> how many waited when it was saved
        self.spent: dict[int, int] = {}
        self.late: set[int] = set()  # questions that were answered after they had expired
        self.states: dict[int, State] = {}
        self.grants: list[Decision] = []

    # What the world does.

    @initialize()
    def begin(self) -> None:
        for name in TASKS:
            self.broker.open_task(task(name, wait=WAITS[name]))
            self.living.add(name)

    @rule(name=st.sampled_from(TASKS), host=HOSTS, present=st.sampled_from([True, True, True, False]))
    def ask(self, name: str, host: str, *, present: bool) -> None:
        self.ticket += 1
        decision = DECISIONS[host, self.phase[name]]
        key = key_of(name, decision)
        was_open = self._open_of(name)
        joins = any((question.task, question.phase, question.host) == key[:3] for question in was_open)
        effects = self.broker.ask(self.ticket, name, decision, self.at, number=self.number + 1, present=present)
        if effects is None:
            assert name not in self.living, "a living task may ask"
            return
        self.waiting[self.ticket] = (key, self.at.now + WAITS[name])
        opened = self.broker.question(self.number + 1) is not None
        self.number += opened
        self._take(effects)
        if self.ticket in self.waiting:
            assert present, "nobody there, and it waits"
            assert joins is not opened
        if opened:
            assert len([one for one in was_open if one.id not in self.late]) < MOST_OPEN

    @rule(name=st.sampled_from(TASKS))
    def flood(self, name: str) -> None:
        for index in range(25):
            self.ask(name, f"x{index}.gen.test", present=True)

    @rule(kind=st.sampled_from(tuple(Answer)), terms=TERMS)
    @precondition(lambda self: any(one.state is State.OPEN for one in self.broker.questions()))
    def answer_and_save(self, kind: Answer, terms: tuple[int | None, int | None, int | None]) -> None:
        number = next(one.id for one in self.broker.questions() if one.state is State.OPEN)
        until = None if terms[0] is None else self.at.wall + terms[0]
        end = Terms(until, terms[1], terms[2]) if kind in {Answer.ALLOW, Answer.TASK} else NO_TERMS
        (save,) = self.broker.answer(number, kind, end, "alice", self.at)
        assert isinstance(save, Save)
        self.saving[number] = save.record
        self._save(number)

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def give_up(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.waiting)))
        self._take(self.broker.withdraw(ticket, self.at))
        del self.waiting[ticket]
        self.ended.add(ticket)

    @rule(data=st.data())
    @precondition(lambda self: self.ended)
    def give_up_too_late(self, data: st.DataObject) -> None:
        assert self.broker.withdraw(data.draw(st.sampled_from(sorted(self.ended))), self.at) == []

    @rule(data=st.data(), answer=st.sampled_from(tuple(Answer)), terms=TERMS)
    @precondition(lambda self: self.number)
    def answer(self, data: st.DataObject, answer: Answer, terms: tuple[int | None, int | None, int | None]) -> None:
        number = data.draw(st.integers(1, self.number))
        bounded = answer in {Answer.ALLOW, Answer.TASK}
        until = None if terms[0] is None else self.at.wall + terms[0]
        end = Terms(until, terms[1], terms[2]) if bounded else NO_TERMS
        question = self.broker.question(number)
        try:
            effects = self.broker.answer(number, answer, end, "alice", self.at)
        except (AlreadyAnsweredError, NoSuchQuestionError):
            assert question is None or question.state is not State.OPEN
            return
        except BadAnswerError:
            assert question is not None
            assert question.state is State.EXPIRED, "it can be asked again as another one"
            return
        assert question is not None
        if question.state is State.EXPIRED:
            assert question.task in self.living
            self.late.add(number)
        else:
            assert question.state is State.OPEN
            assert self.at.now < self._deadline(number)
        (save,) = effects  # nothing else happens: an answer is on the disk before anything follows from it
        assert isinstance(save, Save)
        self.saving[number] = save.record

    @rule(data=st.data())
    @precondition(lambda self: self.saving)
    def save(self, data: st.DataObject) -> None:
        self._save(data.draw(st.sampled_from(sorted(self.saving))))

    def _save(self, number: int) -> None:
        record = self.saving.pop(number)
        self.saved[number] = record
        self.at_saving[number] = sum(key == self._key(record) for key, _ in self.waiting.values())
        self._take(self.broker.saved(number, self.at))
        self._nobody_waits_for(record)

    @rule(data=st.data())
    @precondition(lambda self: self.saving)
    def fail_to_save(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.saving)))
        record = self.saving.pop(number)
        self._take(self.broker.not_saved(number))
        self._nobody_waits_for(record)

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.25, 1.0, 30.0, 59.9, 60.0, 299.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        due = self.broker.next_due(self.at)
        earliest = min((deadline - self.at.now for _, deadline in self.waiting.values()), default=None)
        if earliest is not None:
            assert due is not None, "somebody waits and nothing is due"
            assert due <= max(0.0, earliest) + 1e-6, "nobody would look in time"
        self.at = later(seconds, self.at)
        self._take(self.broker.tick(self.at))
        due = self.broker.next_due(self.at)
        assert due is None or due > 0, "a tick leaves nothing due"

    @rule(name=st.sampled_from(TASKS), phase=st.sampled_from(tuple(Phase)))
    def change_phase(self, name: str, phase: Phase) -> None:
        self.phase[name] = phase
        self._take(self.broker.phase_changed(name, phase))
        assert all(key[0] != name or key[1] is phase for key, _ in self.waiting.values())

    @rule(name=st.sampled_from(TASKS), host=HOSTS, allows=st.booleans())
    def the_operator_has_a_rule(self, name: str, host: str, *, allows: bool) -> None:
        def judge(decision: Decision) -> Decision:
            if decision.destination.host.text != host:
                return decision
            return decision.replace(verdict=Verdict.ALLOW if allows else Verdict.DENY, name="operator")

        before = {one.id: one.state for one in self.broker.questions()}
        for effect in self.broker.settle(name, judge, "alice"):
            if isinstance(effect, Release):
                key, _ = self.waiting.pop(effect.ticket)
                self.ended.add(effect.ticket)
                assert key[0] == name
                assert effect.decision.destination.host.text == host
                assert effect.decision.name == "operator"
            else:
                assert isinstance(effect, QuestionEvent)
                assert before[effect.question.id] is State.OPEN
                assert (effect.question.task, effect.question.host) == (name, host)
        assert not [one for one in self._open_of(name) if one.host == host and one.state is State.OPEN]

    @rule(name=st.sampled_from(TASKS))
    def end_task(self, name: str) -> None:
        self.living.discard(name)
        self._take(self.broker.end_task(name))
        self._forget(name)
        assert all(key[0] != name for key, _ in self.waiting.values())

    @rule(name=st.sampled_from(TASKS))
    @precondition(lambda self: not self.stopped)
    def begin_task_anew(self, name: str) -> None:
        if name not in self.living:
            self.broker.open_task(task(name, wait=WAITS[name]))
            self.living.add(name)

    @rule(host=HOSTS, phase=st.sampled_from(tuple(Phase)))
    def forget_rule(self, host: str, phase: Phase) -> None:
        self.broker.forget_rule(task().folder, host, 443, phase)
        for number, record in list(self.saved.items()):
            if record.answer is Answer.REMEMBER and (record.host, record.phase) == (host, phase):
                del self.saved[number]

    @rule(data=st.data(), count=st.integers(1, 60))
    @precondition(lambda self: self.grants)
    def move_bytes(self, data: st.DataObject, count: int) -> None:
        decision = data.draw(st.sampled_from(self.grants))
        assert decision.grant is not None
        number = decision.grant.question
        effects, enough = self.broker.spend(decision, count)
        self._take(effects)
        if enough:
            self.spent[number] = self.spent.get(number, 0) + count
            assert decision.grant.bytes is not None
            assert self.spent[number] <= decision.grant.bytes
            assert number in self.saved

    @rule()
    @precondition(lambda self: self.number > 10)
    def stop(self) -> None:
        self.stopped = True
        self.living.clear()
        self._take(self.broker.stop())
        for name in TASKS:
            self._forget(name)
        assert self.waiting == {}
        assert self.broker.next_due(self.at) is None

    # What must hold.

    @invariant()
    def nothing_waits_past_its_deadline(self) -> None:
        assert all(self.at.now < deadline for _, deadline in self.waiting.values())

    @invariant()
    def the_count_of_those_that_wait_is_right(self) -> None:
        questions = [question for question in self.broker.questions() if question.state in OPEN]
        for question in questions:
            key = (question.task, question.phase, question.host, question.port)
            assert question.waiting == sum(key == wants for wants, _ in self.waiting.values())
        assert sum(question.waiting for question in questions) == len(self.waiting)

    @invariant()
    def few_questions_are_open(self) -> None:
        for name in TASKS:
            keys = [(question.phase, question.host) for question in self._open_of(name)]
            assert len(keys) == len(set(keys))
            assert len([one for one in self._open_of(name) if one.id not in self.late]) <= MOST_OPEN

    @invariant()
    def states_change_along_the_table(self) -> None:
        for question in self.broker.questions():
            before = self.states.get(question.id, State.OPEN)
            if question.state is not before:
                reached, new = {before}, {before}
                while new:  # more than one event may have happened since
                    new = {after for (state, _), after in TRANSITIONS.items() if state in new} - reached
                    reached |= new
                assert question.state in reached
            self.states[question.id] = question.state
            assert (question.state in OPEN) or question.waiting == 0

    def teardown(self) -> None:
        """A stop ends it all, whatever went before."""
        self._take(self.broker.stop())
        assert self.waiting == {}

    # The model.

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Release):
                assert effect.ticket in self.waiting, "released twice, or after it gave up"
                key, deadline = self.waiting.pop(effect.ticket)
                self.ended.add(effect.ticket)
                assert key_of(key[0], effect.decision) == key
                assert effect.decision.verdict is not Verdict.ASK
                if effect.decision.verdict is Verdict.ALLOW:
                    self._allow(key, effect.decision)
                    assert self.at.now < deadline
            elif isinstance(effect, Cut):
                assert effect.reason in {Reason.GRANT_ENDED, Reason.DENIED_BY_PERSON}
            else:
                assert isinstance(effect, QuestionEvent)

    def _allow(self, key: Key, decision: Decision) -> None:
        # No allow without a saved answer of that task, phase, host and port that allows and is not over.
        assert decision.grant is not None
        number = decision.grant.question
        record = self.saved[number]
        assert record.answer.allows
        assert self._key(record) == key
        assert key[0] in self.living
        count = self.allowed[number] = self.allowed.get(number, 0) + 1
        if record.terms.connections is not None:
            assert count <= record.terms.connections
        if record.terms.until is not None:
            assert self.at.wall < record.terms.until
        if record.answer is Answer.ALLOW and record.terms == NO_TERMS:
            assert count <= self.at_saving[number] + 1  # those that waited, and one next try
        if record.terms.bytes is not None and decision not in self.grants:
            self.grants.append(decision)

    def _nobody_waits_for(self, record: AnswerRecord) -> None:
        assert all(key != self._key(record) for key, _ in self.waiting.values())

    def _forget(self, name: str) -> None:
        for number in [number for number, record in self.saved.items() if record.task == name]:
            del self.saved[number]

    def _open_of(self, name: str) -> list[Question]:
        return [one for one in self.broker.questions() if one.task == name and one.state in OPEN]

    def _deadline(self, number: int) -> float:
        question = self.broker.question(number)
        assert question is not None
        return START.now + question.deadline_at - START.wall

    @staticmethod
    def _key(record: AnswerRecord) -> Key:
        return record.task, record.phase, record.host, record.port


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestLife.__doc__ = "ASK-1 to ASK-7 under random interleavings of all that can happen; see the head of the file."
