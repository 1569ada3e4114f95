"""tidegate.model.task."""

from __future__ import annotations

from tidegate.model.task import Task
from tidegate.model.verdict import Phase


def test_a_task_is_at_run_time_unless_said_otherwise() -> None:
    """POL-7: everything but the set-up command is runtime."""
    assert Task("t1", "/w").phase is Phase.RUNTIME
