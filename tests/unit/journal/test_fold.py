"""tidegate.journal.fold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.journal.events import AT, refused
from tidegate.journal.fold import FIRST, KINDS, LINES, OTHERS, WINDOW, Fold
from tidegate.model.reason import Reason


def test_the_first_refusals_are_lines_of_their_own() -> None:
    """JRN-3: a rhythm can be seen before folding begins."""
    fold = Fold()
    assert [len(fold.take(refused())) for _ in range(FIRST + 2)] == [1] * FIRST + [0, 0]


def test_a_storm_becomes_few_lines_and_loses_no_count() -> None:
    """B40, JRN-3: 20,000 equal refusals in ten seconds are a bounded number of lines with the right sum."""
    fold = Fold()
    lines = []
    for number in range(20_000):
        lines += fold.take(refused(at=AT + number / 2000))
    lines += fold.rest()
    assert sum(line.count for line in lines) == 20_000
    assert len(lines) <= 3 * (FIRST + 1)


def test_another_port_host_reason_or_rule_is_another_kind() -> None:
    """JRN-3: only the same is folded; the neighbour is written at once."""
    fold = Fold()
    for _ in range(FIRST + 1):
        fold.take(refused())
    assert len(fold.take(refused(port=80))) == 1
    assert len(fold.take(refused(host="c.test"))) == 1
    assert len(fold.take(refused(rule="c.test"))) == 1


def test_counts_are_due_when_their_window_ends() -> None:
    """JRN-3: a burst that stops is written by the clock, not by the next refusal."""
    fold = Fold()
    for _ in range(FIRST + 3):
        fold.take(refused())
    assert fold.pending
    assert fold.due(AT + WINDOW - 0.1) == []
    assert [event.count for event in fold.due(AT + WINDOW)] == [3]
    assert not fold.pending


def test_the_number_of_open_folds_is_bounded() -> None:
    """A task that tries a million hosts costs bounded memory; what is pushed out is written, not lost."""
    fold = Fold()
    for _ in range(FIRST + 4):
        fold.take(refused(host="first.test"))
    out = []
    for number in range(KINDS):
        out += fold.take(refused(host=f"h{number}.test", at=AT + number * WINDOW / 50))
    assert [event.count for event in out if event.host == "first.test"] == [4]
    assert len(fold._bursts) <= KINDS


def test_ever_new_hosts_are_counted_under_a_budget() -> None:
    """JRN-3: 20,000 names in ten seconds are a bounded number of lines, none lost; the next window shows new ones."""
    fold = Fold()
    lines = []
    for number in range(20_000):
        lines += fold.take(refused(host=f"h{number}.test", at=AT + number / 2000))
    lines += fold.rest()
    assert sum(line.count for line in lines) == 20_000
    assert len(lines) <= 3 * (LINES + 2)
    others = [line for line in lines if line.host == OTHERS]
    assert others
    assert all((line.port, line.rule, line.fix) == (0, "", "") for line in others)
    assert {line.host for line in lines} > {"h0.test", f"h{LINES - 1}.test", f"h{2 * 5000}.test"}


def test_within_the_budget_every_new_host_is_a_line() -> None:
    """JRN-3: the neighbour: as many as the budget are lines of their own, one more is not."""
    fold = Fold()
    written = [len(fold.take(refused(host=f"h{number}.test"))) for number in range(LINES + 1)]
    assert written == [1] * LINES + [0]
    (others,) = fold.rest()
    assert (others.host, others.count) == (OTHERS, 1)


def test_another_reason_is_counted_apart() -> None:
    """JRN-3: what was refused for which reason stays on record, also past the budget."""
    fold = Fold()
    for number in range(LINES):
        fold.take(refused(host=f"h{number}.test"))
    for number in range(3):
        fold.take(refused(host=f"x{number}.test"))
        fold.take(refused(host=f"y{number}.test", reason=Reason.PRIVATE_ADDRESS))
    assert {(event.reason, event.count) for event in fold.rest()} == {
        (Reason.NO_RULE, 3),
        (Reason.PRIVATE_ADDRESS, 3),
    }


def test_a_clock_that_is_put_back_frees_the_budget() -> None:
    """JRN-3: nobody waits an hour to be written because the clock was an hour ahead."""
    fold = Fold()
    for number in range(LINES + 1):
        fold.take(refused(host=f"h{number}.test", at=AT + 3600))
    fold.due(AT)
    assert len(fold.take(refused(host="new.test", at=AT))) == 1


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.floats(0, 60)), max_size=200))
def test_no_refusal_is_lost_in_any_order_of_times(burst: list[tuple[str, float]]) -> None:
    """JRN-3: none lost, whatever the hosts and the clock do."""
    fold = Fold()
    out = []
    for host, later in burst:
        out += fold.take(refused(host=host, at=AT + later))
    out += fold.due(AT + 30)
    out += fold.rest()
    assert sum(event.count for event in out) == len(burst)
