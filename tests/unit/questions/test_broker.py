"""The broker: who waits for which question, and what an answer does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.questions.kit import FOLDER, START, later, task, wanted
from tidegate.model.question import NO_TERMS, Answer, FolderKey, GrantRecord, State, Terms
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.questions.broker import FOLD, KEPT, Broker
from tidegate.questions.effects import Cut, Release, Save
from tidegate.questions.errors import AlreadyAnsweredError, BadAnswerError, NoSuchQuestionError
from tidegate.questions.grants import DENIED, NEXT_TRY
from tidegate.questions.values import MOST_OPEN, Moment, QuestionEvent

if TYPE_CHECKING:
    from tidegate.model.decision import Decision
    from tidegate.questions.effects import Effect
    from tidegate.questions.values import AskingTask


class Talk:
    """A broker with tickets and numbers that count up, and what became of each ticket."""

    def __init__(self, *tasks: AskingTask) -> None:
        self.broker = Broker()
        for one in tasks or (task(),):
            self.broker.open_task(one)
        self.at = START
        self.ticket = 0
        self.number = 0
        self.released: dict[int, Reason] = {}
        self.cuts: list[Cut] = []
        self.told: list[QuestionEvent] = []
        self.last: Decision | None = None  # of the latest that was released

    def take(self, effects: list[Effect] | None) -> None:
        """Carry out effects."""
        for effect in effects or ():
            if isinstance(effect, Release):
                assert effect.ticket not in self.released, "released twice"
                assert effect.decision.verdict is not Verdict.ASK
                self.released[effect.ticket] = effect.decision.reason
                self.last = effect.decision
            elif isinstance(effect, Cut):
                self.cuts.append(effect)
            elif isinstance(effect, QuestionEvent):
                self.told.append(effect)

    def ask(self, authority: str = "a.test:443", *, name: str = "t1", present: bool = True, **more: object) -> int:
        """Ask, and return the ticket."""
        self.ticket += 1
        number = self.number + 1
        decision = wanted(authority, **more)  # type: ignore[arg-type]
        self.take(self.broker.ask(self.ticket, name, decision, self.at, number=number, present=present))
        if self.broker.question(number) is not None:
            self.number = number
        return self.ticket

    def answer(self, answer: Answer, terms: Terms = NO_TERMS, number: int | None = None) -> None:
        """Answer the latest question, and save it."""
        number = number or self.number
        (save,) = self.broker.answer(number, answer, terms, "alice", self.at)
        assert isinstance(save, Save)
        assert save.record.answer is answer
        self.take(self.broker.saved(number, self.at))

    def leave(self, ticket: int) -> None:
        """Give up."""
        self.take(self.broker.withdraw(ticket, self.at))

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.at = later(seconds, self.at)
        self.take(self.broker.tick(self.at))


def test_all_who_want_the_same_share_one_question() -> None:
    """ASK-1, B143: 500 connections to one host and port are one question, and one answer lets them all through."""
    talk = Talk()
    tickets = [talk.ask() for _ in range(500)]
    (question,) = talk.broker.questions()
    assert (question.task, question.host, question.port, question.waiting) == ("t1", "a.test", 443, 500)
    assert question.decision.name == "no-rule"
    assert (question.opened_at, question.deadline_at) == (START.wall, START.wall + 900)
    assert talk.released == {}
    talk.answer(Answer.ALLOW)
    assert talk.released == dict.fromkeys(tickets, Reason.ALLOWED_BY_PERSON)
    assert talk.told[0].kind == "opened"
    assert talk.told[-1].kind == "answered"
    assert len(talk.told) == 2  # the 499 others were not told one by one


@pytest.mark.parametrize(
    ("first", "second"), [("a.test:443", "A.TEST.:443"), ("a.test.:443", "a.test:443"), ("1.2.3.4:80", "1.2.3.4:80")]
)
def test_the_same_host_in_another_spelling_is_the_same_question(first: str, second: str) -> None:
    """B145, POL-3: the key is canonical."""
    talk = Talk()
    asks = {"ask": ("1.2.3.4",)} if first[0] == "1" else {}
    talk.ask(first, **asks)
    talk.ask(second, **asks)
    assert len(talk.broker.questions()) == 1


@pytest.mark.parametrize("other", ["b.test:443", "a.test:444", "x.a.test:443"])
def test_another_host_or_port_is_another_question(other: str) -> None:
    """ASK-1: an answer lets nothing through that it was not about."""
    talk = Talk()
    first, second = talk.ask(), talk.ask(other)
    talk.answer(Answer.TASK, number=1)
    assert talk.released == {first: Reason.ALLOWED_BY_PERSON}
    talk.answer(Answer.DENY, number=2)
    assert talk.released[second] is Reason.DENIED_BY_PERSON


def test_another_task_and_another_phase_are_asked_for_themselves() -> None:
    """ASK-2: what one task was allowed another was not; neither was its set-up."""
    talk = Talk(task("t1"), task("t2"))
    talk.ask()
    talk.answer(Answer.TASK)
    other = talk.ask(name="t2")
    setup = talk.ask(phase=Phase.INSTALL)
    assert other not in talk.released
    assert setup not in talk.released
    assert talk.released[talk.ask()] is Reason.ALLOWED_BY_PERSON


def test_an_answer_releases_nothing_before_it_is_saved() -> None:
    """JRN-5, B145: the answer is on the disk first; who joins meanwhile waits for it too."""
    talk = Talk()
    first = talk.ask()
    (save,) = talk.broker.answer(1, Answer.ALLOW, NO_TERMS, "alice", talk.at)
    assert isinstance(save, Save)
    second = talk.ask()
    assert talk.released == {}
    assert talk.broker.questions()[0].state is State.SAVING
    talk.take(talk.broker.saved(1, talk.at))
    assert talk.released == dict.fromkeys((first, second), Reason.ALLOWED_BY_PERSON)


def test_an_answer_that_cannot_be_saved_refuses() -> None:
    """JRN-5: those who wait are refused, nothing of the answer counts, and the next try asks again."""
    talk = Talk()
    first = talk.ask()
    talk.broker.answer(1, Answer.TASK, NO_TERMS, "alice", talk.at)
    talk.take(talk.broker.not_saved(1))
    assert talk.released == {first: Reason.NOT_SAVED}
    assert talk.broker.questions()[0].state is State.ENDED
    talk.ask()
    assert talk.broker.questions()[0].id == 2


def test_the_first_answer_counts() -> None:
    """ASK-2: the second one hears who was first, while it is saved and after."""
    talk = Talk()
    talk.ask()
    talk.broker.answer(1, Answer.DENY, NO_TERMS, "alice", talk.at)
    for _ in range(2):
        with pytest.raises(AlreadyAnsweredError) as caught:
            talk.broker.answer(1, Answer.ALLOW, NO_TERMS, "bob", talk.at)
        assert (caught.value.question.answer, caught.value.question.by) == (Answer.DENY, "alice")
        talk.take(talk.broker.saved(1, talk.at) if talk.broker.questions()[0].state is State.SAVING else [])
    with pytest.raises(NoSuchQuestionError):
        talk.broker.answer(2, Answer.ALLOW, NO_TERMS, "bob", talk.at)


def test_a_question_outlives_an_impatient_client() -> None:
    """ASK-3, B140: the retry joins the question that is open."""
    talk = Talk()
    talk.leave(talk.ask())
    assert talk.broker.questions()[0].waiting == 0
    retry = talk.ask()
    assert [question.id for question in talk.broker.questions()] == [1]
    talk.answer(Answer.ALLOW)
    assert talk.released == {retry: Reason.ALLOWED_BY_PERSON}


@pytest.mark.parametrize(
    ("answer", "reason", "seconds", "counts"),
    [
        (Answer.ALLOW, Reason.ALLOWED_BY_PERSON, NEXT_TRY - 0.1, True),
        (Answer.ALLOW, Reason.ALLOWED_BY_PERSON, NEXT_TRY, False),
        (Answer.DENY, Reason.DENIED_BY_PERSON, DENIED - 0.1, True),
        (Answer.DENY, Reason.DENIED_BY_PERSON, DENIED, False),
    ],
)
def test_who_gave_up_finds_the_answer_once_within_a_minute(
    answer: Answer, reason: Reason, seconds: float, *, counts: bool
) -> None:
    """ASK-2, B143: its next try passes, one, and only within a minute; a refusal it hears as often as it tries."""
    talk = Talk()
    talk.leave(talk.ask())
    talk.answer(answer)
    talk.wait(seconds)
    retry = talk.ask()
    assert talk.released == ({retry: reason} if counts else {})
    assert (talk.ask() in talk.released) is (counts and answer is Answer.DENY)


def test_allow_is_for_those_that_wait_now() -> None:
    """ASK-2: nobody gave up, so the next connection is asked about."""
    talk = Talk()
    talk.ask()
    talk.answer(Answer.ALLOW)
    assert talk.ask() not in talk.released


@pytest.mark.parametrize("answer", [Answer.TASK, Answer.REMEMBER])
def test_an_answer_for_the_task_counts_until_it_ends(answer: Answer) -> None:
    """ASK-2: later connections pass; a task of the same name that comes after it starts with nothing."""
    talk = Talk()
    talk.ask()
    talk.answer(answer)
    talk.wait(7 * 3600)
    assert talk.released[talk.ask()] is Reason.ALLOWED_BY_PERSON
    known = talk.broker.known("t1", wanted("a.test:443"), talk.at)
    assert known is not None
    assert (known.name, known.source) == (
        "remembered" if answer is Answer.REMEMBER else "answered",
        "question 1, answered by alice",
    )
    talk.take(talk.broker.end_task("t1"))
    talk.broker.open_task(task())
    assert talk.ask() not in talk.released


def test_deny_for_the_task_refuses_later_ones_and_cuts_what_is_open() -> None:
    """ASK-2, B143: deny-task cuts; plain deny does not, is for all tries of two minutes, and a later one asks."""
    talk = Talk()
    talk.ask()
    talk.answer(Answer.DENY)
    assert talk.cuts == []
    for _ in range(3):
        assert talk.released[talk.ask()] is Reason.DENIED_BY_PERSON
        talk.wait(39)
    assert talk.ask("a.test:80") not in talk.released
    talk.answer(Answer.DENY, number=2)
    talk.wait(3)
    assert talk.ask() not in talk.released
    talk.answer(Answer.DENY_TASK, number=3)
    assert talk.cuts == [Cut("t1", "a.test", 443, Reason.DENIED_BY_PERSON)]
    assert talk.released[talk.ask()] is Reason.DENIED_BY_PERSON


@pytest.mark.parametrize("wait", [60, 900, 8 * 3600])
def test_what_nobody_answers_is_refused_at_the_end_of_the_wait(wait: float) -> None:
    """ASK-2: not a moment before, and a late joiner waits no longer than the question."""
    talk = Talk(task(wait=wait))
    first = talk.ask()
    talk.wait(wait - 0.5)
    second = talk.ask()
    assert talk.released == {}
    due = talk.broker.next_due(talk.at)
    assert due is not None
    assert due <= 0.5
    talk.wait(0.5)
    assert talk.released == {first: Reason.NOT_ANSWERED, second: Reason.NOT_ANSWERED}
    assert talk.broker.questions()[0].state is State.EXPIRED
    assert talk.told[-1].kind == "expired"
    assert talk.broker.next_due(talk.at) is None


@pytest.mark.parametrize("answer", [Answer.ALLOW, Answer.TASK, Answer.DENY])
def test_an_answer_that_comes_too_late_is_for_the_next_try(answer: Answer) -> None:
    """B140, ASK-3: the refusal names the question; an answer to it is for the retry; the first one counts."""
    talk = Talk(task(wait=60))
    first = talk.ask()
    talk.wait(60)
    assert talk.released == {first: Reason.NOT_ANSWERED}
    assert talk.last is not None
    assert talk.last.sentence().endswith("question 1]; to allow it: --allow a.test:443")
    talk.answer(answer)
    assert talk.told[-1].kind == "answered"
    allowed = Reason.ALLOWED_BY_PERSON if answer.allows else Reason.DENIED_BY_PERSON
    assert talk.released[talk.ask()] is allowed
    assert (talk.ask() in talk.released) is (answer is not Answer.ALLOW), "allow is for one try"
    with pytest.raises(AlreadyAnsweredError, match="alice"):
        talk.broker.answer(1, Answer.TASK, NO_TERMS, "bob", talk.at)


def test_what_is_asked_again_is_answered_under_its_new_number() -> None:
    """B140: an answer to the question that expired would come beside the one that waits; the message names that."""
    talk = Talk(task(wait=60))
    talk.ask()
    talk.wait(60)
    waits = talk.ask()
    with pytest.raises(BadAnswerError, match="asked again as question 2") as caught:
        talk.broker.answer(1, Answer.ALLOW, NO_TERMS, "late", talk.at)
    assert "tidegate answer 2" in caught.value.fix
    assert waits not in talk.released
    talk.answer(Answer.ALLOW, number=2)
    assert talk.released[waits] is Reason.ALLOWED_BY_PERSON


def test_a_late_answer_needs_a_task_that_lives() -> None:
    """B140: the task has ended, and with it what an answer could be for."""
    talk = Talk(task(wait=60))
    talk.ask()
    talk.wait(60)
    talk.take(talk.broker.end_task("t1"))
    with pytest.raises(AlreadyAnsweredError, match="expired"):
        talk.broker.answer(1, Answer.ALLOW, NO_TERMS, "late", talk.at)


@pytest.mark.parametrize("verdict", [Verdict.ALLOW, Verdict.DENY])
def test_a_rule_of_the_operators_settles_what_waits_for_it(verdict: Verdict) -> None:
    """POL-8, ASK-1: those who wait go on by the rule, its question ends, and others stay open."""
    talk = Talk(task("t1"), task("t2"))
    settled = [talk.ask(), talk.ask()]
    others = [talk.ask("b.test:443"), talk.ask(name="t2")]
    reason = Reason.ALLOWED if verdict is Verdict.ALLOW else Reason.DENY_RULE

    def judge(decision: Decision) -> Decision:
        ours = decision.destination.host.text == "a.test"
        return decision.replace(verdict=verdict, reason=reason) if ours else decision

    talk.take(talk.broker.settle("t1", judge, "alice"))
    assert talk.released == dict.fromkeys(settled, reason)
    question = talk.broker.question(1)
    assert question is not None
    assert (question.state, question.by, question.answer) == (State.ENDED, "alice", None)
    assert talk.told[-1].kind == "ended"
    talk.take(talk.broker.settle("t1", judge, "alice"))
    talk.answer(Answer.ALLOW, number=2)
    talk.answer(Answer.ALLOW, number=3)
    assert all(talk.released[ticket] is Reason.ALLOWED_BY_PERSON for ticket in others)


def test_an_answer_on_its_way_to_the_disk_is_not_settled_by_a_rule() -> None:
    """ASK-2: the first word counts, and what is being saved was first."""
    talk = Talk()
    ticket = talk.ask()
    talk.broker.answer(1, Answer.DENY, NO_TERMS, "alice", talk.at)
    talk.take(talk.broker.settle("t1", lambda decision: decision.replace(verdict=Verdict.ALLOW), "bob"))
    assert ticket not in talk.released
    talk.take(talk.broker.saved(1, talk.at))
    assert talk.released[ticket] is Reason.DENIED_BY_PERSON


@pytest.mark.parametrize("wait", [0, 59.9, 8 * 3600 + 1, float("inf"), float("nan")])
def test_a_wait_is_from_a_minute_to_eight_hours(wait: float) -> None:
    """ASK-2: it cannot be turned off."""
    with pytest.raises(ValueError, match="wait"):
        Broker().open_task(task(wait=wait))


def test_a_save_that_takes_too_long_keeps_nobody_waiting() -> None:
    """ASK-2: at the deadline those who wait are refused; the answer was in time and counts for what comes."""
    talk = Talk(task(wait=60))
    first = talk.ask()
    talk.broker.answer(1, Answer.TASK, NO_TERMS, "alice", talk.at)
    talk.wait(60)
    second = talk.ask()
    assert talk.released == dict.fromkeys((first, second), Reason.NOT_ANSWERED)
    talk.take(talk.broker.saved(1, talk.at))
    assert talk.released[talk.ask()] is Reason.ALLOWED_BY_PERSON


def test_nobody_there_is_an_immediate_refusal() -> None:
    """B142, ASK-4: no question is opened for nobody; whoever is answered later finds it at its next try."""
    talk = Talk()
    assert talk.released[talk.ask(present=False)] is Reason.NOBODY_THERE
    assert talk.broker.questions() == []
    talk.ask()
    away = talk.ask(present=False)
    assert talk.released == {1: Reason.NOBODY_THERE, away: Reason.NOBODY_THERE}
    talk.answer(Answer.ALLOW)
    assert talk.released[talk.ask()] is Reason.ALLOWED_BY_PERSON


def test_the_21st_question_is_refused_at_once() -> None:
    """ASK-7, B143: 1000 different hosts are 20 questions; those that are answered make room; a joiner needs none."""
    talk = Talk(task("t1"), task("t2"))
    for index in range(MOST_OPEN):
        talk.ask(f"h{index}.test:443")
    assert talk.released == {}
    for index in range(MOST_OPEN, 1000):
        assert talk.released[talk.ask(f"h{index}.test:443")] is Reason.TOO_MANY_QUESTIONS
    assert len(talk.broker.questions()) == MOST_OPEN
    assert talk.ask("h0.test:443") not in talk.released
    assert talk.ask("h0.test:443", name="t2") not in talk.released
    talk.answer(Answer.DENY, number=1)
    assert talk.ask("h21.test:443") not in talk.released


def test_names_that_look_generated_are_one_group_and_no_wildcard() -> None:
    """ASK-7, B143: four names under one domain are one card; each answer is for one name."""
    talk = Talk()
    for index in range(3):
        talk.ask(f"x{index}.evil.co.uk:443")
    talk.ask("other.co.uk:443")
    assert {question.group for question in talk.broker.questions()} == {""}
    talk.ask("x3.evil.co.uk:443")
    groups = {question.host: question.group for question in talk.broker.questions()}
    assert groups == {**{f"x{index}.evil.co.uk": "evil.co.uk" for index in range(4)}, "other.co.uk": ""}
    talk.answer(Answer.TASK, number=1)
    assert set(talk.released) == {1}
    assert talk.ask("x9.evil.co.uk:443") not in talk.released


def test_addresses_are_no_generated_names() -> None:
    """ASK-7: literals that end alike have no domain."""
    talk = Talk()
    for index in range(1, 9):
        talk.ask(f"1.2.{index}.4:443", ask=("*",))
    assert {question.group for question in talk.broker.questions()} == {""}


@pytest.mark.parametrize(
    ("terms", "good"),
    [
        (Terms(until=START.wall + 1), True),
        (Terms(until=START.wall), False),
        (Terms(until=float("nan")), False),
        (Terms(until=float("inf")), False),
        (Terms(connections=1), True),
        (Terms(connections=0), False),
        (Terms(bytes=1), True),
        (Terms(bytes=0), False),
        (Terms(bytes=-1), False),
    ],
)
@pytest.mark.parametrize("answer", list(Answer))
def test_an_end_is_a_real_one_and_belongs_to_an_allow(answer: Answer, terms: Terms, *, good: bool) -> None:
    """ASK-7: an end that is none is refused, and so is one of an answer that has no end of its own."""
    talk = Talk()
    talk.ask()
    if good and answer in {Answer.ALLOW, Answer.TASK}:
        talk.answer(answer, terms)
        assert talk.released == {1: Reason.ALLOWED_BY_PERSON}
        return
    with pytest.raises(BadAnswerError):
        talk.broker.answer(1, answer, terms, "alice", talk.at)
    assert talk.broker.questions()[0].state is State.OPEN


def test_a_number_of_connections_counts_those_that_wait() -> None:
    """ASK-7: three are allowed: two that wait, and one more; the fourth asks again."""
    talk = Talk()
    first = [talk.ask(), talk.ask()]
    talk.answer(Answer.ALLOW, Terms(connections=3))
    third = talk.ask()
    assert talk.released == dict.fromkeys([*first, third], Reason.ALLOWED_BY_PERSON)
    assert talk.ask() not in talk.released
    assert talk.cuts == []


def test_more_that_wait_than_were_allowed_are_refused() -> None:
    """ASK-7: those that came first pass."""
    talk = Talk()
    tickets = [talk.ask() for _ in range(3)]
    talk.answer(Answer.TASK, Terms(connections=1))
    assert [talk.released[ticket] for ticket in tickets] == [
        Reason.ALLOWED_BY_PERSON,
        Reason.GRANT_ENDED,
        Reason.GRANT_ENDED,
    ]
    assert talk.ask() not in talk.released


def test_a_time_ends_the_grant_and_what_is_open() -> None:
    """ASK-7: one second before, it counts; at that time what is open is cut and the next one asks."""
    talk = Talk()
    talk.ask()
    talk.answer(Answer.TASK, Terms(until=START.wall + 100))
    talk.wait(99)
    assert talk.released[talk.ask()] is Reason.ALLOWED_BY_PERSON
    assert talk.broker.next_due(talk.at) == 1
    assert talk.cuts == []
    talk.wait(1)
    assert talk.cuts == [Cut("t1", "a.test", 443, Reason.GRANT_ENDED)]
    assert talk.ask() not in talk.released


def test_a_time_that_is_over_when_the_answer_is_saved_lets_nobody_through() -> None:
    """ASK-7: a slow disk does not stretch a grant."""
    talk = Talk()
    first = talk.ask()
    talk.broker.answer(1, Answer.TASK, Terms(until=START.wall + 1), "alice", talk.at)
    talk.wait(1)
    talk.take(talk.broker.saved(1, talk.at))
    assert talk.released == {first: Reason.GRANT_ENDED}
    assert talk.ask() not in talk.released


def test_a_time_ends_what_is_open_though_its_connections_are_used_up() -> None:
    """ASK-7: the first bound that is reached ends the grant, the other one still ends the connection."""
    talk = Talk()
    talk.ask()
    talk.answer(Answer.ALLOW, Terms(until=START.wall + 100, connections=1))
    talk.wait(1)
    assert talk.ask() not in talk.released
    talk.wait(99)
    assert talk.cuts == [Cut("t1", "a.test", 443, Reason.GRANT_ENDED)]


def test_bytes_are_shared_and_their_end_cuts() -> None:
    """ASK-7: the bytes of all connections under one answer are counted together; the last one may be the last byte."""
    talk = Talk()
    talk.ask()
    talk.answer(Answer.TASK, Terms(bytes=100))
    decision = talk.broker.known("t1", wanted("a.test:443"), talk.at)
    assert decision is not None
    assert talk.broker.spend(decision, 60) == ([], True)
    assert talk.broker.spend(decision, 40) == ([], True)
    effects, enough = talk.broker.spend(decision, 1)
    assert not enough
    assert effects == [Cut("t1", "a.test", 443, Reason.GRANT_ENDED)]
    assert talk.broker.spend(decision, 1) == ([], False)
    assert talk.ask() not in talk.released


def test_questions_end_with_their_task_and_phase() -> None:
    """ASK-3, POL-7: only those of that task, and of the phase that it left."""
    talk = Talk(task("t1"), task("t2"))
    setup, run, other = talk.ask(phase=Phase.INSTALL), talk.ask(), talk.ask(name="t2")
    talk.take(talk.broker.phase_changed("t1", Phase.RUNTIME))
    assert talk.released == {setup: Reason.PHASE_CHANGED}
    talk.take(talk.broker.end_task("t1"))
    assert talk.released == {setup: Reason.PHASE_CHANGED, run: Reason.STOPPING}
    assert other not in talk.released
    assert talk.broker.ask(99, "t1", wanted("a.test:443"), talk.at, number=50, present=True) is None


def test_an_answer_that_its_task_did_not_live_to_see_lets_nothing_through() -> None:
    """ASK-3: a task that ends while its answer is saved, and one whose phase changes meanwhile."""
    talk = Talk(task("t1"), task("t2"))
    ended, moved = talk.ask(), talk.ask(name="t2", phase=Phase.INSTALL)
    for number in (1, 2):
        talk.broker.answer(number, Answer.TASK, NO_TERMS, "alice", talk.at)
    talk.take(talk.broker.end_task("t1"))
    talk.take(talk.broker.phase_changed("t2", Phase.RUNTIME))
    talk.take(talk.broker.saved(1, talk.at))
    talk.take(talk.broker.saved(2, talk.at))
    assert talk.released == {ended: Reason.STOPPING, moved: Reason.PHASE_CHANGED}
    talk.broker.open_task(task("t1"))
    assert talk.ask() not in talk.released
    assert talk.released[talk.ask(name="t2", phase=Phase.INSTALL)] is Reason.ALLOWED_BY_PERSON


def test_a_stop_refuses_all_at_once_and_whoever_comes_after() -> None:
    """ASK-3: nothing waits, and nothing is due any more."""
    talk = Talk(task("t1"), task("t2"))
    tickets = [talk.ask(), talk.ask(name="t2"), talk.ask("b.test:1")]
    talk.take(talk.broker.stop())
    tickets.append(talk.ask())
    assert talk.released == dict.fromkeys(tickets, Reason.STOPPING)
    assert talk.broker.next_due(talk.at) is None


def test_what_a_restart_finds_in_the_store_counts() -> None:
    """HLD-8, B145: grants of a task that lives on; what was used of a counted one is not known, so it asks again."""
    broker = Broker()
    grants = [
        GrantRecord(1, "t1", "a.test", 443, Phase.RUNTIME, Answer.TASK, NO_TERMS, "alice"),
        GrantRecord(2, "t1", "b.test", 443, Phase.RUNTIME, Answer.DENY_TASK, NO_TERMS, "alice"),
        GrantRecord(3, "t1", "c.test", 443, Phase.RUNTIME, Answer.TASK, Terms(connections=5), "alice"),
        GrantRecord(4, "t1", "d.test", 443, Phase.RUNTIME, Answer.TASK, Terms(bytes=5), "alice"),
        GrantRecord(5, "t1", "e.test", 443, Phase.RUNTIME, Answer.TASK, Terms(until=START.wall + 10), "alice"),
        GrantRecord(6, "t1", "f.test", 443, Phase.RUNTIME, Answer.TASK, Terms(until=START.wall), "alice"),
    ]
    broker.open_task(task(), grants)
    found = {name: broker.known("t1", wanted(f"{name}.test:443"), START) for name in "abcdef"}
    assert {name: one.verdict for name, one in found.items() if one is not None} == {
        "a": Verdict.ALLOW,
        "b": Verdict.DENY,
        "e": Verdict.ALLOW,
    }
    effects = broker.tick(later(10))
    assert Cut("t1", "e.test", 443, Reason.GRANT_ENDED) in effects
    assert broker.known("t1", wanted("e.test:443"), later(10)) is None


@pytest.mark.parametrize(
    ("authority", "asking", "ask", "why"),
    [
        ("a.test:443", task(), (), ""),
        ("a.test:443", task(no_remember="the home folder does not remember hosts"), (), "the home folder"),
        ("-a.test:443", task(), (), "no rule can name this host"),
        ("a.test:443", task(), ("a.test:443",), "among equals ask wins"),
        ("a.test:443", task(), ("a.test",), ""),
        ("a.test:443", task(), ("*.test:443",), ""),
    ],
)
def test_what_would_have_no_effect_is_not_offered(
    authority: str, asking: AskingTask, ask: tuple[str, ...], why: str
) -> None:
    """B146, ASK-8: remembering is refused where the folder cannot, or where a rule would ask all the same."""
    talk = Talk(asking)
    talk.ask(authority, ask=ask)
    question = talk.broker.questions()[0]
    assert why in question.no_remember
    if not why:
        assert question.no_remember == ""
        talk.answer(Answer.REMEMBER)
        return
    with pytest.raises(BadAnswerError, match=why):
        talk.broker.answer(1, Answer.REMEMBER, NO_TERMS, "alice", talk.at)
    talk.answer(Answer.TASK)


def test_a_forgotten_host_is_asked_again_where_it_was_remembered() -> None:
    """ASK-8: in living tasks of that folder; an answer for the task alone stays, and so does another folder's."""
    elsewhere = FolderKey("/v", 1, 3)
    talk = Talk(task("t1"), task("t2", folder=elsewhere), task("t3"))
    for name, answer in (("t1", Answer.REMEMBER), ("t2", Answer.REMEMBER), ("t3", Answer.TASK)):
        talk.ask(name=name)
        talk.answer(answer)
    talk.broker.forget_rule(FOLDER, "a.test", 80, Phase.RUNTIME)
    assert talk.released[talk.ask()] is Reason.ALLOWED_BY_PERSON
    talk.broker.forget_rule(FOLDER, "a.test", 443, Phase.RUNTIME)
    assert talk.ask() not in talk.released
    assert talk.released[talk.ask(name="t2")] is Reason.ALLOWED_BY_PERSON
    assert talk.released[talk.ask(name="t3")] is Reason.ALLOWED_BY_PERSON


def test_who_allowed_a_name_hears_that_its_address_did_not() -> None:
    """ADR-4: once for each question, with the address."""
    talk = Talk()
    talk.ask()
    talk.answer(Answer.TASK)
    for _ in range(2):
        known = talk.broker.known("t1", wanted("a.test:443"), talk.at)
        assert known is not None
        talk.take(talk.broker.failed(known.refuse(Reason.PRIVATE_ADDRESS, address="10.0.0.1")))
    assert [event.kind for event in talk.told] == ["opened", "answered", "failed"]
    assert talk.told[-1].question.problem == f"{Reason.PRIVATE_ADDRESS.sentence}; it leads to 10.0.0.1"
    assert talk.broker.questions()[0].problem


def test_those_waiting_are_told_now_and_then() -> None:
    """B143: a storm of joins is few events, and the last number is told."""
    talk = Talk()
    talk.ask()
    for _ in range(100):
        talk.leave(talk.ask())
    talk.ask()
    assert len(talk.told) == 1
    due = talk.broker.next_due(talk.at)
    assert due is not None
    assert due <= FOLD
    talk.wait(FOLD)
    assert [event.kind for event in talk.told] == ["opened", "changed"]
    assert talk.told[-1].question.waiting == 2
    talk.ask()
    talk.wait(FOLD)
    assert talk.told[-1].question.waiting == 3


def test_closed_questions_are_kept_for_a_while() -> None:
    """Bounded: the latest stay, newest first after the open ones."""
    talk = Talk()
    for _ in range(KEPT + 5):
        talk.ask()
        talk.answer(Answer.ALLOW)
    talk.ask()
    numbers = [question.id for question in talk.broker.questions()]
    assert numbers == [KEPT + 6, *range(KEPT + 5, 5, -1)]


def test_a_moment_is_of_two_clocks() -> None:
    """A wall clock that jumps ends no wait."""
    talk = Talk(task(wait=60))
    ticket = talk.ask()
    talk.at = Moment(talk.at.now + 1, talk.at.wall + 10 * 86400)
    talk.wait(0)
    assert ticket not in talk.released
