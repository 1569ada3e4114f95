"""What answers mean for later connections of their task."""

from __future__ import annotations

import pytest

from tidegate.model.question import Answer, Terms
from tidegate.model.verdict import Phase
from tidegate.questions.grants import MOST, Grants, Held
from tidegate.questions.values import Moment

KEY = ("t1", Phase.RUNTIME, "a.test", 443)


@pytest.mark.parametrize(
    "other",
    [
        ("t2", Phase.RUNTIME, "a.test", 443),
        ("t1", Phase.INSTALL, "a.test", 443),
        ("t1", Phase.RUNTIME, "b.a.test", 443),
        ("t1", Phase.RUNTIME, "a.test", 80),
    ],
)
def test_a_grant_speaks_for_exactly_one_task_phase_host_and_port(other: tuple[str, Phase, str, int]) -> None:
    """ASK-2: no allow without an answer of that task, host and port."""
    grants = Grants()
    grants.put(KEY, Held(1, Answer.TASK, "alice"))
    assert grants.find(KEY, 0, 0) is not None
    assert grants.find(other, 0, 0) is None


@pytest.mark.parametrize(
    ("held", "now", "wall", "counts"),
    [
        (Held(1, Answer.TASK, "a"), 1e9, 1e9, True),
        (Held(1, Answer.TASK, "a", Terms(until=50)), 1e9, 49.9, True),
        (Held(1, Answer.TASK, "a", Terms(until=50)), 0, 50, False),
        (Held(1, Answer.ALLOW, "a", expires=60.0, tries=1), 59.9, 1e9, True),
        (Held(1, Answer.ALLOW, "a", expires=60.0, tries=1), 60, 0, False),
        (Held(1, Answer.TASK, "a", tries=0), 0, 0, False),
    ],
)
def test_a_grant_counts_until_its_end(held: Held, now: float, wall: float, *, counts: bool) -> None:
    """ASK-7: at its end, not after it; a person's time is of the wall, the minute of a next try is not."""
    grants = Grants()
    grants.put(KEY, held)
    assert (grants.find(KEY, now, wall) is not None) is counts
    assert grants.sweep(Moment(now, wall)) == []  # no bound, so nothing open ends
    assert bool(list(grants.every())) is counts


def test_connections_are_counted() -> None:
    """ASK-7: two connections are two."""
    grants = Grants()
    grants.put(KEY, Held(1, Answer.TASK, "a", tries=2))
    for _ in range(2):
        assert grants.find(KEY, 0, 0) is not None
        grants.use(KEY)
    assert grants.find(KEY, 0, 0) is None


def test_only_the_grant_of_that_question_is_dropped() -> None:
    """A later answer is not taken back with an earlier one."""
    grants = Grants()
    grants.put(KEY, Held(2, Answer.TASK, "a"))
    assert not grants.drop(KEY, 1)
    assert grants.drop(KEY, 2)
    assert not grants.drop(KEY, 2)


def test_a_task_cannot_fill_the_memory() -> None:
    """B143: what does not fit is asked again, and what is there can still be changed."""
    grants = Grants()
    for port in range(MOST + 10):
        grants.put(("t1", Phase.RUNTIME, "a.test", port), Held(port, Answer.TASK, "a"))
    assert len(list(grants.every())) == MOST
    grants.put(("t1", Phase.RUNTIME, "a.test", 1), Held(9999, Answer.DENY_TASK, "a"))
    held = grants.find(("t1", Phase.RUNTIME, "a.test", 1), 0, 0)
    assert held is not None
    assert held.kind is Answer.DENY_TASK
    grants.put(("t2", Phase.RUNTIME, "a.test", 1), Held(1, Answer.TASK, "a"))
    assert len(list(grants.every())) == MOST + 1
    grants.drop_task("t1")
    assert len(list(grants.every())) == 1
