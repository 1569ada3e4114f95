"""A person at a real terminal, for tests: a pty with a program as its session leader, typed into and read from."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
BARE_RUN = os.path.join(HERE, "bare_run.py")
RUN = f"{sys.executable} -I -S {BARE_RUN}"  # as a shell reads it
PATIENCE = 120.0  # seconds; a machine under load is slow, and no test measures speed


class Session:
    """One terminal window."""

    def __init__(self, *argv: str, rows: int = 24, columns: int = 80, env: dict[str, str] | None = None) -> None:
        self.seen = b""
        self.status: int | None = None
        environment = {**os.environ, "TERM": "xterm", "PS1": "$ ", "LC_ALL": "C", "INPUTRC": "/dev/null"} | (env or {})
        environment.pop("PROMPT_COMMAND", None)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        go, wait = os.pipe()
        self.pid, self.master = os.forkpty()
        if self.pid == 0:
            try:
                os.read(go, 1)
                for number in range(1, signal.NSIG):
                    if number not in {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
                        signal.signal(number, signal.SIG_DFL)
                os.closerange(3, 256)
                os.execvpe(argv[0], argv, environment)
            finally:
                os._exit(99)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        os.write(wait, b"x")
        os.close(wait)
        os.close(go)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        if self.status is None:
            try:
                self.wait(5.0)
            except AssertionError:
                os.kill(self.pid, signal.SIGKILL)
                self.wait()

    def type(self, text: str) -> None:
        """Type these keys."""
        os.write(self.master, text.encode())

    def expect(self, pattern: str, patience: float = PATIENCE) -> str:
        """Read until the pattern shows, and return its first group (or all of it); what came before it is gone then."""
        end = time.monotonic() + patience
        wanted = re.compile(pattern.encode(), re.DOTALL)
        while (found := wanted.search(self.seen)) is None:
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.seen!r}"
            if not self._read(left):
                found = wanted.search(self.seen)
                assert found, f"the terminal ended without {pattern!r}: {self.seen!r}"
                break
        self.seen = self.seen[found.end() :]
        return (found[1] if found.re.groups else found[0]).decode("utf-8", "replace")

    def type_until(self, key: str, pattern: str) -> None:
        """Type a key again and again until it is answered: a program between two states may miss the first."""
        end = time.monotonic() + PATIENCE
        while True:
            self.type(key)
            try:
                self.expect(pattern, 1.0)
            except AssertionError:
                assert time.monotonic() < end, f"{key!r} is never answered: {self.seen!r}"
            else:
                return

    def rest(self) -> str:
        """Read to the end of the session and return all that was not yet seen."""
        end = time.monotonic() + PATIENCE
        while self._read(end - time.monotonic()):
            assert time.monotonic() < end, f"it does not end: {self.seen!r}"
        return self.seen.decode("utf-8", "replace")

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self) -> list[object]:
        """Return the terminal's modes."""
        return list(termios.tcgetattr(self.master))

    def wait_for_raw(self) -> None:
        """Wait until the terminal is raw."""
        wait_until(lambda: not termios.tcgetattr(self.master)[3] & termios.ICANON, "the terminal to be raw")

    def hang_up(self) -> None:
        """Close the window."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def wait(self, patience: float = PATIENCE) -> int:
        """Return how the session's program ended, as subprocess says it: its exit status, or minus its signal."""
        if self.status is None:
            handle = os.pidfd_open(self.pid)
            look = select.poll()
            look.register(handle, select.POLLIN)
            assert look.poll(patience * 1000), "it does not end"
            os.close(handle)
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def _read(self, patience: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0.0, patience))
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.seen += data
        return bool(data)


def wait_until(true: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait until the call returns something true."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)
