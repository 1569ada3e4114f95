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


def test_where_places_of_loopback_lead() -> None:
    """HLD-10: localhost is both loopbacks and the mapped one; a literal is its own, before localhost; nothing else."""
    found = inside.detours((("localhost", 5432), ("127.0.0.1", 5432), ("::1", 6379)), 3128)
    four, six = b"\2\0", b"\n\0"
    at, redis = (5432).to_bytes(2, "big"), (6379).to_bytes(2, "big")
    one, own6 = b"\x7f\0\0\1", bytes(15) + b"\1"
    mapped = bytes(10) + b"\xff\xff"
    assert set(found) == {four + at + one, six + at + mapped + one, six + at + own6, six + redis + own6}
    port = (3128).to_bytes(2, "big")

    def there(number: int) -> tuple[bytes, bytes]:
        last = inside.packed(inside.met_at(number))
        return four + port + last + bytes(8), six + port + bytes(4) + mapped + last + bytes(4)

    assert (found[four + at + one], found[six + at + mapped + one]) == there(1)
    assert found[six + at + own6] == there(0)[1]
    assert found[six + redis + own6] == there(2)[1]
    assert all(key == inside.place_of(key[:4] + bytes(4 * (key[:2] == six)) + key[4:] + bytes(8)) for key in found)


def test_what_stands_for_services_is_on_loopback_and_apart() -> None:
    """HLD-10: as many addresses as there may be services, none of them one that people use."""
    addresses = [inside.met_at(number) for number in range(inside.MOST_MET)]
    assert len(set(addresses)) == inside.MOST_MET
    assert all(address.startswith("127.116.103.") and inside.packed(address) for address in addresses)
