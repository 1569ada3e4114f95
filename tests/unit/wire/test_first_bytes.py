"""Proves that the first bytes tell what is no HTTP request, whatever follows (GAT-1, B31)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import bytewise
from tidegate.model.reason import Reason
from tidegate.wire.first_bytes import why_no_request


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"G",
        b"CONNECT a.test:443 HTTP/1.1\r\n",
        b"get",
        b"S",
        b"SS",
        b"SSH",
        b"SEARCH http://a/",
        b"SSX",
        b"0",
        b"!",
    ],
)
def test_what_may_become_a_request_is_waited_for(data: bytes) -> None:
    """A method begins with any byte of a token, and the beginning of `SSH-` may still become one."""
    assert why_no_request(data) is None
    assert why_no_request(bytearray(data)) is None


@pytest.mark.parametrize(
    ("data", "what", "reply"),
    [
        (b"\x16", "begins like TLS", b""),
        (b"\x16\x03\x01\x02\x00", "write http://", b""),
        (b"\x04\x01\x00\x50", "write socks5h://", b"\x00\x5b\x00\x00\x00\x00\x00\x00"),
        (b"SSH-2.0-x", "ProxyCommand", b""),
        (b"\r\nGET", "does not begin with a method", b""),
        (b" GET", "does not begin with a method", b""),
        (b"\x00", "does not begin with a method", b""),
        (b"\xff", "does not begin with a method", b""),
    ],
)
def test_another_protocol_is_named_with_what_to_write(data: bytes, what: str, reply: bytes) -> None:
    """TLS, SOCKS4 and SSH hear what the proxy speaks; SOCKS4 in its own words."""
    fault = why_no_request(data)
    assert fault is not None
    assert fault.reason is Reason.BAD_REQUEST
    assert what in fault.detail
    assert fault.reply == reply


@given(st.binary(max_size=8))
def test_an_answer_never_changes(data: bytes) -> None:
    """Once told, more bytes change nothing."""
    buf = b""
    told = ""
    for byte in bytewise(data):
        buf += byte
        fault = why_no_request(buf)
        assert not told or (fault is not None and fault.detail == told)
        told = fault.detail if fault is not None else ""
