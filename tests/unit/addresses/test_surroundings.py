"""What admission knows of the machine."""

from __future__ import annotations

from tidegate.addresses.surroundings import NOWHERE, Surroundings


def test_nothing_known() -> None:
    """Without anything known, only loopback is own: nothing is protected or named."""
    assert Surroundings() == NOWHERE
    assert (NOWHERE.own, NOWHERE.protected_ports, NOWHERE.names) == (frozenset(), frozenset(), frozenset())
