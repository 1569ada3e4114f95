"""The hold `offline` is what its name says."""

from __future__ import annotations

from tidegate.holds.offline import OFFLINE


def test_it_is_a_hold_of_its_own_kind() -> None:
    """Name, filter and gate go together; tests/holds proves what it does (HLD-1, HLD-5)."""
    assert (OFFLINE.name, OFFLINE.has_gate) == ("offline", False)
    OFFLINE.sweep()
