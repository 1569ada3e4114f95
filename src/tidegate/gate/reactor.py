"""The one loop: an epoll instance, timers, and wake-ups from other threads.

Rules of the file:

* Every descriptor is watched edge-triggered (epoll(7)): a handler reads until it would block, or asks to be run
  again in the next turn (`again`) so that one busy connection does not starve the others.
* A mask is a hint, never a fact. Descriptors are reused within one batch of events, so a handler may be told of
  something that happened to its predecessor; it finds out by reading.
* Timers are coarse. All timers of one length stand in one queue in the order in which they end, so arming and
  cancelling cost the same however many there are.
* A handler that raises is broken, and only it: the loop tells it so (`broken`) and goes on.
* What some handlers send in one turn goes out together (`together`): who is asleep at the other end is woken once for
  many messages, and waking costs as much as sending. A message waits for `TOGETHER` handlers at most.
* A wake-up shortens a wait and means nothing else: what was posted, and a stop, is seen in each turn, and no turn is
  longer than `LONGEST`. So neither is lost where the wake-up could not be written.

What it does not do: it knows no sockets, no protocols and no policy.
"""

from __future__ import annotations

import os
import select
from errno import EBADF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict, deque
    from collections.abc import Callable
    from typing import Protocol

    from tidegate.gate.outlet import Outlet

    class Handler(Protocol):
        """What owns a watched descriptor."""

        def ready(self, fd: int, mask: int) -> None:
            """Something may have happened on `fd`; `mask` is epoll's hint."""

        def broken(self, error: Exception) -> None:
            """The handler raised: close it, and nothing else."""

    class Owner(Protocol):
        """On whose behalf something is called."""

        def broken(self, error: Exception) -> None:
            """It raised: close what is owned, and nothing else."""
else:
    from _collections import OrderedDict, deque  # collections itself brings ten modules

IN = select.EPOLLIN
OUT = select.EPOLLOUT
ERR = select.EPOLLERR
HUP = select.EPOLLHUP
RDHUP = select.EPOLLRDHUP
READ = IN | RDHUP | select.EPOLLET
READ_WRITE = READ | OUT
LEVEL = IN | RDHUP  # for a listener, whose queue may be longer than one turn takes
ENDED = RDHUP | HUP | ERR

BATCH = 256  # events a turn: enough to amortise the system call, few enough to keep timers honest
CROWD = 2  # handlers with something to do: from so many on it is worth while to send together
TOGETHER = 16  # handlers: a woken process has enough to do until the next messages come
GRAIN = 0.004  # seconds: timers that end close to each other share a turn
LONGEST = 1.0  # seconds: what a stop waits for at most where its wake-up was lost
_FOREVER = float("inf")


def remaining(left: float, whole: float) -> float:
    """Round what is left of a clock up to a sixteenth of it: timers of few lengths stand in few queues."""
    return whole * min(1 + int(16 * left / whole), 16) / 16


class Timer:
    """One pending call. `cancel` may be called at any time, also after it ran."""

    __slots__ = ("callback", "due", "owner", "queue")

    def __init__(
        self, due: float, callback: Callable[[], None], owner: Handler | None, queue: OrderedDict[Timer, None]
    ) -> None:
        self.due = due
        self.callback = callback
        self.owner = owner
        self.queue = queue

    def cancel(self) -> None:
        """Make sure that the call does not happen (any more)."""
        self.queue.pop(self, None)


class Reactor:
    """The loop. Only `post` and `stop` may be called from other threads or from signal handlers."""

    __slots__ = (
        "_again",
        "_due",
        "_epoll",
        "_fault",
        "_posted",
        "_queues",
        "_stop",
        "_together",
        "_wake",
        "clock",
        "crowded",
        "now",
        "table",
        "turned",
    )

    def __init__(self, clock: Callable[[], float], fault: Callable[[Exception], None] | None = None) -> None:
        self.clock = clock
        self.now = clock()
        self.table: dict[int, Handler] = {}
        self.turned: Callable[[], None] | None = None  # called at the end of each turn
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, IN)
        self._posted: deque[Callable[[], None]] = deque()
        self._again: list[tuple[Handler, int, int]] = []
        self._queues: dict[float, OrderedDict[Timer, None]] = {}
        self._due = _FOREVER  # no timer ends before this
        self._stop = False
        self._fault = fault
        self.crowded = False  # in this turn several handlers have something to do
        self._together: list[Outlet] = []

    # Descriptors.

    def watch(self, fd: int, handler: Handler, mask: int = READ) -> None:
        """Tell `handler` what happens on `fd`. What is already there counts as happening now."""
        self._epoll.register(fd, mask)
        self.table[fd] = handler

    def rewatch(self, fd: int, mask: int) -> None:
        """Change what is watched; also re-arms the edge: what is already there is told again."""
        self._epoll.modify(fd, mask)

    def forget(self, fd: int) -> None:
        """Stop watching a descriptor that stays open."""
        if self.table.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def again(self, handler: Handler, fd: int, mask: int) -> None:
        """Run the handler once more in the next turn, as if the event had come again."""
        self._again.append((handler, fd, mask))

    def together(self, outlet: Outlet) -> None:
        """Let this one send what was posted to it with others, soon and in this turn (`crowded`)."""
        self._together.append(outlet)

    def _send_together(self) -> None:
        outlets, self._together = self._together, []
        for outlet in outlets:
            outlet.settle()

    # Timers.

    def after(self, seconds: float, callback: Callable[[], None], owner: Handler | None = None) -> Timer:
        """Call back once, `seconds` from this turn."""
        queue = self._queues.get(seconds)
        if queue is None:
            queue = self._queues[seconds] = OrderedDict()
        due = self.now + seconds
        timer = Timer(due, callback, owner, queue)
        queue[timer] = None
        self._due = min(self._due, due)
        return timer

    def call(self, callback: Callable[[], None], owner: Owner) -> None:
        """Call on behalf of `owner`: when that raises, the owner is broken, and nobody else."""
        self._call(callback, owner)

    @property
    def timers(self) -> int:
        """How many timers are pending."""
        return sum(map(len, self._queues.values()))

    def _expire(self) -> None:
        now = self.now
        self._due = soonest = _FOREVER
        for seconds, queue in list(self._queues.items()):
            for _ in range(len(queue)):  # what a call arms now has its turn in the next one
                if not queue:
                    break
                timer = next(iter(queue))
                if timer.due > now:
                    soonest = min(soonest, timer.due)
                    break
                del queue[timer]
                self._call(timer.callback, timer.owner)
            if not queue and self._queues.get(seconds) is queue:
                del self._queues[seconds]
        self._due = min(self._due, soonest)

    # Other threads.

    def post(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the loop's thread, soon. Thread-safe and signal-safe."""
        self._posted.append(callback)
        self.wake()

    def wake(self) -> None:
        """End the wait of the current turn; where the kernel does not do that, it ends by itself (`LONGEST`).

        Raises:
            OSError: when the reactor is closed.
        """
        if self._wake < 0:
            raise OSError(EBADF, "the loop is closed")
        try:
            os.eventfd_write(self._wake, 1)
        except OSError:
            return

    def stop(self) -> None:
        """Let `run` return after the current turn. Thread-safe and signal-safe."""
        self._stop = True
        self.wake()

    # The loop.

    def _call(self, callback: Callable[[], None], owner: Owner | None) -> None:
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - one broken owner must not end the gate of all tasks
            self._broke(owner, error)

    def _broke(self, owner: Owner | None, error: Exception) -> None:
        if self._fault is not None:
            self._fault(error)
        if owner is not None:
            try:
                owner.broken(error)
            except Exception as second:  # noqa: BLE001 - as above
                if self._fault is not None:
                    self._fault(second)

    def _woken(self) -> None:
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            return

    def _run_posted(self) -> None:
        for _ in range(len(self._posted)):
            self._call(self._posted.popleft(), None)

    def run(self) -> None:
        """Turn until `stop` is called."""
        poll, table, clock, wake = self._epoll.poll, self.table, self.clock, self._wake
        while not self._stop:
            ready = self._again or self._posted
            timeout = 0.0 if ready else min(max(0.0, self._due - clock()) + GRAIN, LONGEST)
            events = poll(timeout, BATCH)
            self.now = clock()
            self.crowded = len(events) + len(self._again) >= CROWD
            if self._again:
                again, self._again = self._again, []
                for handler, fd, mask in again:
                    if table.get(fd) is handler:
                        try:
                            handler.ready(fd, mask)
                        except Exception as error:  # noqa: BLE001 - see the rules of the file
                            self._broke(handler, error)
            for at in range(0, len(events), TOGETHER):
                for fd, mask in events[at : at + TOGETHER]:
                    owner = table.get(fd)
                    if owner is not None:
                        try:
                            owner.ready(fd, mask)
                        except Exception as error:  # noqa: BLE001 - see the rules of the file
                            self._broke(owner, error)
                    elif fd == wake:
                        self._woken()
                if self._together:
                    self._send_together()
            self.crowded = False
            if self._together:
                self._send_together()
            if self._posted:
                self._run_posted()
            if self.now >= self._due:
                self._expire()
            if self.turned is not None:
                self.turned()
        self._stop = False

    def close(self) -> None:
        """Give the reactor's own descriptors back."""
        self._epoll.close()
        wake, self._wake = self._wake, -1  # a thread that posts late must not write into what gets this number next
        os.close(wake)
        self.table.clear()
        self._queues.clear()
        self._posted.clear()
