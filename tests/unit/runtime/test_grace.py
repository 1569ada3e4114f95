"""The deadlines of an ending task, by a clock of the test's own."""

from __future__ import annotations

from tidegate.runtime.grace import DRAIN, GATE_GRACE, GRACE, HARD_KILL, SECOND_ASK, Due, Grace


def test_a_task_that_nobody_asked_to_end_has_no_deadline() -> None:
    """No deadline, no waking up."""
    grace = Grace()
    assert grace.patience(1e9) is None
    assert grace.due(1e9) is None
    assert not grace.drained_enough(1e9)


def test_asked_once_it_is_killed_after_the_grace_and_then_hard() -> None:
    """B98: forwarded, grace, then kill; when even that is not reported, init is killed, again and again."""
    grace = Grace()
    grace.asked(100.0)
    assert grace.patience(100.0) == GRACE
    assert grace.due(100.0 + GRACE - 0.001) is None
    assert not grace.forced
    assert grace.due(100.0 + GRACE) is Due.KILL
    assert grace.forced
    assert grace.due(100.0 + GRACE) is None
    assert grace.due(100.0 + GRACE + HARD_KILL) is Due.HARD_KILL
    assert grace.due(100.0 + GRACE + HARD_KILL) is None
    assert grace.due(100.0 + GRACE + 2 * HARD_KILL) is Due.HARD_KILL


def test_a_second_signal_is_impatience_only_when_it_comes_later() -> None:
    """timeout(1) signals the process and its group at once: that is one ask. A second later it is two."""
    twice = Grace()
    twice.asked(5.0)
    twice.asked(5.0 + SECOND_ASK - 0.001)
    assert twice.due(5.0 + SECOND_ASK) is None
    twice.asked(5.0 + SECOND_ASK)
    assert twice.due(5.0 + SECOND_ASK) is Due.KILL


def test_a_lost_gate_shortens_the_grace_and_never_lengthens_it() -> None:
    """HLD-7: two seconds after the gate went the task is killed, whoever asked for its end before."""
    grace = Grace()
    grace.gate_lost(10.0)
    assert grace.due(10.0 + GATE_GRACE) is Due.KILL
    late = Grace()
    late.asked(0.0)
    late.gate_lost(GRACE - 0.5)
    assert late.due(GRACE) is Due.KILL


def test_output_is_waited_for_while_it_moves() -> None:
    """The last output has its own time, counted from the last byte that its reader took."""
    grace = Grace()
    grace.asked(0.0)
    grace.drain(1.0)
    assert grace.due(1e9) is None, "a task that has ended is not killed"
    assert not grace.drained_enough(1.0 + DRAIN - 0.001)
    grace.moved(5.0)
    grace.drain(6.0)
    assert grace.patience(5.0) == DRAIN
    assert not grace.drained_enough(5.0 + DRAIN - 0.001)
    assert grace.drained_enough(5.0 + DRAIN)


def test_asked_again_while_output_drains_it_ends_at_once() -> None:
    """Whoever asks for the end does not want to wait for a reader."""
    grace = Grace()
    grace.drain(1.0)
    grace.asked(2.0)
    assert grace.drained_enough(2.0)
