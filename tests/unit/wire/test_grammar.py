"""Proves the tables against RFC 9110's own words."""

from __future__ import annotations

import pytest

from tidegate.wire.grammar import FIELD, TOKEN, VCHAR, is_token, list_members


def test_token_bytes_are_those_of_the_rfc() -> None:
    """A token is VCHAR without the delimiters of RFC 9110 section 5.6.2."""
    assert set(TOKEN) == set(VCHAR) - set(b'(),/:;<=>?@[\\]{}"')


def test_field_bytes_leave_out_exactly_the_controls() -> None:
    """All but C0 controls (save the tab) and DEL may stand in a field line."""
    assert set(range(256)) - set(FIELD) == (set(range(0x20)) - {9}) | {0x7F}


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"a", True), (b"X-1_~", True), (b"", False), (b"a b", False), (b"a:", False), (b"\xe9", False)],
)
def test_is_token(text: bytes, expected: bool) -> None:
    """One token, nothing else."""
    assert is_token(text) is expected


def test_list_members_spans_lines_and_drops_empty_ones() -> None:
    """A list over several lines is one list (RFC 9110 section 5.3)."""
    assert list_members([b"Keep-Alive, ,X-A", b"\tTE "]) == [b"keep-alive", b"x-a", b"te"]
