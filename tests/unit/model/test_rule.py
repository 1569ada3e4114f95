"""tidegate.model.rule."""

from __future__ import annotations

from tidegate.model.rule import NO_LIMITS, Layer, Origin, RuleLimits, only


def test_a_person_wins_over_a_preset_and_the_command_line_over_files() -> None:
    """POL-5, POL-8: the orders that break ties are the orders of these numbers."""
    assert Origin.WRITTEN > Origin.REMEMBERED > Origin.HARNESS > Origin.PRESET
    assert Layer.COMMAND_LINE > Layer.FOLDER > Layer.SERVER > Layer.USER > Layer.BUILTIN > Layer.ADMINISTRATOR


def test_a_rule_without_limits_has_none() -> None:
    """GAT-6: limits are optional and off by default."""
    assert RuleLimits() == NO_LIMITS
    assert NO_LIMITS.bytes_up is None
    assert NO_LIMITS.requests == ()


def test_requests_of_one_alternative() -> None:
    """INS-6: methods and paths of one rule; neither of them is no bound at all."""
    assert only(("GET",), ("/a",)) == ((("", ("GET",), ("/a",)),),)
    assert only() == ()
