"""Whoever ends a task's containers when the front is gone, however it went (HLD-7, HLD-8).

A child of the front that waits for the end of a pipe whose other end only the front has. The kernel closes that when
the front ends, by whatever; then the containers are removed and what belongs to them. When the task ends as it should
the front closes the pipe itself and waits for this child: there is one way to end a task, and it is always taken.
"""

from __future__ import annotations

import os

from tidegate.holds import control, linux
from tidegate.holds.init import fresh_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


class Keeper:
    """The child. `finish` runs in it."""

    def __init__(self, finish: Callable[[], None]) -> None:
        reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _keep(reading, finish)
        os.close(reading)
        self._pipe = writing

    def end(self) -> None:
        """Have it finish now, and wait until it has; may be called twice."""
        if self._pid:
            os.close(self._pipe)
            pid, self._pid = self._pid, 0
            os.waitpid(pid, 0)

    def let_go(self) -> None:
        """Close the pipe in a child of the front that lives longer than the front."""
        os.close(self._pipe)


def _keep(reading: int, finish: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        fresh_signals()
        os.setsid()  # Ctrl-C is for the task
        linux.prctl(linux.PR_SET_NAME, linux.path("tidegate-keep"))
        null = os.open("/dev/null", os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        control.close_all_but((reading,))
        os.read(reading, 1)
        finish()
        status = 0
    finally:
        os._exit(status)
