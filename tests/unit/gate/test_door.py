"""A door counts its task's connections, and knows when there are as many as there may be (GAT-6)."""

from __future__ import annotations

import pytest

from tests.unit.gate.kit import policy_of, small
from tidegate.gate.door import Door
from tidegate.gate.gate import GateTask


class _Gate:
    connections = 2


def test_who_comes_and_goes_is_counted() -> None:
    """GAT-6: full at the policy's bound, not before; the sockets are the task's."""
    task = GateTask("t1", policy_of(limits=small(connections=2)))
    door = Door(_Gate(), task)  # type: ignore[arg-type]
    for fd in (5, 6):
        assert not door.is_full()
        door.entered(fd)
    assert door.is_full()
    assert task.clients == {5, 6}
    door.left(5)
    assert not door.is_full()
    assert (task.clients, task.connections, door.gate.connections) == ({6}, 1, 1)


def test_the_bound_is_that_of_all_commands() -> None:
    """GAT-6: another command's connections count."""
    tasks = [GateTask("t1", policy_of(limits=small(connections=1))) for _ in range(2)]
    tasks[1].join(tasks[0])
    tasks[0].connections = 1
    assert Door(_Gate(), tasks[1]).is_full()  # type: ignore[arg-type]


def test_how_a_door_is_closed_is_its_makers_business() -> None:
    """It is abstract in this."""
    with pytest.raises(NotImplementedError):
        Door(_Gate(), GateTask("t1", policy_of())).close()  # type: ignore[arg-type]
