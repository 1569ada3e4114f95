"""tidegate.runtime.screen_modes: what the task's output did to the terminal, and how it gets it back."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.runtime.screen_modes import BACK, OTHER_SCREEN, USUAL, Modes


def after(*parts: bytes) -> Modes:
    """Return what is known after this output."""
    modes = Modes()
    for part in parts:
        modes.feed(part)
    return modes


def test_from_a_plain_terminal_to_the_other_screen_and_back() -> None:
    """ASK-5: what the task had drawn stays on its screen, and nothing else is put back."""
    modes = after(b"hello\r\n")
    assert OTHER_SCREEN in modes.take()
    assert modes.give_back() == USUAL + BACK


def test_a_task_on_the_other_screen_stays_there() -> None:
    """ASK-5: a full-screen program is not thrown back to the first screen."""
    modes = after(b"\x1b[?1049h\x1b[2J")
    assert OTHER_SCREEN not in modes.take()
    assert BACK not in modes.give_back()
    assert BACK in after(b"\x1b[?1049h", b"\x1b[?1049l").give_back()
    assert BACK not in after(b"\x1b[?25;47h").give_back()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"\x1b[?2004h", b"\x1b[?2004h"),
        (b"\x1b[?2004h\x1b[?2004l", b"\x1b[?2004l"),
        (b"\x1b[?1000;1006h", b"\x1b[?1000h\x1b[?1006h"),
        (b"\x1b[?25l", b"\x1b[?25l"),
        (b"\x1b[?9999h", b""),
        (b"\x1b[?2026h", b""),
        (b"\x1b=", b"\x1b="),
        (b"\x1b=\x1b>", b""),
        (b"\x1b[?2004h\x1b=\x1bc", b""),
        (b"\x1b[?2004h\x1b[!p", b""),
        (b"text", b""),
        (b"text \x1b[3", b"\x1b[3"),
        (b"text \x1b", b"\x1b"),
        (b"\x1b]0;title", b"\x1b]0;title"),
        (b"\x1b]0;title\x1b", b"\x1b]0;title\x1b"),
        (b"\x1b]0;title\x07", b""),
        (b"\x1b]0;" + b"x" * 600, b""),
        ("ä".encode()[:1], "ä".encode()[:1]),
        ("€".encode()[:2], "€".encode()[:2]),
        ("ä€".encode(), b""),
        (b"\x80\x80\x80\x80", b""),
    ],
)
def test_what_the_task_asked_for_is_given_back(output: bytes, expected: bytes) -> None:
    """HLD-9: modes, keypad, and the beginning of what was cut in two; nothing that is unknown or too long."""
    assert after(output).give_back() == USUAL + BACK + expected


def test_keys_in_another_form_are_plain_meanwhile() -> None:
    """ASK-5: with the kitty protocol a letter is a sequence; it is asked for letters, and given back."""
    modes = after(b"\x1b[>1u")
    assert modes.take().endswith(b"\x1b[>0u\x1b[>4;0m")
    assert modes.give_back().startswith(b"\x1b[<u\x1b[>4m")
    assert b"\x1b[<u" not in after(b"\x1b[3;4m").give_back()


PIECES = st.lists(
    st.sampled_from(
        [
            b"a",
            b"\x1b",
            b"[",
            b"?",
            b"1049",
            b"2004",
            b"h",
            b"l",
            b";",
            b"=",
            b"]",
            b"\x07",
            b"\\",
            b"\xc3",
            b"\xa4",
            b"c",
            b"u",
            b">",
        ]
    ),
    max_size=30,
)


@given(PIECES, st.integers(0, 100))
def test_where_output_is_cut_makes_no_difference(pieces: list[bytes], cut: int) -> None:
    """Whole or in two parts: the same modes are given back."""
    whole = b"".join(pieces)
    assert after(whole).give_back() == after(whole[:cut], whole[cut:]).give_back()


@given(st.binary(max_size=60))
def test_whatever_a_task_wrote_the_screen_is_clear_and_plain(output: bytes) -> None:
    """ASK-5: a terminal in any state shows exactly what is drawn after `take`."""
    screen = pyte.Screen(20, 3)
    stream = pyte.ByteStream(screen)
    modes = after(output)
    try:
        stream.feed(output)
    except (AssertionError, TypeError, KeyError, IndexError, ValueError, StopIteration):
        return  # the emulator broke, not the terminal
    stream.feed(modes.take() + b"shown")
    assert [line.rstrip() for line in screen.display] == ["shown", "", ""]
