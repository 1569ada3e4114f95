"""Asking at the terminal: the screen that is tidegate's while a question is open (ASK-5).

While it is up nothing of the task's output reaches the terminal (it waits, and back-pressure holds the task), and no
key reaches the task. A question that opens while we are in the background waits until we are in front again. Whoever
answers elsewhere takes the screen away.

Rules of the file: the front's loop drives it (`watch`, `attend`, `patience`) and nothing here waits, but for a moment
when the screen is put away. Keys count only after `BEFORE_KEYS`, and only those that stand alone (lone_keys.py): what
was typed before that and is read late is dropped, however long this process did not get to run. Only loaded with --ask.
"""

from __future__ import annotations

import os
import select
import termios
from fcntl import ioctl
from struct import unpack
from time import monotonic

from tidegate.runtime.ask_page import REFUSALS, Standing, answers_of, drawn, page
from tidegate.runtime.lone_keys import LoneKeys
from tidegate.runtime.outcome import say
from tidegate.runtime.relay import HUNG_UP, writer
from tidegate.runtime.screen_modes import Modes
from tidegate.runtime.terminal import raw_attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tidegate.runtime.link import Link
    from tidegate.runtime.relay import Channel
    from tidegate.runtime.terminal import Terminal

BEFORE_KEYS = 0.7  # seconds: nobody who was typing allows by accident
ASIDE = 2.0  # seconds after Ctrl-C or Ctrl-Z in which the task may end or stop, before it is asked again
LOOK = 1.0  # seconds between looks at the clock and at who has the terminal
JOLT = 0.15  # seconds that a window of another size lasts, so that a program draws itself anew
_PUT_AWAY = 1.0  # seconds that a terminal may take for the last bytes of the screen

INTERRUPT, STOP = "\x03", "\x1a"


class AskScreen:
    """The questions of one run, and the screen that shows the oldest of them.

    `wall` gives Unix time, `clock` monotonic seconds.
    """

    def __init__(
        self, link: Link, command: str, wall: Callable[[], float], clock: Callable[[], float] = monotonic
    ) -> None:
        self.up = False
        self._link = link
        self._command = command
        self._clock = clock
        self._wall = wall
        self._questions: dict[int, dict[str, Any]] = {}
        self._answered: set[int] = set()  # what we said, until the gate has taken it
        self._announced: set[int] = set()
        self._shown = 0
        self._since = 0.0
        self._counting = 0  # the question that keys count for
        self._hidden_until = float("-inf")
        self._drawn: tuple[object, ...] = ()
        self._whole = False
        self._unsent = bytearray()
        self._saved: list[Any] | None = None
        self._keys = LoneKeys()
        self._modes = Modes()
        self._jolted_until: float | None = None
        self._terminal: Terminal | None = None
        self._output: Channel | None = None
        self._write: Callable[[bytearray], int] | None = None
        link.on_question = self._heard

    # The front.

    def attach(self, terminal: Terminal, output: Channel) -> None:
        """Use this terminal from now on; `output` is what the task's output goes through."""
        self._terminal, self._output = terminal, output
        self._write = writer(terminal.fd)
        self._modes = Modes()
        output.wrote = self._modes.feed

    def detach(self) -> None:
        """The command has ended: let go of the terminal."""
        self.hide()
        self._end_jolt()
        self._terminal = self._output = None

    def gone(self) -> None:
        """The terminal is gone: nobody is asked here any more."""
        self.up = False
        self._saved = None
        self._unsent.clear()
        self._terminal = None
        self._link.unattended()

    def typed(self, data: bytes) -> None:
        """Take note of what the terminal sends to the task, so that no sequence is seen from its middle."""
        self._keys.feed(data, self._clock())

    def watch(self, masks: dict[int, int]) -> None:
        """Add what to wait for."""
        if self._terminal is None or not (self.up or self._unsent):
            return
        fd = self._terminal.fd
        masks[fd] = masks.get(fd, 0) | (select.POLLIN if self.up else 0) | (select.POLLOUT if self._unsent else 0)

    def patience(self) -> float | None:
        """Return the seconds until `attend` has something to do, None while it has nothing."""
        now = self._clock()
        waits = [] if self._jolted_until is None else [self._jolted_until - now]
        if self._questions and self._terminal is not None:
            waits.append(LOOK if self.up or now >= self._hidden_until else self._hidden_until - now)
            if self.up:
                waits.append(1.0 - (self._left() % 1.0 or 1.0) + 0.01)
                ready = self._since + BEFORE_KEYS - now
                waits += [ready] if ready > 0 else []
                key = self._keys.patience(now)
                waits += [key] if key is not None else []
        return max(0.0, min(waits)) if waits else None

    def attend(self, ready: dict[int, int]) -> str:
        """Do what is due; return INTERRUPT or STOP where a person asked for that, else ''."""
        terminal, said = self._terminal, ""
        if terminal is None:
            return ""
        now = self._clock()
        if self._jolted_until is not None and now >= self._jolted_until:
            self._end_jolt()
        if self._unsent:
            self._send()
        if self.up and (ready.get(terminal.fd, 0) & select.POLLIN or _has_input(terminal.fd)):
            self._read(terminal)  # also what came since `ready`: the key before it does not stand alone
        if self.up:
            said = self._press(self._keys.take(now))
        if self.up and (self._oldest() is None or not terminal.in_foreground()):
            self.hide()
        elif not self.up and not said and self._oldest() is not None and now >= self._hidden_until:
            self._ask(terminal)
        if self.up:
            self._draw(terminal)
        return said

    def resized(self) -> None:
        """The window has another size."""
        self._drawn = ()

    def hide(self) -> None:
        """Put the screen away, and the terminal's modes back. It comes again while there is a question."""
        terminal = self._terminal
        if not self.up or terminal is None:
            return
        self.up = False
        self._unsent += self._modes.give_back()
        self._flush(terminal)
        saved, self._saved = self._saved, None
        if self._output is not None:
            self._output.blocked = bool(self._unsent)
        self._jolt(terminal)
        try:
            if saved is not None and terminal.in_foreground():
                termios.tcsetattr(terminal.fd, termios.TCSANOW, saved)
        except (OSError, termios.error):
            return  # gone

    def put_off(self) -> None:
        """Put the screen away for a while: what a person asked for may end the task, or stop it."""
        self._hidden_until = self._clock() + ASIDE
        self.hide()

    # The gate.

    def _heard(self, message: Sequence[Any]) -> None:
        question = message[1]
        number = question["id"]
        if message[0] == "asked":
            self._questions[number] = question
        else:
            self._questions.pop(number, None)
            self._answered.discard(number)
            self._announced.discard(number)
        self._drawn = ()

    # Inside.

    def _oldest(self) -> dict[str, Any] | None:
        return next(iter(self._questions.values()), None)

    def _left(self) -> float:
        question = self._oldest()
        return max(0.0, question["deadline_at"] - self._wall()) if question is not None else 0.0

    def _ask(self, terminal: Terminal) -> None:
        if not terminal.in_foreground():
            for number in self._questions.keys() - self._announced:
                self._announced.add(number)
                question = self._questions[number]
                where = f"{question['host']}:{question['port']}"
                say(f"tidegate: {where} waits for your answer: bring this job to the front")
            return
        try:
            self._saved = termios.tcgetattr(terminal.fd)
            plain = raw_attributes(self._saved, keep_output=False)
            termios.tcsetattr(terminal.fd, termios.TCSANOW, plain)
        except (OSError, termios.error):
            self._saved = None
            return
        self.up = True
        self._keys.forget()
        self._shown, self._counting, self._drawn = 0, 0, ()
        if self._output is not None:
            self._output.blocked = True
        self._end_jolt()
        self._unsent += self._modes.take()

    def _draw(self, terminal: Terminal) -> None:
        question = self._oldest()
        if question is None or self._unsent:
            return  # what is on its way comes first
        now = self._clock()
        bell = b""
        if question["id"] != self._shown:
            self._shown, self._since = question["id"], now
            bell = b"\a"
        left = self._left()
        ready = now >= self._since + BEFORE_KEYS
        if ready and self._counting != question["id"]:
            # What waits was typed too early, and so was what was read: before the page says that keys count.
            if _has_input(terminal.fd):
                self._read(terminal)
            self._keys.forget(but=INTERRUPT + STOP)
            self._counting = question["id"]
        saving = question["id"] in self._answered
        columns, rows = _size(terminal.fd)
        state = (question["id"], int(left), ready, saving, columns, rows)
        if state == self._drawn:
            return
        cleared = b"" if self._drawn and self._drawn[-2:] == (columns, rows) else b"\x1b[2J"
        self._drawn = state
        standing = Standing(1, len(self._questions), left, ready, saving)
        made = page(question, self._command, standing, columns, rows)
        self._whole = made.whole
        self._unsent += bell + cleared + drawn(made)
        self._send()

    def _read(self, terminal: Terminal) -> None:
        try:
            data = os.read(terminal.fd, 4096)
        except BlockingIOError:
            return
        except OSError:
            return  # the front sees a terminal that is gone, and `in_foreground` one that is another's
        self._keys.feed(data, self._clock())

    def _press(self, key: str) -> str:
        if key in (INTERRUPT, STOP):
            return key
        question = self._oldest()
        if not key or question is None or self._counting != question["id"]:
            return ""
        answer = answers_of(question, whole=self._whole).get(key)
        if answer is not None and (self._whole or key in REFUSALS) and question["id"] not in self._answered:
            self._answered.add(question["id"])
            self._link.answer(question["id"], answer)
        return ""

    def _send(self) -> None:
        if self._write is None:
            return
        try:
            while self._unsent:
                del self._unsent[: self._write(self._unsent)]
        except BlockingIOError:
            pass  # poll(2) says when it takes more
        except OSError:
            self._unsent.clear()
        if not self.up and self._output is not None:
            self._output.blocked = bool(self._unsent)

    def _flush(self, terminal: Terminal) -> None:
        look = select.poll()
        look.register(terminal.fd, select.POLLOUT)
        end = self._clock() + _PUT_AWAY
        while self._unsent and (left := end - self._clock()) > 0:
            events = look.poll(left * 1000)
            if not events or events[0][1] & HUNG_UP:
                return
            self._send()

    def _jolt(self, terminal: Terminal) -> None:
        """Have the task draw itself anew: a window of one row less, for a moment."""
        terminal.jolt()
        self._jolted_until = self._clock() + JOLT
        if not self._modes.alternate:
            self._end_jolt()  # what it had drawn is there again; it is told all the same

    def _end_jolt(self) -> None:
        if self._jolted_until is not None and self._terminal is not None:
            self._jolted_until = None
            self._terminal.pass_size_on()


def _has_input(fd: int) -> bool:
    look = select.poll()
    look.register(fd, select.POLLIN)
    return any(events & select.POLLIN for _fd, events in look.poll(0))


def _size(fd: int) -> tuple[int, int]:
    """Return columns and rows; 80 and 24 where the terminal does not say."""
    try:
        rows, columns, _x, _y = unpack("HHHH", ioctl(fd, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return 80, 24
    return columns or 80, rows or 24
