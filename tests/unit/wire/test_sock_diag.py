"""The answer of socket diagnostics counts only where it is about that very socket, and somebody owns it."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kernel_headers
from tests.unit.wire.test_netlink import message
from tidegate.wire import netlink, sock_diag
from tidegate.wire.errors import WireError
from tidegate.wire.sock_diag import Ends, Owner, answer, question

FOUR = Ends(bytes((127, 0, 0, 1)), 40000, bytes((127, 0, 0, 1)), 3128)
SIX = Ends(bytes(15) + b"\1", 40000, bytes(15) + b"\1", 3128)


def body(ends: Ends = FOUR, **other: Any) -> bytes:
    """A struct inet_diag_msg, with what a test changes."""
    field = {
        "family": 2 if len(ends.local) == 4 else 10,
        "state": 1,
        "uid": 30001,
        "inode": 77,
        "mapped": False,
        **other,
    }
    pad = sock_diag.MAPPED if field["mapped"] else b""
    ends_ = [(pad + one).ljust(16, b"\0") for one in (ends.local, ends.remote)]
    return (
        bytes((field["family"], field["state"], 0, 0))
        + struct.pack(">HH", ends.local_port, ends.remote_port)
        + ends_[0]
        + ends_[1]
        + struct.pack("=III", 0, 5, 1)
        + struct.pack("=IIIII", 0, 0, 0, field["uid"], field["inode"])
    )


def told(content: bytes, ends: Ends = FOUR, sequence: int = 9) -> Owner | None:
    """What is read from an answer."""
    return answer(message(sock_diag.SOCK_DIAG_BY_FAMILY, content, sequence), 9, ends)


@pytest.mark.parametrize("ends", [FOUR, SIX])
@pytest.mark.parametrize("state", [1, 4, 5])
def test_the_owner_is_read(ends: Ends, state: int) -> None:
    """GAT-2: in each state in which a process has the client's socket; what stands behind the message is not read."""
    assert told(body(ends, state=state), ends) == Owner(30001, 77, (1 << 32) + 5)
    assert told(body(ends, state=state) + b"attributes", ends) == Owner(30001, 77, (1 << 32) + 5)


def test_a_socket_of_ipv6_may_be_connected_to_ipv4() -> None:
    """A JVM's is: the same connection, written as IPv6; never the other way round."""
    assert told(body(family=10, mapped=True)) == Owner(30001, 77, (1 << 32) + 5)
    assert told(body(family=2, mapped=True)) is None
    assert told(body(family=10)) is None
    assert told(body(SIX, family=2), SIX) is None


@pytest.mark.parametrize("state", [0, 2, 3, 6, 7, 8, 9, 10, 11, 12, 200])
def test_other_states_are_nobodys(state: int) -> None:
    """A listener on the client's port, one that waits for stray packets, one that has not connected yet."""
    assert told(body(state=state)) is None


def test_a_socket_that_was_closed_is_nobodys() -> None:
    """It has no inode, and its uid reads as root's or as anybody's."""
    assert told(body(uid=0, inode=0)) is None
    assert told(body(uid=30001, inode=0)) is None


@pytest.mark.parametrize(
    "other",
    [
        Ends(FOUR.local, 40001, FOUR.remote, 3128),
        Ends(FOUR.local, 40000, FOUR.remote, 3129),
        Ends(bytes((127, 0, 0, 2)), 40000, FOUR.remote, 3128),
        Ends(FOUR.local, 40000, bytes(4), 0),
        SIX,
    ],
)
def test_another_sockets_owner_is_not_taken(other: Ends) -> None:
    """Both ends have to be the ones that were asked for."""
    assert told(body(other)) is None


def test_no_such_socket() -> None:
    """ENOENT is a plain answer; another error is not understood."""
    assert answer(message(netlink.NLMSG_ERROR, struct.pack("=i", -2) + bytes(16), 9), 9, FOUR) is None
    with pytest.raises(WireError):
        answer(message(netlink.NLMSG_ERROR, struct.pack("=i", -22), 9), 9, FOUR)


def test_only_one_answer_to_this_question_counts() -> None:
    """An older question's answer, two at once, none, and another kind of message are errors."""
    good = message(sock_diag.SOCK_DIAG_BY_FAMILY, body(), 9)
    for data in (
        message(sock_diag.SOCK_DIAG_BY_FAMILY, body(), 8),
        good + good,
        b"",
        message(3, body(), 9),
        message(sock_diag.SOCK_DIAG_BY_FAMILY, body()[:-1], 9),
    ):
        with pytest.raises(WireError):
            answer(data, 9, FOUR)
    assert answer(good, 9, FOUR) is not None


@given(st.binary(max_size=160))
def test_any_bytes_are_an_owner_none_or_an_error(data: bytes) -> None:
    """Invariant, for raw bytes and for those in a well-formed message: an owner always has a socket."""
    for one in (data, message(sock_diag.SOCK_DIAG_BY_FAMILY, data, 9), message(2, data, 9)):
        try:
            owner = answer(one, 9, FOUR)
        except WireError:
            continue
        assert owner is None or owner.inode


def test_a_question_has_one_family() -> None:
    """56 bytes behind the header; ends of two families are a bug of the caller."""
    assert len(question(FOUR, 1)) == len(question(SIX, 1)) == 72
    for ends in (Ends(FOUR.local, 1, SIX.remote, 2), Ends(b"", 1, b"", 2)):
        with pytest.raises(ValueError, match="family"):
            question(ends, 1)


def test_constants_are_those_of_the_headers() -> None:
    """The numbers are the kernel's own."""
    known = kernel_headers.numbers("linux/netlink", "linux/sock_diag")
    for name in ("NETLINK_SOCK_DIAG", "SOCK_DIAG_BY_FAMILY"):
        assert known[name] == getattr(sock_diag, name)
    states = kernel_headers.enumerated("TCP_ESTABLISHED", "netinet/tcp")
    for name in ("TCP_ESTABLISHED", "TCP_FIN_WAIT1", "TCP_FIN_WAIT2"):
        assert states[name] == getattr(sock_diag, name)
