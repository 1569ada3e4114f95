"""HTTP/2 inside TLS: moves the bytes of both sides through the inspector's streams (INS-3).

Rules of the file: a side that does not take its bytes stops the other from being read; the client is read on while it
is slow, for its windows and resets, until what waits for it is too much. Frames of a few bytes cost far more than their
bytes, so a turn ends in time too, and the next one reads less at once; what was read is looked at in pieces. A body
that is held (inner_guard.py) may fall silent no longer than in HTTP/1, and where the policy has an idle clock it counts
what happens to streams, not pings. How streams are judged is not known here.

How the destination's connection is let go while no stream is open, and made again, is in returning.py.
"""

from __future__ import annotations

from tidegate.gate import inner_guard
from tidegate.gate.dial import why_broken
from tidegate.gate.origin import ROUNDS, TURN
from tidegate.gate.reactor import ENDED, IN, OUT, remaining
from tidegate.gate.record import Entry
from tidegate.gate.returning import ReturningStreams
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.inspected import Inspected
    from tidegate.gate.reactor import Timer
    from tidegate.gate.tls_end import TlsEnd

SIZE = 1 << 14
SMALL = 1 << 10
BETWEEN = 120.0  # seconds without a stream
PIECES = 8  # of what was read that are looked at before what they make is sent
MOST_WAITING = 1 << 18  # bytes that wait for a client which sends on, or for a destination that is dialled


class InnerStreams(ReturningStreams):
    """A handler of both sockets; it owns them."""

    __slots__ = (
        "_asked", "_beat", "_idle", "_moved", "_reason", "_room", "_seconds", "_touched", "how", "listener",
    )  # fmt: skip

    def __init__(self, begun: Inspected, client: socket, upstream: socket, down: TlsEnd, up: TlsEnd) -> None:
        super().__init__(begun, client, upstream, down, up)
        self.listener = begun.listener
        self.how = How.INSPECTED
        self._asked = False
        self._reason = begun.failure[0] if begun.failure is not None else Reason.ALLOWED  # of one that asks nothing
        self._room = SMALL  # what one read takes
        task = self.task

        def line(method: str) -> Entry:
            self._asked = True
            entry = Entry(self.gate, task, self.entry.decision, method)
            entry.address, entry.detail = self.entry.address, self.entry.detail
            return entry

        inspector = task.inspector
        assert inspector is not None, "whoever reads was asked"
        self._streams = inspector.streams(begun.decision, task.policy.limits, line, begun.failure, task.secrets)
        self._touched = self.gate.reactor.now
        self._moved = 0
        self._seconds = task.policy.limits.idle_seconds
        self._idle: Timer | None = self.gate.reactor.after(self._longest(), self._look_idle, self)
        self._beat: Timer | None = None

    def begin(self) -> None:
        """Say the first word to both, and read what is there."""
        self._send()
        for fd in self._fds if self._upstream.fileno() >= 0 else self._fds[:1]:
            if self._client is not None:
                self.gate.reactor.again(self, fd, IN | ENDED)

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the sockets."""
        if self._client is None:
            return
        up, down = self._up, self.down
        end, other = (down, up) if fd == self._fds[0] else (up, down)
        if end is None:
            return
        end.wake(mask)
        try:
            if mask & OUT and end.outlet.blocked and self._flush(end) and other is not None:
                self._read(other)
            if self._client is not None and mask & (IN | ENDED):
                self._read(end)
        except OSError:
            self._close(Reason.CLIENT_GONE)

    def _read(self, end: TlsEnd) -> None:
        down, streams = self.down, self._streams
        client = end is down
        gone = self._upstream.fileno() < 0  # what it has answered may still be on its way
        if not client and gone and not streams.hungry:
            return
        clock = self.gate.clock
        late = clock() + TURN
        for _ in range(ROUNDS):
            if self._client is None or streams.over:
                return
            if streams.hungry and not down.outlet.blocked:
                streams.go_on()
                self._send()
                if clock() > late:
                    break
                continue
            if not client and gone:
                return
            if self._upstream_blocked if client else down.outlet.blocked:
                return
            if client and down.outlet.waiting > MOST_WAITING:
                return
            data = b""
            if not (streams.client_waits if client else streams.upstream_waits):
                received = self._receive(end, client=client)
                if received is None:
                    return
                data = received
            self._take(data, late, client=client)
            if clock() > late:
                self._room = SMALL
                break
        else:
            self._room = min(2 * self._room, SIZE)
        self.gate.reactor.again(self, self._fds[0] if gone else end.fd, IN)

    @property
    def _upstream_blocked(self) -> bool:
        up = self._up
        return len(self._early) > MOST_WAITING if up is None else up.outlet.blocked and not self._deaf

    def _take(self, data: bytes, late: float, *, client: bool) -> None:
        # Pieces of what was read, one after the other; what they make is sent at once: a record, and a call, cost as
        # much as a piece does.
        streams, clock = self._streams, self.gate.clock
        take = streams.from_client if client else streams.from_upstream
        up = down = b""
        for _ in range(PIECES):
            take(data)
            data = b""
            if streams.hungry or not (streams.client_waits if client else streams.upstream_waits):
                break
            up += streams.take_upstream()
            down += streams.take_client()
            if len(up) + len(down) > SIZE or clock() > late:
                break
        if not client and not self._worked and self._up is not None:
            self._worked = True
            self._up.tls.worked()
        self._send(up, down)

    def _receive(self, end: TlsEnd, *, client: bool) -> bytes | None:
        """Return what a side says; None where that is nothing now, or was its end."""
        try:
            data = end.recv(self._room)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        limit = self._limits[0 if client else 1]
        if not data and client:
            self._close(Reason.CLIENT_GONE)
        elif not data:
            self._origin_ended()
            self._send()
        elif limit is not None and not limit.spend(len(data)):
            self._close(limit.reason)
        else:
            return data
        return None

    def _send(self, up: bytes = b"", down: bytes = b"") -> None:
        streams = self._streams
        if streams.moved != self._moved:  # what comes without a stream holds no connection
            self._moved, self._touched = streams.moved, self.gate.reactor.now
        if streams.held and self._beat is None:
            self._beat = self.gate.reactor.after(inner_guard.SILENT / 4, self._look_silent, self)
        try:
            data = up + streams.take_upstream()
            if data and not self._deaf:
                if self._up is None:
                    self._early += data
                else:
                    self._up.outlet.send(data)
        except OSError:
            self._takes_no_more()
        try:
            data = down + streams.take_client()
            if data:
                self.down.outlet.send(data)
            if streams.over:
                self.down.outlet.finish()
        except OSError:
            self._close(Reason.CLIENT_GONE)
            return
        if streams.over:
            self._leave(linger=not self.down.outlet.blocked)
        elif not self._deaf and self._client is not None:
            self._look_needed()

    def _flush(self, end: TlsEnd) -> bool:
        try:
            return end.outlet.flush()
        except OSError:
            if end is self.down:
                raise
            self._takes_no_more()
            return True

    def _takes_no_more(self) -> None:
        # The destination has gone, and may have answered before (B47): what it said is read on to its end.
        self._deaf = True
        if self._up is not None:
            self._up.wake(IN | ENDED)
        self.gate.reactor.again(self, self._fds[1], IN | ENDED)

    def _origin_ended(self) -> None:
        self._deaf = True
        why = self._up.tls.why()[0] if self._up is not None else Reason.UPSTREAM_CLOSED
        self._streams.upstream_ended(why if why is Reason.CLIENT_CERTIFICATE else Reason.UPSTREAM_CLOSED)
        self.drop_origin()

    def _longest(self) -> float:
        return min(BETWEEN, self._seconds or BETWEEN)

    def _look_idle(self) -> None:
        seconds = self._seconds if self._streams.streams else BETWEEN
        left = self._touched + seconds - self.gate.reactor.now
        if seconds and left <= 0:
            self._close(Reason.IDLE_TIMEOUT)
        else:
            self._streams.calm()
            left = min(left if seconds else BETWEEN, self._longest())
            self._idle = self.gate.reactor.after(remaining(left, self._longest()), self._look_idle, self)

    def _look_silent(self) -> None:
        self._beat = None
        self._streams.beat()
        self._send()

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending, or the operator cuts it."""
        self._close(reason)

    def abort(self, reason: Reason) -> None:
        """The destination is not read any more, or is another: the client has to begin anew."""
        self._close(reason)

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        self._close(why_broken(error))

    def _close(self, reason: Reason) -> None:
        if self._client is not None:
            self._streams.ended(reason)
            self._leave(linger=False)

    def _leave(self, *, linger: bool) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        for timer in (self._idle, self._beat):
            if timer is not None:
                timer.cancel()
        self._idle = self._beat = None  # they hold this
        self._stop()
        self.gate.reactor.table.pop(self._fds[0], None)
        self.drop_origin()
        if not self._asked:
            self.entry.write(self.how, self._reason)
        if linger:
            self.gate.linger(self.listener, client, watched=True)
        else:
            client.close()
            self.listener.left(self._fds[0])
