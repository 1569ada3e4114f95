"""What happens in the server, for whoever watches: one numbered stream with a memory (SRV-1, SRV-3).

Rules of the file:

* `publish` may be called from any thread and never waits; the loop is woken once for all that came meanwhile.
* The last `kept` events stay. An id is `EPOCH-N`; who comes back with one gets everything since, or `reset` where that
  is gone or is from another server: then it has to read everything anew.
* A subscriber reads from the one memory and has no queue, so a slow one costs nothing and delays nobody.
* Under load lines of connections are left out and counted: one event says how many of which task. The journal has them
  all. What is fleeting (good only until the next of its kind) stays but for a moment. Nothing else is ever left out.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from itertools import islice
from typing import Any, NamedTuple

from tidegate.journal.line import line_of
from tidegate.model.event import Event

KEPT = 10_000
PENDING = 2_000  # connections that may wait for one wake of the loop
AT_ONCE = 256  # events handed over at once
KEPT_FLEETING = 64
RESET = "reset"


class Message(NamedTuple):
    """One event: its id (`EPOCH-N`), its kind, and its data."""

    id: str
    kind: str
    data: dict[str, Any]


class _Fleeting:
    """What stays for a moment only; `data` is None afterwards."""

    __slots__ = ("data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self.data: dict[str, Any] | None = data


_Data = dict[str, Any] | Event | _Fleeting


class Bus:
    """See the head of the file. `epoch` tells one server's ids from another's."""

    def __init__(self, epoch: str, *, kept: int = KEPT) -> None:
        self.epoch = epoch
        self._kept = kept
        self._lock = threading.Lock()
        self._pending: list[tuple[str, _Data]] = []
        self._skipped: dict[str, int] = {}
        self._woken = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ring: deque[tuple[str, _Data]] = deque(maxlen=kept)
        self._fleeting: deque[_Fleeting] = deque()
        self._next = 1  # the number of the next event
        self._subscriptions: set[Subscription] = set()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say which loop's subscribers are woken; what was published before is not lost."""
        with self._lock:
            self._loop = loop
            self._woken = True
        loop.call_soon_threadsafe(self._drain)

    def flash(self, kind: str, data: dict[str, Any]) -> None:
        """Tell everybody who watches now; who comes back later does not hear of it. Otherwise as `publish`."""
        self._put(kind, _Fleeting(data))

    def publish(self, kind: str, data: dict[str, Any] | Event) -> None:
        """Tell everybody. From any thread; `data` must not change afterwards. An Event is a `connection`."""
        self._put(kind, data)

    def _put(self, kind: str, data: _Data) -> None:
        with self._lock:
            if isinstance(data, Event) and len(self._pending) >= PENDING:
                self._skipped[data.task] = self._skipped.get(data.task, 0) + data.count
                return
            self._pending.append((kind, data))
            if self._woken or self._loop is None:
                return
            self._woken = True
            loop = self._loop
        try:
            loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            return  # the loop has ended; nobody watches any more

    def _drain(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
            skipped, self._skipped = self._skipped, {}
            self._woken = False
        self._ring.extend(pending)
        self._ring.extend(("connection", {"task": task, "left_out": count}) for task, count in skipped.items())
        self._next += len(pending) + len(skipped)
        self._fleeting.extend(data for _, data in pending if isinstance(data, _Fleeting))
        while len(self._fleeting) > KEPT_FLEETING:
            self._fleeting.popleft().data = None
        for subscription in self._subscriptions:
            subscription.wake()

    @property
    def last_id(self) -> str:
        """The id of the newest event."""
        return f"{self.epoch}-{self._next - 1}"

    @property
    def subscribers(self) -> int:
        """How many watch now."""
        return len(self._subscriptions)

    def subscribe(self, last_id: str | None = None) -> Subscription:
        """Return what comes after the event with this id; None for what comes from now on. Close it in the end."""
        subscription = Subscription(self, self._position(last_id))
        self._subscriptions.add(subscription)
        return subscription

    def _position(self, last_id: str | None) -> int:
        # The number of the next event for this subscriber.
        if last_id is None:
            return self._next
        epoch, _, number = last_id.rpartition("-")
        if epoch != self.epoch or not (number.isascii() and number.isdigit()) or len(number) > 18:
            return 0
        return min(int(number) + 1, self._next)

    def has(self, position: int) -> bool:
        """Whether there is something from this number on."""
        return position < self._next

    def since(self, position: int) -> tuple[list[Message], int]:
        """Return what there is from this number on, at most `AT_ONCE`, and the number to go on with.

        Where the first of it is gone, that is one `reset`.
        """
        first = self._next - len(self._ring)
        if position < first or position == 0:
            return [Message(self.last_id, RESET, {})], self._next
        end = min(self._next, position + AT_ONCE)
        found = islice(self._ring, position - first, end - first)
        messages = []
        for number, (kind, data) in enumerate(found, position):
            shown = _shown(data)
            if shown is not None:
                messages.append(Message(f"{self.epoch}-{number}", kind, shown))
        return messages, end

    def drop(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        self._subscriptions.discard(subscription)


def _shown(data: _Data) -> dict[str, Any] | None:
    if isinstance(data, _Fleeting):
        return data.data
    if not isinstance(data, Event):
        return data
    line: dict[str, Any] = json.loads(line_of(data))
    return line | {"seen": data.seen} if data.seen else line


class Subscription:
    """One who watches. Closed in the end, on the loop's thread."""

    def __init__(self, bus: Bus, position: int) -> None:
        self._bus = bus
        self._position = position
        self._event = asyncio.Event()
        self._closed = False

    def wake(self) -> None:
        """Something was published."""
        self._event.set()

    async def next(self, seconds: float | None = None) -> list[Message] | None:
        """Return what was published since; [] when nothing was for so long, None once closed.

        Cancelling it loses nothing.
        """
        try:
            async with asyncio.timeout(seconds):
                while not self._closed and not self._bus.has(self._position):
                    self._event.clear()
                    await self._event.wait()
        except TimeoutError:
            pass  # what came in the last moment is taken all the same
        if self._closed:
            return None
        messages, self._position = self._bus.since(self._position)
        return messages

    def close(self) -> None:
        """Watch no longer; who waits in `next` is woken."""
        self._closed = True
        self._bus.drop(self)
        self._event.set()
