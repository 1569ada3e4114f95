"""What follows an accepted WebSocket inside TLS: bytes both ways, decrypted and encrypted again (INS-3, RFC 6455).

Rules of the file: a direction that is blocked is not read; a direction that ends is announced on the other side and
the other one goes on; both count against the rule's bytes and the person's answer, as in every tunnel.
"""

from __future__ import annotations

from _socket import SHUT_WR

from tidegate.gate.dial import why_broken
from tidegate.gate.reactor import ENDED, IN, OUT, remaining
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.inner_exchange import InnerExchange
    from tidegate.gate.reactor import Timer
    from tidegate.gate.record import Entry
    from tidegate.gate.task import Allowance, Meter
    from tidegate.gate.tls_end import TlsEnd

SIZE = 1 << 14
ROUNDS = 16  # reads in one turn before others get theirs


class _Way:
    """One direction."""

    __slots__ = ("done", "limit", "moved", "sink", "sock", "source")

    def __init__(self, source: TlsEnd, sink: TlsEnd, sock: socket, limit: Meter | Allowance | None, moved: int) -> None:
        self.source = source
        self.sink = sink
        self.sock = sock  # of the sink
        self.limit = limit
        self.moved = moved
        self.done = False


class InnerTunnel:
    """A handler of both sockets; it owns them."""

    __slots__ = ("_client", "_down", "_fd", "_idle", "_touched", "_up", "_upstream", "entry", "gate", "how", "listener")

    def __init__(self, exchange: InnerExchange, upstream: socket, entry: Entry, *, up: bytes, down: bytes) -> None:
        decision, origin = exchange.opened.decision, exchange.up
        assert decision is not None, "a connection that is read was allowed"
        assert origin is not None, "whoever accepted it is there"
        self.gate = exchange.gate
        self.listener = exchange.listener
        self.entry = entry
        self.how = exchange.how
        self._client: socket | None = exchange.sock
        self._upstream = upstream
        self._fd = exchange.fd
        limits = exchange.task.meters(decision, exchange.gate.asker)
        self._up = _Way(exchange.down, origin, upstream, limits[0], entry.up)
        self._down = _Way(origin, exchange.down, exchange.sock, limits[1], entry.down)
        self._touched = self.gate.reactor.now
        self._idle: Timer | None = None
        seconds = exchange.task.policy.limits.idle_seconds
        if seconds:
            self._idle = self.gate.reactor.after(seconds, self._look_idle, self)
        reactor = self.gate.reactor
        for way, data in ((self._up, up), (self._down, down)):
            reactor.table[way.source.fd] = self
            if data:
                self._pass(way, data)
            if self._client is not None:
                reactor.again(self, way.source.fd, IN | ENDED)

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the sockets."""
        if self._client is None:
            return
        self._touched = self.gate.reactor.now
        source, sink = (self._up, self._down) if fd == self._fd else (self._down, self._up)
        source.source.wake(mask)
        try:
            if mask & OUT and sink.sink.outlet.blocked and sink.sink.outlet.flush():
                self._pull(sink)
        except OSError:
            self._close(Reason.ALLOWED)
            return
        if self._client is not None and mask & (IN | ENDED):
            self._pull(source)

    def _pull(self, way: _Way) -> None:
        for _ in range(ROUNDS):
            if way.done or way.sink.outlet.blocked or self._client is None:
                return
            try:
                data = way.source.recv(SIZE)
            except BlockingIOError:
                return
            except OSError:
                self._close(Reason.ALLOWED)
                return
            if not data:
                self._end(way)
                return
            self._pass(way, data)
        self.gate.reactor.again(self, way.source.fd, IN)

    def _pass(self, way: _Way, data: bytes) -> None:
        way.moved += len(data)
        self.entry.up, self.entry.down = self._up.moved, self._down.moved
        if way.limit is not None and not way.limit.spend(len(data)):
            self._close(way.limit.reason)
            return
        try:
            way.sink.outlet.send(data)
        except OSError:
            self._close(Reason.ALLOWED)

    def _end(self, way: _Way) -> None:
        way.done = True
        if self._up.done and self._down.done:
            self._close(Reason.ALLOWED)
            return
        try:
            way.sink.outlet.finish()
            if not way.sink.outlet.blocked:
                way.sock.shutdown(SHUT_WR)
        except OSError:
            self._close(Reason.ALLOWED)

    def _look_idle(self) -> None:
        seconds = self.entry.task.policy.limits.idle_seconds
        left = self._touched + seconds - self.gate.reactor.now
        if left <= 0:
            self._close(Reason.IDLE_TIMEOUT)
        else:
            self._idle = self.gate.reactor.after(remaining(left, seconds), self._look_idle, self)

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending, or the operator cuts it."""
        self._close(reason)

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        self._close(why_broken(error))

    def _close(self, reason: Reason) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        if self._idle is not None:
            self._idle.cancel()
        for way in (self._up, self._down):
            self.gate.reactor.table.pop(way.source.fd, None)
        self._upstream.close()
        entry = self.entry
        decision = entry.decision
        entry.write(self.how, decision.reason if decision is not None and reason is Reason.ALLOWED else reason)
        client.close()
        self.listener.left(self._fd)
