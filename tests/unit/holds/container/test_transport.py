"""transport.py: the values that the three transports share."""

from __future__ import annotations

from tidegate.holds.container.transport import TRANSPORTS, Way


def test_the_transports_are_three() -> None:
    """HLD-4 names three ways; what forces one takes these words."""
    assert TRANSPORTS == ("enter", "relay", "vm")


def test_a_way_has_nothing_but_its_port_by_default() -> None:
    """What is not asked for is not there, and the self-test is on (HLD-11)."""
    way = Way(name="n", labels={}, folder="/f", port=3128, capture="off")
    assert (way.capture_ports, way.met, way.published, way.selftest) == ((), (), (), True)
