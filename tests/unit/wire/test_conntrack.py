"""What tracking says a connection was counts only where it is about that very connection."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kernel_headers
from tests.unit.wire.test_netlink import attribute, message
from tidegate.wire import conntrack, netlink
from tidegate.wire.conntrack import answer, question
from tidegate.wire.errors import WireError
from tidegate.wire.sock_diag import Ends

HOME, GATE, AWAY = bytes((127, 0, 0, 1)), bytes((127, 0, 0, 1)), bytes((1, 2, 3, 4))
ARRIVED = Ends(HOME, 1251, GATE, 5000)
ORIGINAL = Ends(HOME, 40000, AWAY, 443)
ARRIVED6 = Ends(bytes(15) + b"\1", 1251, bytes(15) + b"\1", 5000)
ORIGINAL6 = Ends(bytes(15) + b"\1", 40000, bytes(12) + AWAY, 443)
ENTRY = conntrack.NFNL_SUBSYS_CTNETLINK << 8 | conntrack.IPCTNL_MSG_CT_NEW


def direction(kind: int, ends: Ends, protocol: int = 6) -> bytes:
    """One direction, attribute by attribute."""
    first = 1 if len(ends.local) == 4 else 3
    address = attribute(first, ends.local) + attribute(first + 1, ends.remote)
    ports = attribute(1, bytes((protocol,)))
    ports += attribute(2, struct.pack(">H", ends.local_port)) + attribute(3, struct.pack(">H", ends.remote_port))
    return attribute(kind | 0x8000, attribute(1 | 0x8000, address) + attribute(2 | 0x8000, ports))


def turned(ends: Ends) -> Ends:
    """The way of the answers."""
    return Ends(ends.remote, ends.remote_port, ends.local, ends.local_port)


def entry(original: Ends = ORIGINAL, arrived: Ends = ARRIVED, protocol: int = 6) -> bytes:
    """A connection as the kernel writes it: both directions, then more."""
    head = bytes((2 if len(original.local) == 4 else 10, 0, 0, 0))
    return head + direction(1, original, protocol) + direction(2, turned(arrived)) + attribute(3, bytes(4))


@pytest.mark.parametrize(("original", "arrived"), [(ORIGINAL, ARRIVED), (ORIGINAL6, ARRIVED6), (ARRIVED, ARRIVED)])
def test_the_clients_own_ends_are_read(original: Ends, arrived: Ends) -> None:
    """GAT-2: another port and another destination than what arrived; in both families; or the same."""
    assert answer(message(ENTRY, entry(original, arrived), 9), 9, arrived) == original


def test_no_such_connection_and_other_errors() -> None:
    """ENOENT is a plain answer; others are none, and `refusal` tells which."""
    for number in (errno.ENOENT, errno.EPERM, errno.EINVAL):
        data = message(netlink.NLMSG_ERROR, struct.pack("=i", -number), 9)
        assert conntrack.refusal(data, 9, ARRIVED) == number
        if number == errno.ENOENT:
            assert answer(data, 9, ARRIVED) is None
        else:
            with pytest.raises(WireError):
                answer(data, 9, ARRIVED)
    with pytest.raises(WireError):
        conntrack.refusal(message(ENTRY, entry(), 9), 9, ARRIVED)


@pytest.mark.parametrize(
    "body",
    [
        entry(arrived=Ends(HOME, 1252, GATE, 5000)),
        entry(arrived=Ends(HOME, 1251, AWAY, 5000)),
        entry(protocol=17),
        entry(ORIGINAL6, ARRIVED6),
        entry()[:-9],
        bytes(4) + direction(2, turned(ARRIVED)) + direction(1, ORIGINAL),
        bytes(4) + direction(1, ORIGINAL) + attribute(3, bytes(4)) + direction(2, turned(ARRIVED)),
        b"",
    ],
)
def test_another_connection_is_an_error(body: bytes) -> None:
    """Other ends, another protocol, another family, cut short, another order: never an owner."""
    with pytest.raises(WireError):
        answer(message(ENTRY, body, 9), 9, ARRIVED)


def test_another_questions_answer_is_an_error() -> None:
    """By its sequence, or by its type."""
    for data in (message(ENTRY, entry(), 8), message(ENTRY + 2, entry(), 9), b""):
        with pytest.raises(WireError):
            answer(data, 9, ARRIVED)


@given(st.binary(max_size=160))
def test_any_bytes_are_ends_none_or_an_error(data: bytes) -> None:
    """Invariant: what is read is of the family that was asked about."""
    for one in (data, message(ENTRY, data, 9), message(ENTRY, entry()[: len(data)] + data, 9)):
        try:
            found = answer(one, 9, ARRIVED)
        except WireError:
            continue
        assert found is None or (len(found.local), len(found.remote)) == (4, 4)


def test_a_question_is_written_as_the_kernel_reads_it() -> None:
    """The direction of the answers, attribute by attribute; ends of two families are a bug of the caller."""
    for arrived in (ARRIVED, ARRIVED6):
        ((kind, start, end), _number) = netlink.messages(question(arrived, 1))[0]
        assert kind == 0x101
        assert question(arrived, 1)[start + 4 : end] == direction(2, turned(arrived))
    for ends in (Ends(HOME, 1, ARRIVED6.local, 2), Ends(b"", 1, b"", 2)):
        with pytest.raises(ValueError, match="family"):
            question(ends, 1)


def test_constants_are_those_of_the_headers() -> None:
    """The numbers are the kernel's own."""
    header = "linux/netfilter/nfnetlink_conntrack"
    known = kernel_headers.numbers("linux/netlink", "linux/netfilter/nfnetlink")
    for first in ("IPCTNL_MSG_CT_NEW", "CTA_UNSPEC", "CTA_TUPLE_UNSPEC", "CTA_IP_UNSPEC", "CTA_PROTO_UNSPEC"):
        known |= kernel_headers.enumerated(first, header)
    mine = {name: value for name, value in vars(conntrack).items() if name.split("_")[0] in ("CTA", "IPCTNL", "NFNL")}
    assert len(mine) == 14
    assert mine == {name: known[name] for name in mine}
    assert known["NETLINK_NETFILTER"] == conntrack.NETLINK_NETFILTER
