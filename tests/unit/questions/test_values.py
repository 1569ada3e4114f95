"""What the broker is told."""

from __future__ import annotations

from tests.unit.questions.kit import FOLDER
from tidegate.questions.values import AskingTask


def test_a_task_waits_a_quarter_of_an_hour_unless_it_says_so() -> None:
    """ASK-2: 15 minutes by default."""
    assert AskingTask("t1", FOLDER).wait_seconds == 15 * 60
