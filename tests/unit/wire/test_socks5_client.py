"""Proves the SOCKS5 client side, against the server side of the same room and by bytes of the RFCs (GAT-8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import outcome
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.wire import socks5
from tidegate.wire.socks5_client import (
    greeting,
    password_request,
    read_method,
    read_password_reply,
    read_reply,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_greetings() -> None:
    """Credentials are offered only where there are some."""
    assert greeting(credentials=False) == b"\x05\x01\x00"
    assert greeting(credentials=True) == b"\x05\x02\x00\x02"
    assert socks5.read_greeting(greeting(credentials=False)) == 3


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", None), (b"\x05", None), (b"\x05\x00", (2, 0)), (b"\x05\x02x", (2, 2))]
)
def test_the_chosen_method(data: bytes, expected: tuple[int, int] | None) -> None:
    """It is read once it is whole."""
    assert read_method(data) == expected


@pytest.mark.parametrize("data", [b"H", b"\x04\x00", b"\x05\xff", b"\x05\x01"])
def test_a_proxy_that_chooses_nothing_of_ours(data: bytes) -> None:
    """No SOCKS5, no acceptable method, or one that was not offered."""
    assert outcome(lambda: read_method(data)) is Reason.UPSTREAM_PROXY


def test_the_password_exchange() -> None:
    """RFC 1929, with its bounds."""
    assert password_request(b"me", b"pw") == b"\x01\x02me\x02pw"
    for user, password in [(b"", b"x"), (b"x", b""), (b"x" * 256, b"x"), (b"x", b"x" * 256)]:
        assert outcome(lambda u=user, p=password: password_request(u, p)) is Reason.UPSTREAM_PROXY
    assert [read_password_reply(data) for data in (b"", b"\x01", b"\x01\x00", b"\x01\x00x")] == [0, 0, 2, 2]
    for data in (b"\x05", b"\x01\x01", b"\x01\xff"):
        assert outcome(lambda d=data: read_password_reply(d)) is Reason.UPSTREAM_PROXY


@pytest.mark.parametrize("target", [b"a.test:443", b"1.2.3.4:22", b"[2600:beef::1]:65535"])
def test_our_server_reads_our_request(target: bytes) -> None:
    """A name goes as a name, an address as an address; both arrive as what they were."""
    where = parse_authority(target)
    data = request(where.host, where.port)
    assert socks5.read_request(data) == (len(data), where)


@pytest.mark.parametrize("bound", [b"\x01" + bytes(4), b"\x04" + bytes(16), b"\x03\x00", b"\x03\x06a.test"])
def test_a_reply_is_read_to_its_end(bound: bytes) -> None:
    """Whatever address the proxy bound, not one byte of the tunnel is taken (servers may speak at once)."""
    data = b"\x05\x00\x00" + bound + b"\x00\x00"
    assert [read_reply(data[:size]) for size in range(len(data))] == [0] * len(data)
    assert read_reply(data + b"SSH-2.0-x\r\n") == len(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x05\x01", Reason.UPSTREAM_PROXY),
        (b"\x05\x02", Reason.UPSTREAM_PROXY),
        (b"\x05\x03", Reason.UPSTREAM_UNREACHABLE),
        (b"\x05\x04", Reason.UPSTREAM_UNREACHABLE),
        (b"\x05\x05", Reason.UPSTREAM_REFUSED),
        (b"\x05\x06", Reason.UPSTREAM_TIMEOUT),
        (b"\x05\x63", Reason.UPSTREAM_PROXY),
        (b"\x00", Reason.UPSTREAM_PROXY),
        (b"\x05\x00\x00\x02\x00", Reason.UPSTREAM_PROXY),
    ],
)
def test_failures_are_told_apart(data: bytes, reason: Reason) -> None:
    """The reply code says which upstream failure it was (GAT-7)."""
    assert outcome(lambda: read_reply(data)) is reason


@given(st.binary(max_size=30), st.sampled_from([read_method, read_password_reply, read_reply]))
def test_any_bytes_are_a_value_or_an_error(data: bytes, read: Callable[[bytes], Any]) -> None:
    """The first answer that is not `more` is the answer for the whole, too."""
    answers = [outcome(lambda size=size: read(data[:size])) for size in range(len(data) + 1)]
    final = [answer for answer in answers if answer not in {None, 0}]
    assert all(answer == final[0] for answer in final)
