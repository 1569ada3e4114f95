"""One side of an inspected connection: a socket, and TLS on memory above it (INS-3).

Rules of the file:

* To whoever reads it is like a non-blocking socket: less than was asked for only where no more is there (origin.py's
  Source). So what TLS holds is taken before the socket is read again, and the socket until it is empty.
* What TLS itself has to say (handshake, tickets, alerts) goes out before whoever reads sees a byte.
* Bytes that were encrypted are sent or wait in the outlet; they are never encrypted twice.

It knows no HTTP, and nothing of what TLS is made of.
"""

from __future__ import annotations

from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.reactor import Reactor
    from tidegate.model.seams import Tls

RAW = 1 << 16  # bytes of one read of the socket: four records, or many small ones


class TlsOutlet(Outlet):
    """The writing side: what is given is plain, what waits is not."""

    __slots__ = ("_tls",)

    def __init__(self, reactor: Reactor, sock: socket, tls: Tls) -> None:
        super().__init__(reactor, sock)
        self._tls = tls

    def send(self, data: bytes | memoryview) -> bool:
        """Write plain bytes; False when some have to wait."""
        return super().send(self._tls.write(data)) if data else not self.blocked

    def tell(self) -> None:
        """Send what TLS itself has to say."""
        super().send(self._tls.take())

    def finish(self) -> None:
        """Announce the end (close_notify), so that nobody takes a cut for it."""
        super().send(self._tls.close())


class TlsEnd:
    """The reading side, and the outlet that belongs to it. It does not own the socket."""

    __slots__ = ("_dry", "_ending", "_over", "_sock", "fd", "outlet", "tls")

    def __init__(self, reactor: Reactor, sock: socket, tls: Tls) -> None:
        self.tls = tls
        self.fd = sock.fileno()
        self.outlet = TlsOutlet(reactor, sock, tls)
        self._sock = sock
        self._dry = False
        self._ending = False
        self._over = False

    def wake(self, mask: int) -> None:
        """An event told of the socket: there may be something to read again."""
        self._dry = False
        if mask & ENDED:
            self._ending = True

    @property
    def ended(self) -> bool:
        """Whether nothing more will come, though some of it may be unread."""
        return self._over or self.tls.closed

    def shake(self) -> bool:
        """Go on with the handshake; True when it is done.

        Raises:
            OSError: it failed; the alert is sent.
        """
        tls = self.tls
        while True:
            try:
                done = tls.shake()
            finally:
                if tls.pending:
                    self.outlet.tell()
            if done or self._dry:
                return done
            self._pull()

    def recv(self, room: int) -> bytes:
        """Return at most so many plain bytes, fewer only where no more are there; b"" at the end.

        Raises:
            BlockingIOError: there are none now.
            OSError: the connection broke, or ended without saying so.
        """
        tls = self.tls
        data = tls.read(room)
        while data is None and not self._dry:
            self._pull()
            data = tls.read(room)
        if data and len(data) < room:
            parts, got = [data], len(data)
            while got < room:
                try:
                    more = tls.read(room - got)
                    if more is None and not self._dry:
                        self._pull()
                        continue
                except OSError:
                    self._over = True  # told with the next read, when what came before it is passed on
                    break
                if not more:
                    break
                parts.append(more)
                got += len(more)
            data = b"".join(parts)
        if tls.pending:
            self.outlet.tell()
        if data is None:
            raise BlockingIOError
        return data

    def recv_into(self, buffer: bytearray, room: int = 0) -> int:
        """Likewise, into a buffer."""
        data = self.recv(room or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _pull(self) -> None:
        # More of the socket into TLS, or take note that there is none.
        try:
            raw = self._sock.recv(RAW)
        except BlockingIOError:
            self._dry = True
            return
        if raw:
            self.tls.feed(raw)
            if len(raw) < RAW and not self._ending:
                self._dry = True  # a short read has emptied the socket (epoll(7))
        else:
            self.tls.feed_end()
