"""A log of the kernel in the gate's loop: read as it comes, a few messages a turn, and never waited for.

Rules of the file: what is not understood is counted and passed over; the kernel drops what nobody reads in time and
says so (ENOBUFS of nfnetlink_log, EPIPE of /dev/kmsg), and the rest is there. The end of a log is not the gate's end.
"""

from __future__ import annotations

import os
from errno import EINTR, EINVAL, ENOBUFS, EPIPE

from tidegate.gate.reactor import LEVEL
from tidegate.wire.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.gate.gate import Gate
    from tidegate.model.reason import Reason
    from tidegate.wire.attempt import Attempt

BATCH = 64  # messages in one turn
TURNS = 64  # of them, to take all that waits: no buffer of a log holds more than some 2,000 packets
_LARGEST = 65536
_GONE_BY = (ENOBUFS, EPIPE, EINTR, EINVAL)  # some were dropped, or one is too long: the next is there


class LogReader:
    """One log. Owns its descriptor; `parse` reads a message, `tell` takes each attempt that it tells of."""

    __slots__ = ("_fd", "_gate", "_parse", "_tell", "dropped", "not_understood")

    def __init__(
        self, gate: Gate, fd: int, parse: Callable[[bytes], Iterable[Attempt]], tell: Callable[[Attempt], None]
    ) -> None:
        self._gate = gate
        self._fd = fd
        self._parse = parse
        self._tell = tell
        self.dropped = 0  # times that the kernel said so; it does not say how many
        self.not_understood = 0
        os.set_blocking(fd, False)
        gate.reactor.watch(fd, self, LEVEL)

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return self._fd >= 0

    def ready(self, _fd: int, _mask: int) -> None:
        """Messages are waiting; what this turn does not take is told of again."""
        self._turn()

    def drain(self) -> None:
        """Take everything that is there: as much as the kernel keeps, not what comes for ever."""
        for _ in range(TURNS):
            if not self._turn():
                return

    def _turn(self) -> bool:
        """Take a few messages; whether there may be more."""
        for _ in range(BATCH):
            if self._fd < 0:
                return False
            try:
                data = os.read(self._fd, _LARGEST)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in _GONE_BY:
                    self.dropped += 1
                    continue
                self.close()  # whatever it is, it would be the same at once
                return False
            try:
                for attempt in self._parse(data):
                    self._tell(attempt)
            except WireError:
                self.not_understood += 1
        return True

    def cut(self, _reason: Reason) -> None:
        """The gate is ending: what is there is still taken."""
        self.drain()
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug with one message: the next ones are read."""

    def close(self) -> None:
        """Close it; later calls do nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._gate.reactor.forget(fd)
            os.close(fd)
