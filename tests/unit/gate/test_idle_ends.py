"""Which idle connections to destinations are let go, and when."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.gate.idle_ends import AT_ONCE, LONG, MOST, SHORT, IdleEnds
from tidegate.gate.reactor import Reactor


class _Waiting:
    """What the queues see of an exchange."""

    def __init__(self, world: _World, *, made_again: bool = False) -> None:
        self.world = world
        self.made_again = made_again

    def let_go(self) -> None:
        """Take note of the turn."""
        self.world.let_go.append((self, self.world.turns))

    def broken(self, error: Exception) -> None:
        """Take note of it."""
        self.world.broken.append(error)


class _World:
    def __init__(self) -> None:
        self.now = 0.0
        self.turns = 0
        self.let_go: list[tuple[_Waiting, int]] = []
        self.broken: list[Exception] = []
        self.reactor = Reactor(lambda: self.now)
        self.ends: Any = IdleEnds()

    def turn(self, seconds: float, *, step: float = 0.01) -> None:
        """Let time pass, and the timers run."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(self.now + step, until)
            self.reactor.now = self.now
            self.turns += 1
            self.reactor._expire()

    def wait(self, count: int, *, made_again: bool = False) -> list[_Waiting]:
        """So many begin to wait now."""
        new = [_Waiting(self, made_again=made_again) for _ in range(count)]
        for one in new:
            self.ends.waits(one, self.reactor)
        return new

    @property
    def gone(self) -> list[_Waiting]:
        """Those that were let go, in their order."""
        return [one for one, _ in self.let_go]


def test_within_the_bound_nothing_is_let_go_and_no_timer_runs() -> None:
    """INS-3: what a usual task keeps open costs it nothing."""
    world = _World()
    world.wait(MOST)
    assert world.reactor.timers == 0
    world.turn(LONG)
    assert not world.let_go
    world.reactor.close()


def test_the_longest_silent_are_let_go_after_a_moment() -> None:
    """INS-3: those past the bound, oldest first, never before they have waited for it, a few in each turn."""
    world = _World()
    first = world.wait(MOST + AT_ONCE + 5)
    world.turn(SHORT / 2)
    assert not world.let_go
    world.turn(SHORT * 0.6)
    world.turn(0.05)
    assert world.gone == first[: AT_ONCE + 5]
    assert [turn - world.let_go[0][1] for _, turn in world.let_go] == [0] * AT_ONCE + [1] * 5
    assert len(world.ends) == MOST
    assert world.reactor.timers == 0
    world.reactor.close()


def test_who_works_is_not_let_go_and_waits_anew() -> None:
    """INS-3: the order is that of the last request."""
    world = _World()
    first = world.wait(MOST + 1)
    world.turn(SHORT / 2)
    world.ends.works(first[0])
    world.ends.works(first[0])
    world.turn(SHORT)
    assert not world.let_go
    world.ends.waits(first[0], world.reactor)
    world.turn(2 * SHORT)
    assert world.gone == [first[1]]
    world.reactor.close()


def test_what_was_made_again_waits_for_long_and_does_not_hold_up_the_others() -> None:
    """INS-3: nobody thrashes; a clock set for the long ones is set anew for a short one."""
    world = _World()
    again = world.wait(MOST + 1, made_again=True)
    world.turn(SHORT * 3)
    assert not world.let_go
    (fresh,) = world.wait(1)
    world.turn(SHORT * 1.5)
    assert world.gone == [fresh]
    world.turn(LONG * 1.1, step=0.1)
    assert world.gone == [fresh, again[0]]
    world.reactor.close()


def test_one_that_breaks_keeps_no_other() -> None:
    """A bug ends its own connection, and only it."""
    world = _World()
    first = world.wait(MOST + 2)
    first[0].let_go = lambda: 1 / 0  # type: ignore[method-assign,assignment]
    world.turn(SHORT * 2)
    assert [type(error) for error in world.broken] == [ZeroDivisionError]
    assert world.gone == [first[1]]
    world.reactor.close()


@given(
    st.lists(st.tuples(st.sampled_from(("waits", "works", "turn")), st.integers(0, 79), st.booleans()), max_size=200)
)
def test_the_bound_holds_whatever_happens(steps: list[tuple[str, int, bool]]) -> None:
    """Invariant: once all have waited long enough no more than the bound do, and no one is let go twice."""
    world = _World()
    all_of_them = [_Waiting(world, made_again=bool(number % 2)) for number in range(80)]
    for step, number, other in steps:
        one = all_of_them[number]
        if step == "turn":
            world.turn(SHORT if other else SHORT / 7, step=SHORT)
        elif step == "works":
            world.ends.works(one)
        elif one not in world.gone:
            world.ends.waits(one, world.reactor)
    for one in all_of_them:
        if one not in world.gone:
            world.ends.waits(one, world.reactor)
    world.turn(2 * LONG, step=LONG / 20)
    assert len(world.ends) <= MOST
    assert len(set(map(id, world.gone))) == len(world.gone)
    assert len(world.ends) + len(world.gone) == 80
    world.reactor.close()
