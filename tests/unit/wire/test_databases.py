"""tidegate.wire.databases: what a refused PostgreSQL or Redis client is told (GAT-9)."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.databases import asks_for_encryption, database_refusal

SSL = struct.pack(">II", 8, 80877103)
GSS = struct.pack(">II", 8, 80877104)
CANCEL = struct.pack(">IIII", 16, 80877102, 1, 2)


def startup(version: int = 196608, size: int | None = None) -> bytes:
    """Return a start-up packet of protocol 3.0."""
    rest = struct.pack(">I", version) + b"user\0u\0database\0d\0\0"
    return struct.pack(">I", len(rest) + 4 if size is None else size) + rest


@pytest.mark.parametrize(
    ("data", "asks"),
    [(SSL, True), (GSS, True), (SSL + b"x", True), (SSL[:7], False), (CANCEL, False), (startup(), False), (b"", False)],
)
def test_a_wish_for_encryption(data: bytes, asks: bool) -> None:
    """Both requests, whole; nothing that looks like them."""
    assert asks_for_encryption(data) is asks


def test_postgres_gets_an_error_response() -> None:
    """Type, length, and the fields that protocol 3 wants in each: severity, code, message."""
    answer = database_refusal(startup(), "a.test:5432: no")
    assert answer[:1] == b"E"
    assert struct.unpack(">I", answer[1:5]) == (len(answer) - 1,)
    assert answer[-1:] == b"\0"
    fields = {field[:1]: field[1:] for field in answer[5:-2].split(b"\0")}
    assert fields == {b"S": b"FATAL", b"V": b"FATAL", b"C": b"28000", b"M": b"a.test:5432: no"}


@pytest.mark.parametrize("data", [b"*1\r\n$4\r\nPING\r\n", b"*2", b"*10\r\n"])
def test_redis_gets_an_error_line(data: bytes) -> None:
    """One line of RESP, whatever is in the text."""
    assert database_refusal(data, "a.test:6379: no") == b"-ERR a.test:6379: no\r\n"
    assert database_refusal(data, "a\r\nb\0\u00e9") == b"-ERR a??b?\\xe9\r\n"


@pytest.mark.parametrize(
    "data",
    [b"", b"*", b"*x", b"PING\r\n", b"\x00", SSL, GSS, CANCEL, startup(131072), startup(size=7), startup(size=10_001),
     b"\x16\x03\x01\x00\x05"],
)  # fmt: skip
def test_others_are_told_nothing(data: bytes) -> None:
    """Old protocols, broken lengths, inline commands and everything else: no guess is made."""
    assert database_refusal(data, "no") == b""


@given(st.binary(max_size=64), st.text())
def test_any_bytes(data: bytes, text: str) -> None:
    """Never an error, always bounded, and one message of the client's protocol or nothing."""
    answer = database_refusal(data, text)
    assert len(answer) <= 1100
    assert not answer or answer[:1] == b"E" or (answer[:5] == b"-ERR " and answer.count(b"\r\n") == 1)
