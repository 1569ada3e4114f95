"""The desk: threads around the broker."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.questions.kit import task, wanted
from tidegate.model.errors import NotSavedError
from tidegate.model.question import NO_TERMS, Answer, State, Terms
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.questions.errors import AlreadyAnsweredError, BadAnswerError, NoSuchQuestionError
from tidegate.questions.shell import Desk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.decision import Decision
    from tidegate.model.question import AnswerRecord
    from tidegate.questions.values import QuestionEvent


class Office:
    """A desk with all that it calls; `gate` runs what was posted to the gate's thread."""

    def __init__(self) -> None:
        self.saved: list[AnswerRecord] = []
        self.posted: list[Callable[[], None]] = []
        self.cuts: list[tuple[str, str, int, Reason]] = []
        self.told: list[QuestionEvent] = []
        self.answers: list[Decision] = []
        self.there = True
        self.number = 0
        self.now = 0.0
        self.disk: Callable[[AnswerRecord], None] = self.saved.append
        self.desk = Desk(
            clock=lambda: self.now,
            wall=lambda: 1000 + self.now,
            save=self.save,
            release=self.posted.append,
            cut=lambda *what: self.cuts.append(what),
            tell=self.told.append,
            present=lambda _: self.there,
            new_id=self.draw,
        )
        self.desk.open_task(task(wait=60))

    def save(self, record: AnswerRecord) -> None:
        self.disk(record)

    def draw(self) -> int:
        self.number += 1
        return self.number

    def ask(self, authority: str = "a.test:443") -> Callable[[], None] | None:
        return self.desk.ask("t1", wanted(authority), self.answers.append)

    def gate(self) -> list[Reason]:
        posted, self.posted[:] = list(self.posted), []
        for callback in posted:
            callback()
        return [decision.reason for decision in self.answers]


def test_an_answer_is_saved_before_anything_is_released() -> None:
    """JRN-5, B145: while the answer is saved nothing is on its way to the gate."""
    office = Office()
    office.ask()
    seen: list[Any] = []
    office.disk = lambda record: seen.append((record.answer, list(office.posted), office.desk.question(1).state))
    question = office.desk.answer(1, Answer.ALLOW, by="alice")
    assert seen == [(Answer.ALLOW, [], State.SAVING)]
    assert (question.state, question.by) == (State.ANSWERED, "alice")
    assert office.answers == []  # only the gate's thread answers
    assert office.gate() == [Reason.ALLOWED_BY_PERSON]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), NotSavedError("the disk is full")])
def test_an_answer_that_cannot_be_saved_refuses_and_says_so(failure: Exception) -> None:
    """JRN-5: the person is told, those who wait are refused, and the answer counts for nobody."""
    office = Office()
    office.ask()

    def full(_: object) -> None:
        raise failure

    office.disk = full
    with pytest.raises(NotSavedError, match="does not count"):
        office.desk.answer(1, Answer.TASK)
    assert office.gate() == [Reason.NOT_SAVED]
    assert office.desk.known("t1", wanted("a.test:443")) is None
    assert office.told[-1].kind == "ended"


def test_an_interrupt_while_saving_refuses() -> None:
    """JRN-5: whatever ends the save, nobody is let through and nobody waits."""
    office = Office()
    office.ask()

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    office.disk = interrupted
    with pytest.raises(KeyboardInterrupt):
        office.desk.answer(1, Answer.ALLOW)
    assert office.gate() == [Reason.NOT_SAVED]


def test_who_withdraws_is_not_answered() -> None:
    """ASK-3: also when the release is on its way already."""
    office = Office()
    leave, stay = office.ask(), office.ask()
    assert leave is not None
    assert stay is not None
    office.desk.answer(1, Answer.ALLOW)
    leave()
    assert office.gate() == [Reason.ALLOWED_BY_PERSON]
    stay()
    leave()
    assert office.gate() == [Reason.ALLOWED_BY_PERSON]


def test_nobody_there_is_answered_at_once() -> None:
    """B142, ASK-4: before `ask` returns, and without a question."""
    office = Office()
    office.there = False
    withdraw = office.ask()
    assert [decision.reason for decision in office.answers] == [Reason.NOBODY_THERE]
    assert withdraw is not None
    withdraw()
    assert office.desk.questions() == []
    office.there = True
    office.ask()
    assert office.desk.question(1).waiting == 1  # the number that was drawn for nobody is not lost


def test_an_unknown_task_asks_nobody() -> None:
    """Fails closed: the gate refuses at once."""
    office = Office()
    assert office.desk.ask("t9", wanted("a.test:443"), office.answers.append) is None
    assert office.answers == []


def test_a_question_that_cannot_be_numbered_is_not_asked() -> None:
    """JRN-5: a full disk refuses, and never stops the gate."""
    office = Office()
    office.desk._new_id = lambda: (_ for _ in ()).throw(NotSavedError("the disk is full"))
    office.ask()
    assert [decision.reason for decision in office.answers] == [Reason.NOT_SAVED]


def test_answers_race_and_one_wins() -> None:
    """ASK-2: two people at once; the other one hears who was first."""
    office = Office()
    office.ask()
    begun, go = threading.Event(), threading.Event()

    def slow(record: AnswerRecord) -> None:
        begun.set()
        assert go.wait(10)
        office.saved.append(record)

    office.disk = slow
    first = threading.Thread(target=office.desk.answer, args=(1, Answer.DENY, NO_TERMS, "alice"))
    first.start()
    assert begun.wait(10)
    with pytest.raises(AlreadyAnsweredError, match="'deny' by alice"):
        office.desk.answer(1, Answer.ALLOW, by="bob")
    office.ask("b.test:443")  # the gate goes on while an answer is saved
    go.set()
    first.join(10)
    assert office.gate() == [Reason.DENIED_BY_PERSON]
    assert [record.by for record in office.saved] == ["alice"]


def test_many_threads_release_each_connection_once() -> None:
    """ASK-2: whoever answers, ticks and stops at the same time, each connection ends exactly once."""
    office = Office()
    counts: dict[int, int] = {}

    def count(number: int) -> Callable[[Decision], None]:
        return lambda _: counts.__setitem__(number, counts.get(number, 0) + 1)

    for index in range(200):
        office.desk.ask("t1", wanted(f"h{index % 20}.test:443"), count(index))

    def answer_all() -> None:
        for question in office.desk.questions():
            try:
                office.desk.answer(question.id, Answer.TASK, by="x")
            except AlreadyAnsweredError:
                continue

    threads = [threading.Thread(target=answer_all) for _ in range(4)]
    threads += [threading.Thread(target=lambda: (time.sleep(0.001), office.desk.stop()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    office.gate()
    assert counts == dict.fromkeys(range(200), 1)


def test_time_refuses_and_is_asked_for() -> None:
    """ASK-2, B140: `next_due` says when, `tick` does it; an answer at that moment is for the next try only."""
    office = Office()
    assert office.desk.next_due() is None
    office.ask()
    assert office.desk.next_due() == 60
    office.now = 60
    assert office.desk.answer(1, Answer.ALLOW).state is State.ANSWERED
    office.desk.tick()
    assert office.gate() == [Reason.NOT_ANSWERED]
    assert office.desk.next_due() is None
    office.ask()
    assert office.gate()[-1] is Reason.ALLOWED_BY_PERSON


def test_stop_refuses_all_and_leaves_nothing_running() -> None:
    """ASK-3: nothing keeps the process alive, because the desk has no thread and no timer."""
    before = threading.active_count()
    office = Office()
    office.ask()
    office.desk.stop()
    office.ask()
    assert office.gate() == [Reason.STOPPING] * 2
    assert threading.active_count() == before
    assert office.desk.next_due() is None


def test_what_ends_is_cut_and_told() -> None:
    """ASK-2, ASK-7, ADR-4: cuts and events reach the server; bytes are counted over all connections."""
    office = Office()
    office.ask()
    office.desk.answer(1, Answer.TASK, Terms(bytes=10))
    decision = office.desk.known("t1", wanted("a.test:443"))
    assert decision is not None
    office.desk.failed("t1", decision.refuse(Reason.OWN_ADDRESS))
    assert office.told[-1].kind == "failed"
    assert office.desk.spend("t1", decision, 10)
    assert not office.desk.spend("t1", decision, 1)
    assert office.cuts == [("t1", "a.test", 443, Reason.GRANT_ENDED)]
    office.desk.phase_changed("t1", Phase.INSTALL)
    office.desk.close_task("t1")
    assert office.desk.known("t1", wanted("a.test:443")) is None


def test_who_answered_cannot_move_a_cursor() -> None:
    """ASK-6: the name of who answered is printable and short, wherever it came from."""
    office = Office()
    office.ask()
    question = office.desk.answer(1, Answer.DENY, by="\x1b[2Jalice\u202e" + "x" * 500)
    assert question.by.isprintable()
    assert len(question.by) == 80


def test_what_cannot_be_answered_changes_nothing() -> None:
    """A clear error for a wrong number or end; the question stays open."""
    office = Office()
    office.ask()
    with pytest.raises(NoSuchQuestionError):
        office.desk.answer(7, Answer.ALLOW)
    with pytest.raises(NoSuchQuestionError):
        office.desk.question(7)
    with pytest.raises(BadAnswerError):
        office.desk.answer(1, Answer.DENY, Terms(connections=1))
    assert office.desk.question(1).state is State.OPEN
    office.desk.forget_rule(task().folder, "a.test", 443, Phase.RUNTIME)
    assert office.saved == []


def test_one_broken_connection_does_not_keep_the_others_waiting() -> None:
    """A bug in one connection's answer is raised after all have theirs."""
    office = Office()

    def broken(_: Decision) -> None:
        raise RuntimeError("bug")

    office.desk.ask("t1", wanted("a.test:443"), broken)
    office.ask()
    office.desk.answer(1, Answer.ALLOW)
    with pytest.raises(RuntimeError, match="bug"):
        office.gate()
    assert [decision.verdict for decision in office.answers] == [Verdict.ALLOW]
