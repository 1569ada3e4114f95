"""tidegate.journal.fold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.journal.events import AT, refused
from tidegate.journal.fold import FIRST, KINDS, WINDOW, Fold


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
        out += fold.take(refused(host=f"h{number}.test"))
    assert [event.count for event in out if event.host == "first.test"] == [4]
    assert len(fold._bursts) <= KINDS


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
