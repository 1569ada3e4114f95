"""What the kernel tells of datagrams that it turned away becomes protocol, address and port."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gate.reactor import Reactor
from tidegate.gate.turned_away import TurnedAway, attempts
from tidegate.model.reason import Reason


def attribute(kind: int, value: bytes) -> bytes:
    """One netlink attribute."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(packet: bytes, kind: int = 4 << 8) -> bytes:
    """One message of the log, with what the kernel puts beside the packet."""
    body = bytes(4) + attribute(1, bytes(4)) + attribute(10, b"\0") + attribute(9, packet)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def ipv4(protocol: int, port: int, options: bytes = b"") -> bytes:
    """A packet to 1.2.3.4."""
    head = bytes((0x45 + len(options) // 4, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 18, 0, 1, 1, 2, 3, 4))
    return head + options + struct.pack(">HHHH", 4000, port, 8, 0)


def ipv6(protocol: int, port: int) -> bytes:
    """A packet to 2600:beef::1."""
    address = socket.inet_pton(socket.AF_INET6, "2600:beef::1")
    return bytes((0x60, 0, 0, 0, 0, 8, protocol, 64)) + bytes(16) + address + struct.pack(">HHHH", 4000, port, 8, 0)


FOUR, SIX = bytes((1, 2, 3, 4)), socket.inet_pton(socket.AF_INET6, "2600:beef::1")


@pytest.mark.parametrize(
    ("packet", "told"),
    [
        (ipv4(17, 443), [("udp", FOUR, 443)]),
        (ipv4(17, 443, bytes(8)), [("udp", FOUR, 443)]),
        (ipv6(17, 443), [("udp", SIX, 443)]),
        (ipv4(1, 443), [("icmp", FOUR, 0)]),
        (ipv6(58, 443), [("icmp", SIX, 0)]),
        (ipv4(132, 443), [("other", FOUR, 0)]),
        (ipv6(0, 443), [("other", SIX, 0)]),
        (ipv4(17, 443)[:20], [("udp", FOUR, 0)]),
        (ipv4(17, 443)[:19], []),
        (b"", []),
        (b"\x25" + bytes(30), []),
    ],
)
def test_packets_are_told_apart(packet: bytes, told: list[tuple[str, bytes, int]]) -> None:
    """JRN-3: both families, options of IPv4 in between, the port where there is one; a part is no attempt."""
    assert attempts(message(packet)) == told


def test_several_in_one_datagram_and_others_between_them() -> None:
    """Each message counts; another type of message does not."""
    data = message(ipv4(17, 1)) + message(ipv4(17, 2), kind=2) + message(ipv6(17, 3))
    assert [one[2] for one in attempts(data)] == [1, 3]


@given(st.binary(max_size=200))
def test_nothing_is_too_odd_to_read(data: bytes) -> None:
    """Whatever the bytes: a list, and each of its entries is an address of one of two sizes and a port."""
    for one in (data, message(data)):
        for _protocol, packed, port in attempts(one):
            assert len(packed) in (4, 16)
            assert 0 <= port <= 65535


class _Gate:
    def __init__(self) -> None:
        self.reactor = Reactor(lambda: 0.0, lambda _error: None)


def test_what_arrives_is_recorded_and_closing_lets_go() -> None:
    """The log is read until it is empty; after close nothing is, and the descriptor is given back."""
    gate, told = _Gate(), []
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    reader = TurnedAway(gate, there.detach(), lambda *one: told.append(one))  # type: ignore[arg-type]
    here.send(message(ipv4(17, 1)))
    here.send(b"junk")
    here.send(message(ipv6(17, 2)))
    reader.ready(0, 0)
    assert told == [("udp", FOUR, 1), ("udp", SIX, 2)]
    here.send(message(ipv4(17, 3)))
    reader.cut(Reason.STOPPING)
    assert told[2:] == [("udp", FOUR, 3)]
    reader.close()
    reader.ready(0, 0)
    with pytest.raises(OSError, match=r"."):
        here.send(b"x")
    here.close()
    gate.reactor.close()
