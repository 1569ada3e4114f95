"""Netlink messages are put together as the kernel reads them, and its answers are believed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.holds.apart import apart
from tidegate.holds import netlink


@pytest.mark.parametrize(
    ("value", "packed"), [(b"", "04000100"), (b"x", "0500010078000000"), (b"four", "08000100666f7572")]
)
def test_attributes_are_padded_and_their_length_is_not(value: bytes, packed: str) -> None:
    """An attribute's length is that of its value; zeros follow up to four bytes (netlink(7))."""
    assert netlink.attribute(1, value).hex() == packed


def test_nested_attributes_say_so() -> None:
    """NLA_F_NESTED is set, strings end in a zero, and netfilter's numbers are in the network's order."""
    assert netlink.nest(2, netlink.text(1, "ab"), netlink.big(3, 258, 2)).hex() == (
        "1400028007000100616200000600030001020000"
    )


def test_a_message_has_its_header() -> None:
    """Length without padding, type, flags with NLM_F_REQUEST, the sequence."""
    packed = netlink.Message("x", 16, netlink.NLM_F_ACK, b"12345").packed(7)
    assert struct.unpack_from("=IHHII", packed) == (21, 16, 5, 7, 0)
    assert packed[16:] == b"12345\0\0\0"


@given(st.binary(max_size=200))
def test_no_answer_is_too_odd_to_read(data: bytes) -> None:
    """Whatever a datagram holds, reading it ends, within its bounds."""
    for _kind, _sequence, start, end in netlink.split(data):
        assert 16 <= start <= end <= len(data)
    netlink.errors(data)


def test_answers_are_told_apart() -> None:
    """Success is 0, a refusal its errno, for the sequence it answers; what is cut short is left out."""

    def answer(sequence: int, code: int) -> bytes:
        return struct.pack("=IHHIIi", 36, 2, 0, sequence, 0, code) + bytes(16)

    assert netlink.errors(answer(1, 0) + answer(2, -13)) == [(1, 0), (2, 13)]
    assert netlink.errors(answer(1, 0) + answer(2, -13)[:30]) == [(1, 0)]


def test_the_kernel_is_asked_and_its_refusal_named() -> None:
    """A refused message is an OSError that says which; an unanswered one is, too (HLD-7)."""
    code = """
    from tidegate.holds import netlink, routes
    inside(linux.CLONE_NEWNET)
    wire = netlink.connect(netlink.NETLINK_ROUTE)
    good = routes._messages(2, '198.18.0.1')
    bad = netlink.Message('the bad one', 24, netlink.NLM_F_ACK, bytes(1))
    for wanted in ([good[0], bad], [bad]):
        try:
            netlink.transact(wire, wanted)
        except OSError as error:
            print(errno.errorcode[error.errno], error.filename)
    """
    lines = apart(code).splitlines()
    assert len(lines) == 2
    assert all(line.endswith("the bad one") for line in lines)
