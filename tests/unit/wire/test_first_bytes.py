"""Proves that the first bytes tell what a client of the one port speaks (GAT-1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import bytewise
from tidegate.wire.first_bytes import Speaks, listener_speaks


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b"G", Speaks.HTTP),
        (b"CONNECT a.test:443 HTTP/1.1\r\n", Speaks.HTTP),
        (b"get", Speaks.HTTP),
        (b"S", None),
        (b"SS", None),
        (b"SSH", None),
        (b"SSH-", Speaks.SSH),
        (b"SSH-2.0-x", Speaks.SSH),
        (b"SEARCH http://a/ HTTP/1.1", Speaks.HTTP),
        (b"SSX", Speaks.HTTP),
        (b"\x05", Speaks.SOCKS5),
        (b"\x05\x01\x00", Speaks.SOCKS5),
        (b"\x04\x01", Speaks.OTHER),
        (b"\x16\x03\x01", Speaks.TLS),
        (b"\r\nGET", Speaks.OTHER),
        (b" GET", Speaks.OTHER),
        (b"\x00", Speaks.OTHER),
        (b"0", Speaks.OTHER),
    ],
)
def test_the_first_bytes_tell(data: bytes, expected: Speaks | None) -> None:
    """HTTP begins with a letter, SOCKS5 with 5, TLS with a handshake record; only SSH- needs more than one byte."""
    assert listener_speaks(data) is expected
    assert listener_speaks(bytearray(data)) is expected
    assert listener_speaks(memoryview(data)) is expected


@given(st.binary(max_size=8))
def test_an_answer_never_changes(data: bytes) -> None:
    """Once told, more bytes change nothing."""
    buf = b""
    told = None
    for byte in bytewise(data):
        buf += byte
        answer = listener_speaks(buf)
        assert told is None or answer is told
        told = answer
