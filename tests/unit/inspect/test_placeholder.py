"""Placeholders: the outline of the value and nothing of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect.placeholder import MOST, PREFIXES, UnfitError, fits, make_placeholder

VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=80).map(str.encode)


def draw(seed: int = 1) -> random.Random:
    """A source of numbers that a test can repeat."""
    return random.Random(seed)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (b"ghp_0123456789abcdefABCDEF0123456789abcd", b"ghp_"),
        (b"sk-ant-api03-AAAAbbbbCCCC-dddd_EEEE", b"sk-ant-api03-"),
        (b"sk-AAAAbbbbCCCCdddd", b"sk-"),
        (b"correct-horse-battery", b""),
    ],
)
def test_only_the_prefix_of_the_issuer_is_kept(value: bytes, kept: bytes) -> None:
    """INS-5: a program that looks at the beginning of its key is content; nothing else is the value's own."""
    made = make_placeholder(value, draw().randrange)
    assert made.startswith(kept)
    assert made != value
    assert [byte for byte in made if not chr(byte).isalnum()] == [byte for byte in value if not chr(byte).isalnum()]
    again = make_placeholder(value, draw(2).randrange)
    assert again != made


@pytest.mark.parametrize(
    "value", [b"0123456789abcdef" * 2, b"550e8400-e29b-41d4-a716-446655440000", b"DEADBEEF01234567"]
)
def test_hex_stays_hex(value: bytes) -> None:
    """INS-5: what reads its key as hexadecimal goes on doing so, in the case it had."""
    made = make_placeholder(value, draw().randrange)
    bytes.fromhex(made.replace(b"-", b"").decode())
    assert made.lower() == made if value.lower() == value else made.upper() == made


def test_digits_stay_digits() -> None:
    """INS-5: and a number a number."""
    assert make_placeholder(b"1234567890123456", draw().randrange).isdigit()


@given(VISIBLE, st.integers())
def test_the_outline_is_that_of_the_value(value: bytes, seed: int) -> None:
    """INS-5: every kind of character is where it was, or the value is refused without being repeated."""
    try:
        made = make_placeholder(value, draw(seed).randrange)
    except UnfitError:
        return  # what it says is the next test's
    assert len(made) == len(value)
    assert made != value
    for was, now in zip(value, made, strict=True):
        assert chr(was).isalnum() == chr(now).isalnum()
        assert chr(was).isalnum() or was == now


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"1234567", "fewer than 8"),
        (b"ghp_1234567", "fewer than 8"),
        (b"two words of it", "a space"),
        (b"line\nbreak-0123456", "a space"),
        ("schlüssel-0123456".encode(), "beyond ASCII"),
        (b"a" * (MOST + 1), "longer than"),
        (b'{"type": "service_account", "private_key": "-----"}', "a key file, which signs"),
        (b"-----BEGIN PRIVATE KEY-----\nMIIE", "a key file, which signs"),
        (b"", "fewer than 8"),
    ],
)
def test_an_unfit_value_is_refused_without_being_shown(value: bytes, says: str) -> None:
    """INS-5: with what is wrong with it."""
    with pytest.raises(UnfitError, match=says) as refused:
        make_placeholder(value, draw().randrange)
    assert not value or value.decode() not in str(refused.value)


@pytest.mark.parametrize("value", [b"12345678", b"ghp_12345678", b"a" * MOST])
def test_its_neighbours_pass(value: bytes) -> None:
    """INS-5: just long enough, just short enough."""
    assert len(make_placeholder(value, draw().randrange)) == len(value)


def test_prefixes_are_found_whatever_their_order() -> None:
    """The longest counts: a shorter one that begins it does not win."""
    for prefix in PREFIXES:
        assert make_placeholder(prefix + b"Zz9" * 6, draw().randrange).startswith(prefix)


def test_what_a_placeholder_fits() -> None:
    """INS-5: another value of the same outline: as long, letters and digits where they were, all else the same."""
    placeholder = make_placeholder(b"ghp_abcdefgh-12345678", lambda bound: bound - 1)
    assert fits(b"ghp_abcdefgh-12345678", placeholder)
    assert fits(b"gho_ZYXWVUTS-00000001", placeholder)
    for other in (b"ghp_abcdefgh_12345678", b"ghp_abcdefgh-1234567", b"ghp_abcdefgh-12345678x", b"", placeholder):
        assert not fits(other, placeholder)
