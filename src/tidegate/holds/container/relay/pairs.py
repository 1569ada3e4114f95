"""Two ends that are one connection, the loop that all of them are in, and the doors by which they come in."""

from __future__ import annotations

import select
import socket
import time

from tidegate.holds.container.relay.ends import Framed, Plain
from tidegate.holds.container.relay.words import EDGES, IN, LINGER, MOST, PATIENCE, RESET, ROOM, ROUNDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Handler(Protocol):
        """What owns a watched descriptor."""

        def ready(self, fd: int, mask: int, /) -> None:
            """Something may have happened on it."""

    class Held(Protocol):
        """A connection, or what becomes one."""

        deadline: float | None

        def ready(self, fd: int, mask: int, /) -> None:
            """Something may have happened on it."""

        def close(self, *, cut: bool) -> None:
            """Close it."""


class _Way:
    """One direction. Where nobody reads any more, what still comes is dropped, so that an answer is not lost by it."""

    __slots__ = ("_dropped", "buffer", "ended", "over", "sink", "source")

    def __init__(self, source: Plain | Framed, sink: Plain | Framed) -> None:
        self.source = source
        self.sink = sink
        self.buffer = bytearray()
        self.ended = False  # the source has
        self.over = False  # and the sink knows, or reads no more
        self._dropped = False

    def move(self) -> bool:
        """Move what can be moved now; whether that was anything.

        Raises:
            OSError: when the connection is broken.
        """
        moved = False
        if self.buffer:
            taken = self.sink.write(self.buffer)
            if taken < 0:
                self._dropped = self.over = True
                self.buffer.clear()
            else:
                del self.buffer[:taken]
            moved = taken != 0
        if not self.ended and len(self.buffer) < ROOM:
            data = self.source.read()
            if data is not None:
                moved = True
                self.ended = not data
                if not self._dropped:
                    self.buffer += data
        if self.ended and not self.over and not self.buffer and self.sink.end():
            self.over = moved = True
        return moved


class Pair:
    """Two ends that are one connection. Owns both sockets.

    `deadline` is when it is cut: if it is not open by then, or when one side has ended and the other still sends.
    """

    def __init__(self, loop: Loop, near: Plain | Framed, far: Plain | Framed) -> None:
        self.ends = (near, far)
        self.ways = (_Way(near, far), _Way(far, near))
        self.deadline: float | None = time.monotonic() + PATIENCE
        self.is_open = False
        self.is_closed = False
        self._loop = loop
        loop.pairs.add(self)
        for end in self.ends:
            loop.forget(end.fd)
            loop.watch(end.fd, self, EDGES)
        self.ready(0, 0)

    def ready(self, _fd: int, _mask: int) -> None:
        """Something may have happened on one of them."""
        if self.is_closed:
            return
        try:
            self._go()
        except OSError:
            self.close(cut=True)

    def _go(self) -> None:
        if not self.is_open:
            near, far = self.ends[0].is_ready(), self.ends[1].is_ready()
            if not (near and far):
                return
            self.is_open = True
            self.deadline = None
        for end in self.ends:
            if isinstance(end, Framed):
                end.flush()
        for _ in range(ROUNDS):
            first, second = self.ways[0].move(), self.ways[1].move()
            if not (first or second):
                break
        else:
            self._loop.again.add(self)
        if all(way.over for way in self.ways):
            if all(way.ended for way in self.ways) and not any(end.owes() for end in self.ends):
                self.close(cut=False)
            elif self.deadline is None:
                self.deadline = time.monotonic() + LINGER

    def close(self, *, cut: bool) -> None:
        """Close both."""
        if not self.is_closed:
            self.is_closed = True
            self._loop.pairs.discard(self)
            self._loop.again.discard(self)
            for end in self.ends:
                self._loop.forget(end.fd)
                end.close(cut=cut)


class Caller:
    """A connection whose other side has not said yet what it wants; until it does, it is held like a pair."""

    def __init__(self, loop: Loop, end: Framed) -> None:
        self.deadline: float | None = time.monotonic() + PATIENCE
        self.end = end
        self._loop = loop
        self._closed = False
        loop.pairs.add(self)
        loop.watch(end.fd, self, EDGES)
        self.ready(0, 0)

    def arrived(self, word: bytes) -> Plain | Framed:
        """Return the other end of what is wanted.

        Raises:
            OSError: when there is none.
        """
        raise NotImplementedError

    def joined(self, pair: Pair) -> None:
        """It is a pair from now on."""

    def refused(self, error: OSError) -> None:
        """It cannot be had."""

    def ready(self, _fd: int, _mask: int) -> None:
        """Go on, as far as it goes."""
        if self._closed:
            return
        try:
            word = self.end.word()
            if word is None:
                return
            far = self.arrived(word)
        except OSError as error:
            self.refused(error)
            self.close(cut=True)
            return
        self.forget()
        self.end.open()
        self.joined(Pair(self._loop, self.end, far))

    def forget(self) -> None:
        """It is held no longer."""
        self._closed = True
        self._loop.pairs.discard(self)

    def close(self, *, cut: bool) -> None:
        """Close it."""
        if not self._closed:
            self.forget()
            self._loop.forget(self.end.fd)
            self.end.close(cut=cut)


class Loop:
    """Sockets and what they belong to, on one thread."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.table: dict[int, Handler] = {}
        self.pairs: set[Held] = set()
        self.again: set[Held] = set()

    def watch(self, fd: int, handler: Handler, mask: int) -> None:
        """Tell `handler` what happens on `fd`."""
        self.epoll.register(fd, mask)
        self.table[fd] = handler

    def forget(self, fd: int) -> None:
        """Watch no longer. The descriptor is still open."""
        if self.table.pop(fd, None) is not None:
            self.epoll.unregister(fd)

    def turn(self, seconds: float) -> None:
        """Wait for events at most so long, handle them, and cut what is past its deadline."""
        for fd, mask in self.epoll.poll(0 if self.again else seconds):
            handler = self.table.get(fd)
            if handler is not None:
                handler.ready(fd, mask)
        again, self.again = self.again, set()
        for pair in again:
            pair.ready(0, 0)
        now = time.monotonic()
        for pair in [one for one in self.pairs if one.deadline is not None and one.deadline <= now]:
            pair.close(cut=True)

    def cut_all(self) -> None:
        """Cut every connection."""
        for pair in list(self.pairs):
            pair.close(cut=True)

    def close(self) -> None:
        """Give everything back that is not the caller's."""
        self.cut_all()
        self.epoll.close()


class Door:
    """A listening socket whose connections go where `dial` leads: it is given the kind, and what `name` says of one."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        kind: bytes,
        dial: Callable[[bytes, bytes], Plain | Framed],
        name: Callable[[socket.socket], bytes] | None = None,
    ) -> None:
        sock.setblocking(False)
        self.loop = loop
        self.kind = kind
        self.dial = dial
        self._sock = sock
        self._name = name
        loop.watch(sock.fileno(), self, IN)

    def ready(self, _fd: int, _mask: int) -> None:
        """Somebody came."""
        try:
            sock = self._sock.accept()[0]
        except OSError:
            time.sleep(0.01)  # out of descriptors: never at full speed
            return
        self.enter(sock)

    def enter(self, sock: socket.socket) -> None:
        """Lead who came to where it goes."""
        near = Plain(sock)
        try:
            if len(self.loop.pairs) >= MOST:
                raise ConnectionRefusedError
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)  # also where this process is killed
            far = self.dial(self.kind, self._name(sock) if self._name is not None else b"")
        except OSError:
            near.close(cut=True)
        else:
            Pair(self.loop, near, far)
