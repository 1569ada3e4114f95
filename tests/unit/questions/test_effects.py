"""What the broker wants done."""

from __future__ import annotations

from tests.unit.questions.kit import wanted
from tidegate.questions.effects import Release


def test_effects_are_values() -> None:
    """An effect can be compared, which is how the broker's tests say what they expect."""
    assert Release(1, wanted("a.test:443")) == Release(1, wanted("a.test:443"))
    assert Release(1, wanted("a.test:443")) != Release(2, wanted("a.test:443"))
