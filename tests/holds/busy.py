"""A command that prints a line for each thing it tries, while a test does something to its server."""

from __future__ import annotations

import signal
import subprocess
import threading

from tests.holds.launcher import PATIENCE
from tests.served import until


class Busy:
    """A command whose lines are counted as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(process.stdout, self.lines), daemon=True),
            threading.Thread(target=self._read, args=(process.stderr, self._errors), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream: object, lines: list[str]) -> None:
        for line in stream:  # type: ignore[attr-defined]
            lines += [line.rstrip("\n")]  # as they come

    def __str__(self) -> str:
        return f"{self.process.args} {self.lines[-30:]} {self.said}"

    @property
    def said(self) -> str:
        """What was said on standard error so far."""
        return "\n".join(self._errors)

    def goes_on(self, word: str, count: int = 20) -> None:
        """Wait until so many more of these lines have come, and none of another kind since."""
        begin = len(self.lines)
        until(lambda: self.lines[begin:].count(word) >= count or self.process.poll() is not None, self)
        assert self.process.poll() is None, self.said

    def only(self, word: str, count: int = 20) -> None:
        """Wait until all of the last so many lines are this one: what was under way before is over."""
        until(lambda: self.lines[-count:] == [word] * count or self.process.poll() is not None, self)
        assert self.process.poll() is None, self.said

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end; its status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return status
