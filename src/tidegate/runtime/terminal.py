"""The real terminal: made raw while its keyboard leads to the task, and always put back.

`enter` saves the modes as they are at that moment (the shell may have changed them while we were stopped) and makes
the terminal raw; `leave` puts exactly those back, but only while we are in the foreground: afterwards the terminal is
its new owner's to set. TCSANOW throughout, so that nothing typed ahead is thrown away and a terminal held by Ctrl-S
cannot hang us.

Raw means: no echo, no lines, no signal keys, no flow control, all of which the task's own pty does now. Output
processing goes too when the whole terminal is the task's; in a pipeline other programs write to it, so it stays. Only
imported where a standard descriptor is a terminal. See termios(3), tty_ioctl(4).
"""

from __future__ import annotations

import os
import termios
from fcntl import ioctl
from struct import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.holds.stdio import TerminalState

IFLAG, OFLAG, CFLAG, LFLAG, CC = 0, 1, 2, 3, 6
_FOLLOWED = termios.OPOST | termios.ONLCR


def raw_attributes(attributes: list[Any], *, keep_output: bool) -> list[Any]:
    """Return these modes made raw as cfmakeraw(3) does; `keep_output` leaves output processing as it is."""
    raw = list(attributes)
    raw[IFLAG] &= ~(
        termios.IGNBRK
        | termios.BRKINT
        | termios.PARMRK
        | termios.ISTRIP
        | termios.INLCR
        | termios.IGNCR
        | termios.ICRNL
        | termios.IXON
    )
    if not keep_output:
        raw[OFLAG] &= ~termios.OPOST
    raw[LFLAG] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    raw[CFLAG] = (raw[CFLAG] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
    raw[CC] = list(attributes[CC])
    raw[CC][termios.VMIN] = 1
    raw[CC][termios.VTIME] = 0
    return raw


def one_newline(data: bytes, inner: int, real: int) -> bytes:
    """Return output of the pty without the returns that the real terminal adds again; the flags are both c_oflag."""
    both = inner & real
    return data.replace(b"\r\n", b"\n") if both & termios.OPOST and both & termios.ONLCR else data


class Terminal:
    """The real terminal, as the front handles it."""

    def __init__(self, state: TerminalState, pty: int) -> None:
        self.fd = state.fd
        self.gone = False
        self._full = state.full
        self._pty = pty
        self._copied = state.foreground  # init has given the pty these modes already
        self._saved: list[Any] | None = None
        self._size = state.size
        self._interrupt_keys = tuple(
            key for key in (state.attributes[CC][termios.VINTR], state.attributes[CC][termios.VQUIT]) if key != b"\0"
        )

    @property
    def entered(self) -> bool:
        """Whether it is raw because of us."""
        return self._saved is not None

    def in_foreground(self) -> bool:
        """Whether this process may read from it; so too where it is not our controlling terminal."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return True

    def enter(self) -> None:
        """Make it raw. A terminal that has gone away is left alone."""
        try:
            attributes = termios.tcgetattr(self.fd)
            if self._saved is None or attributes != raw_attributes(self._saved, keep_output=not self._full):
                self._saved = attributes
            if not self._copied:
                self._copied = True
                termios.tcsetattr(self._pty, termios.TCSANOW, attributes)
            termios.tcsetattr(self.fd, termios.TCSANOW, raw_attributes(self._saved, keep_output=not self._full))
        except (OSError, termios.error):
            self._saved = None

    def leave(self) -> None:
        """Put its modes back, where they are still ours to set."""
        saved, self._saved = self._saved, None
        if saved is not None and self.in_foreground():
            try:
                termios.tcsetattr(self.fd, termios.TCSANOW, saved)
            except (OSError, termios.error):
                return  # gone

    def output(self, data: bytes) -> bytes:
        """Return what to write to the real terminal for this output of the pty, so that nothing is processed twice.

        While a pipeline's terminal is raw, its output flags follow those that the program in the pty has set.
        """
        if self._full and self._saved is not None:
            return data  # the usual case: only the pty processes output
        try:
            inner = termios.tcgetattr(self._pty)[OFLAG]
            real = termios.tcgetattr(self.fd)
            if self._saved is not None and (real[OFLAG] ^ inner) & _FOLLOWED:
                real[OFLAG] = (real[OFLAG] & ~_FOLLOWED) | (inner & _FOLLOWED)
                termios.tcsetattr(self.fd, termios.TCSANOW, real)
        except (OSError, termios.error):
            return data
        return one_newline(data, inner, real[OFLAG])

    def pass_size_on(self) -> bool:
        """Give the pty the window size of the real terminal; True where it has changed."""
        try:
            size = ioctl(self.fd, termios.TIOCGWINSZ, bytes(8))
            if size == self._size:
                return False
            self._size = size
            ioctl(self._pty, termios.TIOCSWINSZ, size)
        except OSError:
            return False
        return True

    def jolt(self) -> None:
        """Give the pty a window of one row less, until `pass_size_on`: what is drawn in it is drawn anew."""
        try:
            rows, *rest = unpack("HHHH", ioctl(self.fd, termios.TIOCGWINSZ, bytes(8)))
            self._size = b""
            ioctl(self._pty, termios.TIOCSWINSZ, pack("HHHH", rows - 1 if rows > 1 else rows + 1, *rest))
        except OSError:
            return  # gone

    def holds_interrupt(self, data: bytes) -> bool:
        """Whether these keystrokes hold the interrupt or the quit key."""
        return any(key in data for key in self._interrupt_keys)
