"""Bursts are told of at once, then counted; none is lost and kinds are bounded (JRN-3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.gate.bursts import KINDS, WINDOW, Bursts
from tidegate.gate.reactor import Reactor


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[tuple[object, int, float]] = []
        self.reactor = Reactor(lambda: self.now)
        self.bursts = Bursts(self.reactor, lambda kind, count: self.told.append((kind, count, self.now)))

    def turn(self, seconds: float) -> None:
        """Let time pass, and the timers run."""
        self.now += seconds
        self.reactor.now = self.now
        self.reactor._expire()


def test_the_first_is_told_at_once_and_the_rest_as_a_count() -> None:
    """At most once in five seconds for the same; another kind has its own; a quiet one is forgotten."""
    clock = _Clock()
    for kind in "aaabaa":
        clock.bursts.take(kind)
    assert clock.told == [("a", 1, 0.0), ("b", 1, 0.0)]
    clock.turn(WINDOW)
    assert clock.told[2:] == [("a", 4, WINDOW)]
    clock.turn(WINDOW)
    clock.bursts.take("a")
    assert clock.told[3:] == [("a", 1, 2 * WINDOW)]
    clock.reactor.close()


def test_kinds_are_bounded() -> None:
    """The oldest is told of and forgotten."""
    clock = _Clock()
    for number in range(KINDS + 10):
        clock.bursts.take(number)
        clock.bursts.take(number)
    assert len(clock.bursts._counts) == KINDS
    assert len(clock.told) == KINDS + 20
    clock.reactor.close()


@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from((0.0, 0.1, 3.0, 6.0))), max_size=60))
def test_none_is_lost(taken: list[tuple[int, float]]) -> None:
    """Invariant: what was told adds up to what was taken."""
    clock = _Clock()
    for kind, pause in taken:
        clock.bursts.take(kind)
        clock.turn(pause)
    clock.bursts.close()
    clock.reactor.close()
    assert sum(count for _, count, _ in clock.told) == len(taken)
