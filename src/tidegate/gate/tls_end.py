"""One side of an inspected connection: a socket, and TLS on memory above it (INS-3).

Rules of the file:

* To whoever reads it is like a non-blocking socket: less than was asked for only where no more is there (origin.py's
  Source). So what TLS holds is taken before the socket is read again, and the socket until it is empty.
* What TLS itself has to say (handshake, tickets, alerts) goes out before whoever reads sees a byte.
* Bytes that were encrypted are sent or wait in the outlet; they are never encrypted twice.
* Whoever makes TLS speak without taking what it says is ended: key updates that ask for another, renegotiation that is
  refused by an alert each time. So is a side that says much and nothing of it plain.

It knows no HTTP, and nothing of what TLS is made of.
"""

from __future__ import annotations

from errno import ENOBUFS

from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.reactor import Reactor
    from tidegate.model.seams import Tls

RAW = 1 << 16  # bytes of one read of the socket: four records, or many small ones
MOST_TOLD = 4096  # bytes of TLS's own that wait in a row: some hundred alerts or key updates
_PLAIN = bytearray(RAW)
_VIEW = memoryview(_PLAIN)


class TlsOutlet(Outlet):
    """The writing side: what is given is plain, what waits is not."""

    __slots__ = ("_tls", "_told")

    def __init__(self, reactor: Reactor, sock: socket, tls: Tls) -> None:
        super().__init__(reactor, sock)
        self._tls = tls
        self._told = 0  # bytes of TLS's own that were added to others that wait

    def send(self, data: bytes | memoryview) -> bool:
        """Write plain bytes; False when some have to wait."""
        return Outlet.send(self, self._tls.write(data)) if data else not self.blocked

    def post(self, data: bytes) -> None:
        """Write a whole plain message with what others write."""
        Outlet.post(self, self._tls.write(data))

    def tell(self) -> None:
        """Send what TLS itself has to say.

        Raises:
            OSError: the other side is gone, or makes TLS speak and does not listen.
        """
        said = self._tls.take()
        self._told = self._told + len(said) if self._pending else 0
        if self._told > MOST_TOLD:
            raise OSError(ENOBUFS, "it asks more of TLS than it reads")
        super().send(said)

    def finish(self) -> None:
        """Announce the end (close_notify), so that nobody takes a cut for it."""
        super().send(self._tls.close())


class TlsEnd:
    """The reading side, and the outlet that belongs to it. It does not own the socket."""

    __slots__ = ("_broken", "_clean", "_dry", "_ending", "_over", "_sock", "ended", "fd", "outlet", "tls")

    def __init__(self, reactor: Reactor, sock: socket, tls: Tls) -> None:
        self.tls = tls
        self.fd = sock.fileno()
        self.outlet = TlsOutlet(reactor, sock, tls)
        self._sock = sock
        self._broken: OSError | None = None  # what TLS has to say cannot be sent
        self._clean = False  # TLS has nothing that is not read yet; `feed` changes that
        self._dry = False
        self._ending = False
        self._over = False
        self.ended = False  # nothing more will come, though some of it may be unread

    def wake(self, mask: int) -> None:
        """An event told of the socket: there may be something to read again."""
        self._dry = False
        if mask & ENDED:
            self._ending = True

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

    def part(self) -> None:
        """Say that this is the end, to whoever still listens."""
        try:
            self.outlet.finish()
        except OSError:
            return

    def recv(self, room: int) -> bytes:
        """Return at most so many plain bytes, fewer only where no more are there; b"" at the end.

        Raises:
            BlockingIOError: there are none now.
            OSError: the connection broke, or ended without saying so.
        """
        return bytes(_VIEW[: self.recv_into(_PLAIN, min(room, RAW))])

    def recv_into(self, buffer: bytearray, room: int = 0) -> int:
        """Likewise, into a buffer, and return how many; 0 at the end."""
        tls = self.tls
        room = room or len(buffer)
        if self._clean:
            # Nothing is asked of TLS that it cannot have: being told so by an error costs as much as a record.
            if self._dry:
                raise BlockingIOError
            try:
                raw = self._sock.recv(RAW)
            except BlockingIOError:
                self._dry = True
                raise
            self._clean = False
            self._dry = 0 < len(raw) < RAW and not self._ending  # see _pull
            if not raw:
                tls.feed_end()
            count = tls.read_into(buffer, room, raw)
            if tls.quiet and self._dry:
                self._clean = True
                return count  # type: ignore[return-value] # so it is for most of all reads: a few whole records
        elif self._broken is not None:
            raise self._broken
        else:
            count = tls.read_into(buffer, room)
        while count is None and not self._dry:
            full = self._pull()
            count = tls.read_into(buffer, room)
            if full and count is None:
                raise OSError(ENOBUFS, "it says a lot, and nothing of it plain")  # no record is as large
        self._clean = not self._over and (count is None or (count < room and tls.drained))
        if count and count < room and not (self._dry and self._clean):
            self._clean = False
            count = self._fill(buffer, count, room)
        self.ended = self._over or tls.closed
        if tls.pending:
            try:
                self.outlet.tell()
            except OSError as error:
                if not count:
                    raise
                self._broken, self._clean = error, False  # told with the next read: this one's bytes came before it
        if count is None:
            raise BlockingIOError
        return count

    def _fill(self, buffer: bytearray, count: int, room: int) -> int:
        # Behind what is there already; returns how much is there now.
        tls = self.tls
        with memoryview(buffer) as view:
            while count < room:
                try:
                    more = tls.read_into(view[count:], room - count)
                    if more is None and not self._dry:
                        self._pull()
                        continue
                except OSError:
                    self._over = True  # told with the next read, when what came before it is passed on
                    break
                if not more:
                    break
                count += more
        return count

    def _pull(self) -> bool:
        # More of the socket into TLS, or take note that there is none. Returns whether it was all that one read takes.
        try:
            raw = self._sock.recv(RAW)
        except BlockingIOError:
            self._dry = True
            return False
        self._clean = False
        if raw:
            self.tls.feed(raw)
            if len(raw) < RAW and not self._ending:
                self._dry = True  # a short read has emptied the socket (epoll(7))
        else:
            self.tls.feed_end()
        return len(raw) == RAW
