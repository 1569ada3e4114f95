"""tidegate.runtime.ask_screen on a real pty: what is sent to the terminal, and what a key does."""

from __future__ import annotations

import os
import select
import termios
import tty
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.runtime.pty_session import wait_until
from tests.unit.runtime.test_ask_page import question
from tidegate.holds.stdio import TerminalState
from tidegate.runtime.ask_screen import ASIDE, BEFORE_KEYS, JOLT, AskScreen
from tidegate.runtime.link import Link
from tidegate.runtime.relay import Channel
from tidegate.runtime.terminal import Terminal


class _Told(Link):
    """A link that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.on_question = None

    def answer(self, number: int, answer: str) -> None:
        self.said.append((number, answer))

    def unattended(self) -> None:
        self.said.append(("unattended",))


class Window:
    """A terminal in our foreground, a task's pty behind it, and a clock in the test's hand."""

    def __init__(self) -> None:
        self.person, self.real = os.openpty()
        self.master, self.task = os.openpty()
        tty.setraw(self.task)
        for fd in (self.real, self.master):
            os.set_blocking(fd, False)
        for fd in (self.real, self.master):
            termios.tcsetwinsize(fd, (24, 80))
        self.now = 100.0
        self.link = _Told()
        state = TerminalState(self.real, True, termios.tcgetattr(self.real), bytes(8), True, True)
        self.terminal = Terminal(state, self.master)
        self.output = Channel(self.master, self.real)
        self.screen = AskScreen(self.link, "npm i", wall=lambda: self.now, clock=lambda: self.now)
        self.screen.attach(self.terminal, self.output)

    def hear(self, word: str, asked: dict[str, Any]) -> None:
        """The gate says something."""
        assert self.link.on_question is not None
        self.link.on_question((word, {"deadline_at": 1000.0} | asked))

    def turn(self, seconds: float = 0.0) -> str:
        """One turn of the front's loop, so much later."""
        self.now += seconds
        poll = select.poll()
        masks: dict[int, int] = {}
        self.output.watch(masks)
        self.screen.watch(masks)
        for fd, mask in masks.items():
            poll.register(fd, mask)
        ready = dict(poll.poll(0))
        self.output.move(ready)
        return self.screen.attend(ready)

    def press(self, key: str) -> str:
        """Press a key that stands alone, and give it its time."""
        self.turn()
        self.turn(1.0)
        os.write(self.person, key.encode())
        wait_until(lambda: select.select([self.real], [], [], 0)[0], "the key")
        self.turn(0.01)
        return self.turn(0.2)

    def seen(self) -> bytes:
        """What the terminal was sent since."""
        found = b""
        while select.select([self.person], [], [], 0.05)[0]:
            found += os.read(self.person, 65536)
        return found


@pytest.fixture
def window() -> Iterator[Window]:
    """A window."""
    made = Window()
    yield made
    for fd in (made.person, made.real, made.master, made.task):
        os.close(fd)


def test_output_waits_behind_the_question_and_comes_after_it(window: Window) -> None:
    """ASK-5: bounded, nothing lost, nothing through while the screen is up; modes are back afterwards."""
    before = termios.tcgetattr(window.real)
    os.write(window.task, b"one")
    window.turn()
    assert window.seen() == b"one"
    window.hear("asked", question())
    window.turn()
    window.turn()
    assert window.screen.up
    assert b"a.test:443" in window.seen()
    os.set_blocking(window.task, False)
    sent = 0
    while select.select([], [window.task], [], 0.05)[1]:
        sent += os.write(window.task, b"x" * 1000)
        assert sent < 1 << 20, "the output is not held"
        window.turn()
    assert b"x" not in window.seen().replace(b"xn--", b"")
    window.hear("closed", question())
    window.turn()
    assert not window.screen.up
    assert termios.tcgetattr(window.real) == before
    got = b""
    for _ in range(2000):
        window.turn()
        got += window.seen() if select.select([window.person], [], [], 0)[0] else b""
    assert got.count(b"x") == sent


@pytest.mark.parametrize(
    ("key", "answer"), [("a", "allow"), ("t", "task"), ("r", "remember"), ("d", "deny"), ("x", "deny-task")]
)
def test_each_key_answers_once(window: Window, key: str, answer: str) -> None:
    """ASK-2: and a second press is nothing while the answer is saved."""
    window.hear("asked", question())
    window.turn()
    assert window.press(key) == ""
    window.press("d")
    assert window.link.said == [(7, answer)]
    assert b"saving the answer" in window.seen()


@pytest.mark.parametrize("key", ["y", " ", "\r", "A", "1"])
def test_other_keys_answer_nothing(window: Window, key: str) -> None:
    """ASK-5: neither Enter nor space nor a letter that is not on the page."""
    window.hear("asked", question())
    window.turn()
    window.press(key)
    assert window.link.said == []


def test_keys_count_for_what_was_shown_long_enough(window: Window) -> None:
    """ASK-5: not before BEFORE_KEYS, and the next question has its own."""
    window.hear("asked", question())
    window.hear("asked", question(id=8, host="b.test"))
    window.turn()
    window.turn()
    os.write(window.person, b"a")
    window.turn(0.1)
    window.turn(0.2)
    assert window.link.said == []
    window.press("a")
    window.hear("closed", question())
    window.turn()
    window.turn()
    os.write(window.person, b"a")
    window.turn(0.1)
    window.turn(BEFORE_KEYS - 0.2)
    assert window.link.said == [(7, "allow")]
    window.press("d")
    assert window.link.said == [(7, "allow"), (8, "deny")]


def test_keys_of_the_first_moment_do_not_count_where_they_are_read_late(window: Window) -> None:
    """ASK-5: a front that did not get to run reads them when others would count; Ctrl-C of then is still heard."""
    for number, key in ((7, "a"), (8, "\x03")):
        window.hear("asked", question(id=number))
        window.turn()
        window.turn()
        os.write(window.person, key.encode())
        wait_until(lambda: select.select([window.real], [], [], 0)[0], "the key")
        said = [window.turn(BEFORE_KEYS + 0.3), window.turn(0.2), window.turn(0.2)]
        assert ("\x03" in said) is (key == "\x03")
        assert window.link.said == []
        if number == 7:
            window.press("d")
            assert window.link.said.pop() == (7, "deny")
            window.hear("closed", question())
            window.turn()


def test_a_key_before_one_that_waits_does_not_stand_alone(window: Window) -> None:
    """ASK-5: what came while the front did not get to run is looked at before the key in front of it counts."""
    window.hear("asked", question())
    window.turn()
    window.turn()
    window.turn(1.0)
    for seen in (select.POLLIN, 0, 0):
        os.write(window.person, b"a")
        wait_until(lambda: select.select([window.real], [], [], 0)[0], "the key")
        window.now += 0.2
        window.screen.attend({window.terminal.fd: seen})
    assert window.link.said == []
    window.turn(0.2)
    assert window.link.said == [(7, "allow")]


def test_ctrl_c_and_ctrl_z_are_the_fronts_and_the_screen_comes_again(window: Window) -> None:
    """HLD-9: put off for a while, so that the command can end or stop; then it is asked again."""
    window.hear("asked", question())
    window.turn()
    assert window.press("\x03") == "\x03"
    window.screen.put_off()
    assert not window.screen.up
    assert window.turn(ASIDE / 2) == ""
    assert not window.screen.up
    window.turn(ASIDE)
    assert window.screen.up
    assert window.press("\x1a") == "\x1a"


def test_a_task_on_the_other_screen_is_made_to_draw_itself_anew(window: Window) -> None:
    """ASK-5: by a window that is one row smaller for a moment."""
    os.write(window.task, b"\x1b[?1049h")
    window.turn()
    window.hear("asked", question())
    window.turn()
    window.turn()
    window.hear("closed", question())
    window.turn()
    assert tuple(termios.tcgetwinsize(window.master)) == (23, 80)
    window.turn(JOLT)
    assert tuple(termios.tcgetwinsize(window.master)) == (24, 80)


def test_the_page_is_drawn_again_each_second_and_for_another_window(window: Window) -> None:
    """ASK-5: the countdown counts, and `patience` wakes for it."""
    window.hear("asked", question())
    for _ in range(3):
        window.turn()
    window.seen()
    window.turn(BEFORE_KEYS)
    window.turn()
    window.seen()
    patience = window.screen.patience()
    assert patience is not None
    assert 0 < patience <= 1.0
    window.turn()
    assert window.seen() == b""
    window.turn(1.0)
    assert b"time left" in window.seen()
    termios.tcsetwinsize(window.real, (30, 100))
    window.screen.resized()
    window.turn()
    assert b"\x1b[2J" in window.seen()


def test_nothing_is_asked_in_a_terminal_that_is_gone(window: Window) -> None:
    """ASK-4: the gate is told that nobody is there."""
    window.hear("asked", question())
    window.turn()
    window.screen.gone()
    assert not window.screen.up
    assert window.link.said == [("unattended",)]
    assert window.screen.patience() is None


def test_without_a_question_it_waits_for_nothing(window: Window) -> None:
    """A run that is never asked anything pays nothing."""
    assert window.screen.patience() is None
    assert window.turn() == ""
    assert window.seen() == b""


def test_detaching_puts_the_screen_away(window: Window) -> None:
    """HLD-9: however the command ends, the terminal is its owner's again."""
    before = termios.tcgetattr(window.real)
    window.hear("asked", question())
    window.turn()
    window.screen.detach()
    assert b"\x1b[?1049l" in window.seen()
    assert termios.tcgetattr(window.real) == before
