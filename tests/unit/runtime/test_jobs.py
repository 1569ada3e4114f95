"""The table of job control, by itself (HLD-9)."""

from __future__ import annotations

import pytest

from tidegate.runtime.jobs import TRANSITIONS, Action, Happening, Mode, react

STOPS = {Action.STOP_SELF, Action.STOP_GROUP}
PARKED = {Mode.PARKED_AWAY, Mode.PARKED_HERE}


def test_every_state_has_a_way_on_from_everything_that_can_happen_in_it() -> None:
    """A running mode answers each stop, continue and a lost terminal; a parked one each continue and the refusal."""
    running = set(Happening) - {Happening.REFUSED}
    parked = {Happening.RESUMED_FRONT, Happening.RESUMED_BACK, Happening.REFUSED}
    for mode in Mode:
        assert {happening for of, happening in TRANSITIONS if of is mode} == (parked if mode in PARKED else running)


@pytest.mark.parametrize(("mode", "happening"), sorted(TRANSITIONS, key=str))
def test_rules_that_hold_for_every_transition(mode: Mode, happening: Happening) -> None:
    """The keyboard leads to the command only in HERE; a stop comes last and parks; no command is left stopped."""
    actions, after = TRANSITIONS[mode, happening]
    stops = STOPS.intersection(actions)
    assert (after in PARKED) == bool(stops)
    assert len(stops) <= 1
    if stops:
        assert actions[-1] in STOPS
        assert (Action.LEAVE in actions) == (mode is Mode.HERE), (
            "the modes are put back before the shell has the terminal"
        )
    elif happening is not Happening.LOST or mode is Mode.HERE:
        assert {Action.CONTINUE_FRONT, Action.CONTINUE_BACK}.intersection(actions)
    if after is Mode.HERE and mode is not Mode.HERE:
        assert actions == (Action.ENTER, Action.CONTINUE_FRONT)
    if mode is Mode.HERE and after is not Mode.HERE:
        assert actions[0] is Action.LEAVE


def test_stop_and_continue_in_the_foreground_leads_the_keyboard_back() -> None:
    """Ctrl-Z in a full-screen program, then fg: the job stops as a group, then the program has the keyboard again."""
    actions, mode = react(Mode.HERE, Happening.TYPED_STOP)
    assert actions == (Action.LEAVE, Action.STOP_GROUP)
    actions, mode = react(mode, Happening.RESUMED_FRONT)
    assert actions == (Action.ENTER, Action.CONTINUE_FRONT)
    assert mode is Mode.HERE


def test_stop_then_bg_keeps_the_keyboard_with_the_shell() -> None:
    """Ctrl-Z, then bg: the command goes on in the background of its pty and stops again when it reads."""
    _, mode = react(Mode.HERE, Happening.TYPED_STOP)
    actions, mode = react(mode, Happening.RESUMED_BACK)
    assert (actions, mode) == ((Action.CONTINUE_BACK,), Mode.AWAY)
    actions, mode = react(mode, Happening.WANTS_IT_BACK)
    assert (actions, mode) == ((Action.STOP_GROUP,), Mode.PARKED_HERE)


def test_a_stop_while_parked_changes_nothing() -> None:
    """A second report of the same stop is not a second stop."""
    assert react(Mode.PARKED_HERE, Happening.STOPPED) == ((), Mode.PARKED_HERE)


def test_an_orphaned_front_never_goes_round_in_circles() -> None:
    """Where no shell could continue us, a command that wants the keyboard reads an end instead of stopping for ever."""
    _, mode = react(Mode.AWAY, Happening.WANTS_IT_BACK)
    actions, mode = react(mode, Happening.REFUSED)
    assert actions == (Action.NO_INPUT, Action.CONTINUE_FRONT)
