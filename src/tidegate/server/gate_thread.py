"""The gate of all tasks, in a thread of its own, and the ways across (DESIGN: one gate for thousands of tasks).

Rules of the file: the loop's side calls `call` and `post`, nothing else; what runs on the gate's thread gets there
through them. Books whose folded counts wait are looked at once a second; those that are quiet cost nothing.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from tidegate.gate.gate import Gate
from tidegate.gate.upstream import upstream_from_environment
from tidegate.runtime.first_message import proxies_of
from tidegate.runtime.pulse import TICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.gate.identity import Stranger
    from tidegate.model.event import Event
    from tidegate.model.seams import Asker
    from tidegate.server.books import TaskBooks

_T = TypeVar("_T")
_TICK = 1.0  # seconds between looks at folded refusals
_STALLED = 2.5  # seconds; a busy machine is late by less
_PATIENCE = 5.0  # seconds for the thread to end


class _Unclaimed:
    """Takes what belongs to no task, which is nothing: every task has a recorder of its own."""

    def record(self, event: Event) -> None:
        """Nothing to write it into."""

    def flush(self) -> None:
        """Nothing was written."""


class GateThread:
    """See the head of the file.

    `pulse` is called a few times a second, and `stalled` where it was not for seconds: the process was stopped.
    On the gate's thread `fault` is told of bugs, `stranger` of connections refused for whose they are, `lost` when the
    thread ends unasked.
    """

    def __init__(
        self,
        *,
        asker: Asker | None,
        protected_ports: frozenset[int],
        fault: Callable[[Exception], None],
        lost: Callable[[], None],
        stranger: Callable[[Stranger, int], None] | None = None,
        pulse: Callable[[], None] | None = None,
        stalled: Callable[[float], None] | None = None,
    ) -> None:
        self.gate = Gate(
            recorder=_Unclaimed(),
            wall=time.time,  # noqa: TID251  the clock comes in here
            asker=asker,
            upstream=upstream_from_environment(proxies_of(os.environ)),
            protected_ports=protected_ports,
            fault=fault,
            stranger=stranger,
        )
        self.busy: set[TaskBooks] = set()  # the books that took something lately
        self._lost = lost
        self._pulse = pulse
        self._stalled = stalled
        self._beaten = 0.0
        self.lag = 0.0  # seconds by which the last beat was late
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tidegate-gate", daemon=True)

    def start(self) -> None:
        """Serve."""
        self.gate.later(_TICK, self._tick)
        self._beaten = self.gate.reactor.clock()
        self._beat()
        self._thread.start()

    def _beat(self) -> None:
        self.gate.later(TICK, self._beat)
        before, self._beaten = self._beaten, self.gate.reactor.clock()
        self.lag = max(0.0, self._beaten - before - TICK) if before else 0.0
        if self._pulse is not None:
            self._pulse()
        if self._stalled is not None and self._beaten - before > _STALLED:
            self._stalled(self._beaten - before)

    def _run(self) -> None:
        try:
            self.gate.run()
        finally:
            if not self._stopping:
                self._lost()

    def _tick(self) -> None:
        self.gate.later(_TICK, self._tick)
        now = self.gate.wall()
        for books in list(self.busy):
            books.tick(now)

    def post(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the gate's thread, soon. From any thread."""
        self.gate.post(callback)

    async def call(self, work: Callable[[], _T]) -> _T:
        """Run `work` on the gate's thread and return what it returns.

        Raises:
            What `work` raises.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_T] = loop.create_future()

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - it is the caller's
                loop.call_soon_threadsafe(_fail, done, error)
            else:
                loop.call_soon_threadsafe(_finish, done, result)

        self.gate.post(run)
        return await done

    def lookups(self) -> dict[str, int]:
        """Return how many names were looked up, by outcome. From any thread."""
        return self.gate.lookups()

    def stop(self) -> None:
        """Close and record every connection, and end the thread."""
        self._stopping = True
        self.gate.stop()
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)
        self.gate.close()


def _finish(done: asyncio.Future[_T], result: _T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: asyncio.Future[_T], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
