"""The front's signals, queued on a descriptor instead of interrupting.

Installed before the task is launched, so that a Ctrl-C in the middle of building namespaces is neither lost nor a
traceback. A signal that was ignored on entry stays ignored (nohup; a script's `cmd &`): then nobody asked us to act
on it, and the command inherits the same.

SIGPIPE is ignored by Python already, which the front relies on. See signal(7), signal-safety(7).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # signal itself makes enums at each start

# What a person or a supervisor may send to a command, and so to us in its place.
FORWARDED = (
    _signal.SIGINT,
    _signal.SIGTERM,
    _signal.SIGHUP,
    _signal.SIGQUIT,
    _signal.SIGUSR1,
    _signal.SIGUSR2,
    _signal.SIGALRM,
    _signal.SIGTSTP,
)
# What is about ourselves: we were continued, the window changed, a child (gate or init) changed.
OWN = (_signal.SIGCONT, _signal.SIGWINCH, _signal.SIGCHLD)
ENDING = frozenset({_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT})


def _first_end(numbers: list[int]) -> int:
    return next((number for number in numbers if number in ENDING), 0)


class AskedToEndError(KeyboardInterrupt):
    """A signal that asks us to end arrived where that is heeded at once. Uncaught it ends us as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class SignalInbox:
    """Signals that have arrived, in order. One a process, in the main thread."""

    def __init__(self) -> None:
        """Begin queueing. Whatever is ignored now stays ignored."""
        self.fd, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[int, Any] = {}
        self._waiting: list[int] = []
        self._heeds = False
        self.ended_by = 0  # the first signal that was taken and asks us to end
        self._wakeup_before = _signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in FORWARDED + OWN:
            # SIGCHLD ignored would make the kernel reap behind our back, and without SIGCONT a stop never ends.
            if number in OWN or _signal.getsignal(number) != _signal.SIG_IGN:
                self._before[number] = _signal.signal(number, self._arrived)

    @classmethod
    def install(cls) -> SignalInbox:
        """Begin queueing, from now until `restore`."""
        return cls()

    def heed(self, *, at_once: bool) -> None:
        """Say whether a signal that asks us to end interrupts what is waited for; it stays queued all the same.

        Raises:
            AskedToEndError: where one has arrived.
        """
        self._heeds = at_once
        if at_once and (number := self.pending_end()):
            self._heeds = False
            raise AskedToEndError(number)

    def _arrived(self, number: int, _frame: object) -> None:
        # Only a handler that exists makes the descriptor readable.
        if self._heeds and number in ENDING:
            self._heeds = False
            raise AskedToEndError(number)

    def take(self) -> list[int]:
        """Return what has arrived since the last time, oldest first. Never waits."""
        self._read()
        arrived, self._waiting = self._waiting, []
        self.ended_by = self.ended_by or _first_end(arrived)
        return arrived

    def pending_end(self) -> int:
        """Return the first signal waiting here that asks us to end, 0 where there is none; it stays queued."""
        self._read()
        return _first_end(self._waiting)

    def restore(self) -> None:
        """Put back what was there before and forget what has arrived."""
        _signal.set_wakeup_fd(self._wakeup_before, warn_on_full_buffer=False)
        for number, handler in self._before.items():
            _signal.signal(number, handler if handler is not None else _signal.SIG_DFL)
        self._before.clear()
        os.close(self.fd)
        os.close(self._writing)

    def _read(self) -> None:
        try:
            while part := os.read(self.fd, 512):
                self._waiting.extend(part)
        except BlockingIOError:
            return


def stop_by(number: int, *, group: bool) -> None:
    """Stop this process, or all of its process group, with a stop signal's default action; return once continued.

    In an orphaned process group the kernel discards SIGTSTP, SIGTTIN and SIGTTOU: then this returns at once, and no
    SIGCONT is queued.
    """
    before = None
    if number != _signal.SIGSTOP:
        before = _signal.signal(number, _signal.SIG_DFL)
    os.kill(0 if group else os.getpid(), number)
    if before is not None:
        _signal.signal(number, before)


def from_keyboard() -> bool:
    """Whether a SIGINT that has just come may be Ctrl-C: we are in the foreground of a controlling terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
