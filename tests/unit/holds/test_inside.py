"""The addresses inside are the ones the gate keeps free for them."""

from __future__ import annotations

from tidegate.gate import synthetic
from tidegate.holds import inside


def test_the_gate_never_gives_these_to_a_name() -> None:
    """HLD-6: the first and second address of each synthetic range are the hold's, and the gate leaves them alone."""
    ranges = synthetic.DEFAULT_RANGES
    for family, own, gate in (
        (ranges.ipv4, inside.OWN4, inside.GATE4),
        (ranges.ipv6, inside.OWN6, inside.GATE6),
    ):
        assert family.offset(inside.packed(own)) == synthetic.FIRST
        assert family.offset(inside.packed(gate)) == synthetic.SECOND
    assert synthetic.SECOND < synthetic.RESERVED


def test_sockets_are_found_by_their_role() -> None:
    """A role may have several descriptors, or none."""
    made = inside.TaskSockets(("proxy", "streams", "streams"), (3, 4, 5))
    assert (made.of("proxy"), made.of("streams"), made.of("x")) == ((3,), (4, 5), ())
