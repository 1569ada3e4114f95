"""Netlink's framing is read whole or not at all."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire import netlink
from tidegate.wire.errors import WireError


def message(kind: int, body: bytes, sequence: int = 1) -> bytes:
    """One message as the kernel writes it."""
    return struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 0) + body + bytes(-len(body) % 4)


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.binary(max_size=40), st.integers(0, 0xFFFFFFFF)), max_size=5))
def test_messages_come_back_as_they_were_sent(sent: list[tuple[int, bytes, int]]) -> None:
    """Each message's type, body and sequence, whatever the padding between them."""
    data = b"".join(message(*one) for one in sent)
    read = [(kind, data[start:end], number) for (kind, start, end), number in netlink.messages(data)]
    assert read == sent


@given(st.lists(st.tuples(st.integers(0, 0x3FFF), st.binary(max_size=40)), max_size=5), st.sampled_from((0, 0x8000)))
def test_attributes_come_back_without_their_marks(sent: list[tuple[int, bytes]], mark: int) -> None:
    """The mark of a nest is not part of its kind."""
    data = b"".join(attribute(kind | mark, value) for kind, value in sent)
    assert [(kind, data[start:end]) for kind, start, end in netlink.attributes(data, 0, len(data))] == sent


@given(st.binary(max_size=80))
def test_any_bytes_are_parts_within_them_or_an_error(data: bytes) -> None:
    """Invariant: parts lie within the bytes, in their order and apart from one another; or WireError."""
    for read in (
        lambda: [part for part, _ in netlink.messages(data)],
        lambda: netlink.attributes(data, 0, len(data)),
    ):
        try:
            parts = read()
        except WireError:
            continue
        at = 0
        for _kind, start, end in parts:
            assert at < start <= end <= len(data)
            at = end


@pytest.mark.parametrize(
    "data",
    [b"\0", message(2, b"")[:15], struct.pack("=IHHII", 15, 2, 0, 1, 0), message(2, b"12345678")[:-1], bytes(16)],
)
def test_a_message_cut_short_is_an_error(data: bytes) -> None:
    """A header that is cut, a length less than the header or more than there is."""
    with pytest.raises(WireError):
        netlink.messages(data)


def test_an_error_has_its_number() -> None:
    """The kernel writes it as a negative one; a message without is none."""
    data = message(netlink.NLMSG_ERROR, struct.pack("=i", -2))
    assert netlink.error_number(data, netlink.messages(data)[0][0]) == 2
    with pytest.raises(WireError):
        netlink.error_number(data, (2, 16, 19))


def test_a_request_is_read_as_it_was_written() -> None:
    """What is sent to the kernel has the shape of what comes from it."""
    ((kind, start, end), number) = netlink.messages(netlink.request(20, 7, b"12345"))[0]
    assert (kind, end - start, number) == (20, 5, 7)
