"""Moving bytes one way between two descriptors, with bounded memory and backpressure.

A channel reads only while it has room and writes only what the other side takes; nothing is read that could not be
kept. The front's poll loop asks `wants_read` and `wants_write` each turn and calls `read` and `write` when poll says
so.

Ends: end of file or an error on the source, once what was read is written, closes the sink; an error on
the sink closes the source, so that the task gets its SIGPIPE. EIO is how a pty says that its other side is gone. See
pty(7), pipe(7).
"""

from __future__ import annotations

import os
import select
import stat
from _socket import MSG_DONTWAIT, MSG_NOSIGNAL, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ROOM = 65536  # what a pipe holds, pipe(7); more would only delay backpressure
A_READ = 16384
HUNG_UP = select.POLLHUP | select.POLLERR | select.POLLNVAL
READABLE = select.POLLIN | HUNG_UP
A_BLOCKING_WRITE = 512  # PIPE_BUF's floor: what poll(2) promises can be written without waiting


class Channel:
    """One direction.

    `transform` gets each chunk as it is read and returns what is written for it. `close_source` and `close_sink` say
    whether this channel owns the descriptor and closes it when it ends.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        *,
        close_source: bool = False,
        close_sink: bool = False,
        transform: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.source = source
        self.sink = sink
        self.paused = False
        self.blocked = False  # nothing is written for now; what is read meanwhile waits, up to ROOM
        self.wrote: Callable[[bytes], None] | None = None  # hears what was written
        self.ended = False  # nothing more will be read
        self.broken = False  # nothing more can be written
        self._close_source = close_source
        self._close_sink = close_sink
        self._transform = transform
        self._held = bytearray()
        self._write = writer(sink)
        self._reader = reader(source)

    @property
    def done(self) -> bool:
        """Whether all that was read has been written, and no more comes."""
        return self.broken or (self.ended and not self._held)

    @property
    def wants_read(self) -> bool:
        """Whether to wait for the source."""
        return not (self.ended or self.broken or self.paused) and len(self._held) < ROOM

    @property
    def wants_write(self) -> bool:
        """Whether to wait for the sink."""
        return bool(self._held) and not (self.broken or self.blocked)

    def readable(self) -> bool:
        """Whether the source has something, or an end, right now."""
        look = select.poll()
        look.register(self.source, select.POLLIN)
        return bool(look.poll(0))

    def watch(self, masks: dict[int, int]) -> None:
        """Add what to wait for, as poll(2) has it."""
        if self.wants_read:
            masks[self.source] = masks.get(self.source, 0) | select.POLLIN
        if self.wants_write:
            masks[self.sink] = masks.get(self.sink, 0) | select.POLLOUT

    def move(self, ready: dict[int, int]) -> bool:
        """Do what poll(2) says can be done; True where something moved."""
        moved = False
        if self.wants_write and ready.get(self.sink, 0) & (select.POLLOUT | HUNG_UP):
            moved = self.write()
        if self.wants_read and ready.get(self.source, 0) & READABLE:
            moved = self.read() == 0
        return moved

    def read(self) -> int:
        """Take what the source has now. Returns 0, or the errno of the error that ended it."""
        try:
            data = self._reader(min(A_READ, ROOM - len(self._held)))
        except BlockingIOError:
            return 0
        except OSError as error:
            self._end()
            return error.errno or 0
        if not data:
            self._end()
            return 0
        if self._transform is not None:
            data = self._transform(data)
        self._held += data
        self.write()
        return 0

    def write(self) -> bool:
        """Give the sink what it takes now; True where something moved."""
        if not self._held or self.broken or self.blocked:
            return False
        try:
            sent = self._write(self._held)
        except BlockingIOError:
            return False
        except OSError:
            self.abort()
            return False
        if self.wrote is not None:
            self.wrote(bytes(self._held[:sent]))
        del self._held[:sent]
        if self.ended and not self._held:
            self._shut_sink()
        return sent > 0

    def settle(self) -> None:
        """Move what is there, as far as the sink takes it at once."""
        while self.wants_read and self.readable():
            self.read()
            if self.wants_write:
                break

    def feed(self, data: bytes) -> None:
        """Put bytes of our own behind what waits for the sink."""
        self._held += data

    def abort(self) -> None:
        """Give up on both ends at once."""
        if self.broken:
            return
        self.broken = True
        self._held.clear()
        if not self.ended:
            self.ended = True
            if self._close_source:
                os.close(self.source)
        self._shut_sink()

    def _end(self) -> None:
        self.ended = True
        if self._close_source:
            os.close(self.source)
        if not self._held:
            self._shut_sink()

    def _shut_sink(self) -> None:
        if self._close_sink:
            self._close_sink = False
            os.close(self.sink)


def writer(fd: int) -> Callable[[bytearray], int]:
    """Return a call that writes without waiting, without changing a description that others share."""
    if _is_socket(fd):
        return lambda data: _send(fd, data)
    if os.get_blocking(fd):
        return lambda data: os.write(fd, memoryview(data)[:A_BLOCKING_WRITE])
    return lambda data: os.write(fd, data)


def reader(fd: int) -> Callable[[int], bytes]:
    """Return a call that reads without waiting from a socket; from all else it may wait, so poll(2) comes first."""
    if _is_socket(fd):
        return lambda room: _receive(fd, room)
    return lambda room: os.read(fd, room)


def _send(fd: int, data: bytearray) -> int:
    wire = socket(fileno=fd)
    try:
        return wire.send(data, MSG_DONTWAIT | MSG_NOSIGNAL)
    finally:
        wire.detach()


def _receive(fd: int, room: int) -> bytes:
    wire = socket(fileno=fd)
    try:
        return wire.recv(room, MSG_DONTWAIT)
    finally:
        wire.detach()


def _is_socket(fd: int) -> bool:
    return stat.S_ISSOCK(os.fstat(fd).st_mode)
