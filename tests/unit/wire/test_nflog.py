"""What the kernel tells of packets that it turned away becomes whose, protocol, address and port (JRN-3)."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kernel_headers
from tests.unit.wire.test_netlink import attribute, message
from tidegate.wire import nflog
from tidegate.wire.attempt import NOBODY, Attempt
from tidegate.wire.errors import WireError
from tidegate.wire.nflog import attempts

FOUR, SIX = bytes((1, 2, 3, 4)), socket.inet_pton(socket.AF_INET6, "2600:beef::1")


def packet_message(packet: bytes, kind: int = 4 << 8, uid: int | None = None, prefix: bytes = b"") -> bytes:
    """One message of the log, with what the kernel puts beside the packet."""
    body = bytes(4) + attribute(1, bytes(4)) + attribute(10, prefix + b"\0")
    if uid is not None:
        body += attribute(11, struct.pack(">I", uid)) + attribute(14, struct.pack(">I", uid))
    return message(kind, body + attribute(9, packet), 0)


def ipv4(protocol: int, port: int, options: bytes = b"", fragment: int = 0) -> bytes:
    """A packet to 1.2.3.4."""
    head = bytes((0x45 + len(options) // 4, 0, 0, 0, 0, 0, fragment >> 8, fragment & 255, 64, protocol, 0, 0))
    return head + bytes((198, 18, 0, 1, 1, 2, 3, 4)) + options + struct.pack(">HHHH", 4000, port, 8, 0)


def ipv6(protocol: int, port: int) -> bytes:
    """A packet to 2600:beef::1."""
    return bytes((0x60, 0, 0, 0, 0, 8, protocol, 64)) + bytes(16) + SIX + struct.pack(">HHHH", 4000, port, 8, 0)


@pytest.mark.parametrize(
    ("packet", "told"),
    [
        (ipv4(6, 443), [Attempt("tcp", FOUR, 443)]),
        (ipv6(6, 443), [Attempt("tcp", SIX, 443)]),
        (ipv4(17, 443), [Attempt("udp", FOUR, 443)]),
        (ipv4(17, 443, bytes(8)), [Attempt("udp", FOUR, 443)]),
        (ipv6(17, 443), [Attempt("udp", SIX, 443)]),
        (ipv4(1, 443), [Attempt("icmp", FOUR, 0)]),
        (ipv6(58, 443), [Attempt("icmp", SIX, 0)]),
        (ipv4(132, 443), [Attempt("other", FOUR, 0)]),
        (ipv6(0, 443), [Attempt("other", SIX, 0)]),
        (ipv4(17, 443)[:20], [Attempt("udp", FOUR, 0)]),
        (ipv4(17, 443, fragment=0x2000), [Attempt("udp", FOUR, 443)]),
        (ipv4(17, 443, fragment=0x2001), [Attempt("udp", FOUR, 0)]),
        (b"\x44" + ipv4(17, 443)[1:], []),
        (ipv4(17, 443)[:19], []),
        (b"", []),
        (b"\x25" + bytes(30), []),
    ],
)
def test_packets_are_told_apart(packet: bytes, told: list[Attempt]) -> None:
    """JRN-3: both families, options of IPv4 in between, the port where there is one; a part is no attempt."""
    assert attempts(packet_message(packet)) == told


def test_whose_it_was_is_the_kernels_word() -> None:
    """JRN-3: the user beside the packet and the rule's prefix; nothing in the packet says either."""
    (told,) = attempts(packet_message(ipv4(6, 443), uid=30001, prefix=b"tidegate "))
    assert told == Attempt("tcp", FOUR, 443, 30001, "tidegate ")
    (told,) = attempts(packet_message(ipv4(6, 443)))
    assert told.uid == NOBODY
    (told,) = attempts(packet_message(ipv4(6, 443), prefix=b"x" * 1000))
    assert len(told.prefix) == 128


def test_several_in_one_datagram_and_others_between_them() -> None:
    """Each message counts; another type of message does not."""
    data = packet_message(ipv4(17, 1)) + packet_message(ipv4(17, 2), kind=2) + packet_message(ipv6(17, 3))
    assert [one.port for one in attempts(data)] == [1, 3]


@pytest.mark.parametrize(
    "data",
    [
        packet_message(ipv4(17, 1))[:-1],
        message(4 << 8, b"\0\0\0"),
        message(4 << 8, bytes(4) + attribute(11, b"\0\0\0")),
        message(4 << 8, bytes(4) + b"\3\0\1\0"),
    ],
)
def test_what_is_not_framed_is_an_error(data: bytes) -> None:
    """Cut short, without a header, a user of three bytes, an attribute shorter than itself."""
    with pytest.raises(WireError):
        attempts(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_attempts_or_an_error(data: bytes) -> None:
    """Invariant: an address of one of two sizes, a port, a user; for raw bytes, a body and a packet."""
    for one in (data, message(4 << 8, data), packet_message(data)):
        try:
            told = attempts(one)
        except WireError:
            continue
        for attempt in told:
            assert len(attempt.address) in (4, 16)
            assert 0 <= attempt.port <= 65535
            assert -1 <= attempt.uid <= 0xFFFFFFFF


def test_constants_are_those_of_the_headers() -> None:
    """The numbers are the kernel's own."""
    header = "linux/netfilter/nfnetlink_log"
    known = kernel_headers.numbers("linux/netfilter/nfnetlink")
    known |= kernel_headers.enumerated("NFULNL_MSG_PACKET", header) | kernel_headers.enumerated("NFULA_UNSPEC", header)
    mine = {name: value for name, value in vars(nflog).items() if name.split("_")[0] in ("NFULA", "NFNL", "NFULNL")}
    assert len(mine) == 5
    assert mine == {name: known[name] for name in mine}
