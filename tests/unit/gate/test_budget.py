"""tidegate.gate.budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gate.budget import Budget


def test_a_burst_is_free_and_then_it_is_the_rate() -> None:
    """GAT-6: so many at once, not one more, and after a while as many as the rate gives."""
    budget = Budget(3, 10.0, 100.0)
    done = []
    for _ in range(4):
        done.append(budget.allows(100.0))
        if done[-1]:
            budget.spend()
    assert done == [True, True, True, False]
    assert not budget.allows(100.09)
    assert budget.allows(100.11)
    budget.spend()
    assert not budget.allows(100.12)


def test_a_full_bucket_does_not_save_up() -> None:
    """GAT-6: an hour of quiet gives one burst and no more."""
    budget = Budget(3, 10.0, 0.0)
    for _ in range(3):
        assert budget.allows(3600.0)
        budget.spend()
    assert not budget.allows(3600.0)


@given(st.lists(st.floats(0, 0.5), max_size=200))
def test_never_more_than_burst_and_rate(waits: list[float]) -> None:
    """GAT-6: whatever the rhythm, what is done in a time is at most the burst and the rate times the time."""
    now, done = 0.0, 0
    budget = Budget(5, 4.0, now)
    for wait in waits:
        now += wait
        if budget.allows(now):
            budget.spend()
            done += 1
    assert done <= 5 + 4.0 * now + 1e-6


@pytest.mark.parametrize("burst", [1, 1000])
def test_asking_costs_nothing(burst: int) -> None:
    """Only work that is done counts."""
    budget = Budget(burst, 1.0, 0.0)
    assert all(budget.allows(0.0) for _ in range(5))
