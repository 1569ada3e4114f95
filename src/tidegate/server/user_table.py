"""The table of the hold `uid` while a server of root's runs: there before a task can be, and put back (HLD-7).

At the start it is loaded and what killed runs left is removed. When somebody removes or changes it, who watches each
task has ended it by then (holds/uid_watcher.py); here the table is put back, so that a process of the range that nobody
knows of is fenced again, and the action log says so. Where it cannot be loaded the server serves other holds, and the
log and `tidegate doctor` say why: a task under this hold is refused by whoever launches it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.holds.uid import UID, prepare
from tidegate.holds.uid_watch import TableWatch
from tidegate.model.errors import TidegateError
from tidegate.runtime.leases import LeasedHold
from tidegate.server.background import in_thread, start

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

AGAIN = (0.0, 0.2, 1.0, 5.0)
"""Seconds before each try to put it back: elements of tasks that are being ended keep a changed table in use."""


class UserTable:
    """See the head of the file. `tell` notes an event: its type and fields."""

    def __init__(
        self, state: str, loop: asyncio.AbstractEventLoop, clock: Callable[[], float], tell: Callable[..., Any]
    ) -> None:
        self._state = state
        self._loop = loop
        self._clock = clock
        self._tell = tell
        self._watch: TableWatch | None = None

    async def open(self) -> None:
        """Load it and begin to watch; an ordinary user has none."""
        if os.geteuid() != 0:
            return
        try:
            watch = TableWatch()
            try:
                await in_thread(LeasedHold(UID, self._state, self._clock).sweep)
                await in_thread(prepare, watch)
            except BaseException:
                watch.close()
                raise
        except (TidegateError, OSError) as error:
            self._tell("hold.unavailable", hold="uid", reason=str(error))
            return
        self._watch = watch
        self._listen()

    def _listen(self) -> None:
        if self._watch is not None:
            self._loop.add_reader(self._watch.fileno(), self._changed)

    def _changed(self) -> None:
        if self._watch is not None and self._watch.altered():
            self._loop.remove_reader(self._watch.fileno())  # what happens meanwhile is looked at afterwards
            start(self._mend(self._watch), "putting the table back")

    async def _mend(self, watch: TableWatch) -> None:
        import asyncio

        self._tell("hold.table-lost", hold="uid")
        for pause in AGAIN:
            await asyncio.sleep(pause)
            try:
                await in_thread(prepare, watch)
            except (TidegateError, OSError):
                continue
            break
        else:
            self._tell("hold.unavailable", hold="uid", reason="its table cannot be put back")
        self._listen()

    def close(self) -> None:
        """Watch no more; the table stays."""
        if self._watch is not None:
            self._loop.remove_reader(self._watch.fileno())
            self._watch.close()
            self._watch = None
