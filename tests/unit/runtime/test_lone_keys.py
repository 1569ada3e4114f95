"""tidegate.runtime.lone_keys: which bytes of a terminal are a key that a person pressed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.runtime.lone_keys import ALONE, LoneKeys

LATER = ALONE * 2


def pressed(*parts: tuple[float, bytes]) -> str:
    """Feed parts, each so many seconds after the one before, and return the keys that came out."""
    keys, now, found = LoneKeys(), 100.0, ""
    for seconds, data in parts:
        now += seconds
        found += keys.take(now)
        keys.feed(data, now)
    return found + keys.take(now + LATER)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (((1.0, b"a"),), "a"),
        (((1.0, b"a"), (1.0, b"d")), "ad"),
        (((1.0, b"\x03"),), "\x03"),
        (((1.0, b"\x1a"),), "\x1a"),
        (((1.0, b"aa"),), ""),
        (((1.0, b"allow"), (1.0, b"d")), "d"),
        (((1.0, b"a"), (ALONE / 2, b"b")), ""),
        (((1.0, b"a"), (ALONE / 2, b"b"), (1.0, b"c")), "c"),
        (((1.0, b"\x1b[A"), (1.0, b"d")), "d"),
        (((1.0, b"\x1b"), (0.1, b"[a")), ""),
        (((1.0, b"\x1b"), (0.1, b"["), (0.1, b"a"), (0.1, b"d")), "d"),
        (((1.0, b"\x1b"), (0.1, b"a")), ""),
        (((1.0, b"\x1b"), (0.9, b"a")), "a"),
        (((1.0, b"\x1bOM"), (0.1, b"a")), "a"),
        (((1.0, b"\x1b]l"), (0.1, b"a"), (0.1, b"\x1b\\"), (0.1, b"d")), "d"),
        (((1.0, b"\x1b]0;x"), (0.1, b"\x07"), (0.1, b"d")), "d"),
        (((1.0, b"\x1bP1$r"), (0.1, b"t"), (0.1, b"\x18"), (0.1, b"d")), "d"),
        (((1.0, b"\x1b]l"), (3.0, b"a")), "a"),
        (((1.0, b"\x1b[M"), (0.1, b"a"), (0.1, b"t"), (0.1, b"r"), (0.1, b"d")), "d"),
        (((1.0, b"\x1b[1;5M"), (0.1, b"a")), "a"),
        (((1.0, b"\x7f"),), ""),
        (((1.0, b"\xc3"), (0.1, b"\xa4")), ""),
        (((1.0, b""),), ""),
    ],
)
def test_only_what_stands_alone_is_a_key(parts: tuple[tuple[float, bytes], ...], expected: str) -> None:
    """ASK-5: keys with quiet around them count; bursts, repeats, sequences, strings and mouse reports do not."""
    assert pressed(*parts) == expected


@given(st.binary(min_size=1, max_size=20).filter(lambda data: not set(data) & {0x07, 0x18, 0x1A, 0x1B}), st.data())
def test_no_cut_of_a_string_lets_a_letter_out(text: bytes, data: st.DataObject) -> None:
    """ASK-5: what a terminal says in a string is no key, wherever it is cut, as long as it keeps coming."""
    whole = b"\x1b]l" + text + b"\x1b\\"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert pressed(*((0.3, piece) for piece in pieces)) == ""


def test_a_key_comes_after_its_quiet_and_once() -> None:
    """ASK-5: not before nothing has followed it, not twice, and not after it was forgotten."""
    keys = LoneKeys()
    assert keys.patience(0.0) is None
    keys.feed(b"a", 1.0)
    assert keys.take(1.0 + ALONE / 2) == ""
    assert keys.patience(1.0) == pytest.approx(ALONE)
    assert keys.take(1.0 + LATER) == "a"
    assert keys.take(1.0 + LATER) == ""
    keys.feed(b"a", 5.0)
    keys.forget()
    assert keys.take(9.0) == ""
