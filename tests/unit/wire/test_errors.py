"""Proves that what a WireError says is safe to print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.wire.errors import MAX_SHOWN, WireError, escaped, shown_host


def test_escaped_shows_control_bytes_as_hex() -> None:
    """A NUL, an escape sequence and non-ASCII bytes never reach a terminal or the journal raw (B04, B07)."""
    assert escaped(b"127.0.0.1\x00.a.test") == r"127.0.0.1\x00.a.test"
    assert escaped(b"\x1b[2J") == r"\x1b[2J"
    assert escaped("\u202e") == r"\xe2\x80\xae"
    assert escaped(b"a\\x00") == r"a\x5cx00"


@given(st.binary(max_size=600), st.integers(8, 300))
def test_escaped_is_bounded_printable_and_whole(raw: bytes, limit: int) -> None:
    """Whatever the bytes, the text is printable ASCII, within its bound, and ends with no half escape."""
    text = escaped(raw, limit)
    assert len(text) <= limit
    assert all(" " <= char <= "~" for char in text)
    rest = text.split("\\")[1:]
    assert all(part[:1] == "x" and len(part) >= 3 for part in rest)


def test_the_bound_is_the_journals() -> None:
    """A raw host in the journal has at most 256 bytes."""
    assert len(escaped(b"a" * 10_000)) == MAX_SHOWN == 256


def test_sentence_names_the_host_where_one_is_known() -> None:
    """The line for people begins with what was asked for, canonical where it became a destination."""
    assert WireError(Reason.BAD_REQUEST, "it is odd").sentence() == "the request is malformed: it is odd [bad-request]"
    assert WireError(Reason.BAD_HOST, "x", raw=r"a\x00").sentence().startswith(r"a\x00: ")
    where = parse_authority(b"A.test:443")
    assert WireError(Reason.HOST_MISMATCH, "x", destination=where).sentence().startswith("a.test:443: ")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"a.test:+443", "a.test:+443"),
        (b"http://a.test:x/path?token=s", "a.test:x"),
        (b"https://a.test?token=s", "a.test"),
        (b"a.test#s", "a.test"),
        (b"a.test\\s", "a.test"),
        (b"u:s@a.test:1", "a.test:1"),
        (b"http://u:s@a.test/x@y", "a.test"),
        (b"u:s/s@a.test", "u"),
        (b"http://u:s?s@a.test", "u"),
        (b"[::1]:x/@", "[::1]:x"),
        (b"a\x00b", r"a\x00b"),
        (b"s?x=http://b.test", "s"),
        (b"", ""),
    ],
)
def test_a_malformed_host_is_shown_without_secrets(raw: bytes, shown: str) -> None:
    """No user with a password, no path and no query, also where it is unclear which is which (B08, JRN-5)."""
    assert shown_host(raw) == shown


def test_a_detail_is_one_printable_line() -> None:
    """What is in it comes from other rooms too, and some of their sentences have typographic signs."""
    error = WireError(Reason.BAD_HOST, "send xn--\u2026\r\n\x1b\xe9" + "x" * 5000)
    assert error.detail.startswith("send xn--...????xx")
    assert len(error.detail) == 2048
