"""The beginning of a connection that is read inside TLS: the ClientHello, then both handshakes (INS-1, INS-3, GAT-9).

Rules of the file:

* The client speaks first, and TLS: what a server says before it, or a client in another protocol, does not pass.
* The destination's handshake comes first. The client is offered what the destination selected of the client's own
  protocols, so both sides always speak the same one, and nothing is ever translated.
* A destination that cannot be verified, or wants a client's certificate, gets no request. The client's handshake is
  completed all the same, and its first request is answered with the reason: a TLS alert could not say it.
* One client's connection has one connection to the destination, which nobody else ever uses, and both end together.
  Where many wait for a request, the destination's end of some is let go, and made again (idle_ends.py, redial.py).

What follows is in inner_exchange.py.
"""

from __future__ import annotations

from tidegate.gate.dial import why_broken
from tidegate.gate.reactor import ENDED, IN, OUT
from tidegate.gate.tls_end import TlsEnd
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.wire.client_hello import refusal_alert, tls_alert
from tidegate.wire.errors import WireError
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.opening import OpeningReader, opening_verdict
from tidegate.wire.refusal import refusal_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.reactor import Timer
    from tidegate.gate.record import Entry
    from tidegate.model.decision import Decision
    from tidegate.model.seams import Inspector
    from tidegate.wire.opening import Opening

READ = 1 << 14
H2 = b"h2"  # RFC 9113 section 3.1
NO_APPLICATION_PROTOCOL = 120  # RFC 7301 section 3.2


class Inspected:
    """A handler of both sockets until the handshakes are done. Owns them."""

    __slots__ = (
        "_alpn", "_client", "_deadline", "_fds", "_inspector", "_reader", "_rest", "_selected", "_upstream",
        "decision", "down", "entry", "failure", "gate", "listener", "task", "up",
    )  # fmt: skip

    def __init__(
        self, gate: Gate, listener: Door, client: socket, upstream: socket, entry: Entry, *, watched: bool
    ) -> None:
        decision, inspector = entry.decision, listener.task.inspector
        assert decision is not None, "a connection that is read was allowed"
        assert inspector is not None, "whoever reads was asked"
        self.gate = gate
        self.listener = listener
        self.task = listener.task
        self.entry = entry
        self.decision: Decision = decision
        self.failure: tuple[Reason, str] | None = None  # why the destination cannot be spoken to
        self.up: TlsEnd | None = None  # the destination's side
        self.down: TlsEnd | None = None  # the client's
        self._inspector: Inspector = inspector
        self._client: socket | None = client
        self._upstream = upstream
        self._fds = client.fileno(), upstream.fileno()
        self._reader: OpeningReader | None = OpeningReader(self.task.policy.limits)
        self._alpn: tuple[bytes, ...] = ()
        self._selected = b""
        self._rest = b""
        seconds = self.task.policy.limits.total_seconds
        self._deadline: Timer | None = gate.reactor.after(seconds, self._too_slow, self)
        reactor = gate.reactor
        reactor.watch(self._fds[1], self)
        if watched:
            reactor.table[self._fds[0]] = self
        else:
            reactor.watch(self._fds[0], self)

    def begin(self, rest: bytes, early: bytes) -> None:
        """Begin; `rest` came from the client with its request, `early` from the destination."""
        if early:
            self._refuse(Reason.NOT_INSPECTABLE, None)  # it spoke first: no TLS
            return
        if rest:
            self._hear(rest)
        if self._client is not None:
            self.gate.reactor.again(self, self._fds[0], IN | ENDED)

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the two sockets."""
        if self._client is None:
            return
        try:
            if fd == self._fds[0]:
                if self.down is not None:
                    self.down.wake(mask)
                    if mask & OUT:
                        self.down.outlet.flush()
                    self._shake_client()
                else:
                    self._read_hello()
            elif self.up is not None and self.failure is None:
                self.up.wake(mask)
                if mask & OUT:
                    self.up.outlet.flush()
                if self.down is None:
                    self._shake_upstream()
        except OSError:
            self._close(Reason.CLIENT_GONE)

    # The ClientHello.

    def _read_hello(self) -> None:
        client = self._client
        while self._reader is not None and client is not None:
            try:
                data = client.recv(READ)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close(Reason.CLIENT_GONE)
                return
            self._hear(data)

    def _hear(self, data: bytes) -> None:
        reader = self._reader
        assert reader is not None, "the hello is read once"
        try:
            opening = reader.feed(data)
        except WireError as error:
            self._refuse(error.reason, reader.speaks_so_far)
            return
        if opening is not None:
            self._reader = None
            self._rest = bytes(reader.held)
            self._judge(opening)
        elif reader.speaks_so_far not in {None, Speaks.TLS, Speaks.HTTP}:
            self._refuse(Reason.NOT_INSPECTABLE, reader.speaks_so_far)

    def _judge(self, opening: Opening) -> None:
        hello = opening.hello
        if hello is None:
            self._refuse(Reason.NOT_INSPECTABLE, opening.speaks)
            return
        destination = self.decision.destination
        strict = self.task.policy.tls == "strict"
        reason = opening_verdict(opening, destination, strict=strict and not destination.host.is_literal)
        if reason is None and hello.sni is not None and destination.host.is_literal:
            reason = Reason.SNI_MISMATCH  # the authority of addresses signs for no name
        if reason is not None:
            self._refuse(reason, opening.speaks)
            return
        offered = self._inspector.offers(hello.alpn)
        if offered is None:
            self._refuse(Reason.NOT_INSPECTABLE, Speaks.TLS, tls_alert(NO_APPLICATION_PROTOCOL))
            return
        self.entry.detail = "tls" if hello.sni is not None else "tls-no-sni"
        self._alpn = offered
        self.up = TlsEnd(self.gate.reactor, self._upstream, self._inspector.upstream(destination, offered))
        self._shake_upstream()

    # The handshakes.

    def _shake_upstream(self) -> None:
        up = self.up
        assert up is not None, "it is made with the hello"
        try:
            if not up.shake():
                return
        except OSError:
            self.failure = up.tls.why()
            self.entry.detail = self.failure[1]
        self._meet_client(up)

    def _meet_client(self, up: TlsEnd) -> None:
        selected = self._selected = up.tls.selected if self.failure is None else self._without_upstream()
        client = self._client
        assert client is not None, "nothing has ended"
        try:
            tls = self._inspector.client(self.decision.destination, selected)
        except OSError:
            self._refuse(Reason.NOT_INSPECTABLE, Speaks.TLS)
            return
        self.down = TlsEnd(self.gate.reactor, client, tls)
        tls.feed(self._rest)
        self._rest = b""
        self._shake_client()

    def _without_upstream(self) -> bytes:
        # What is told in HTTP/1.1, if the client speaks that.
        return b"" if not self._alpn else b"http/1.1" if b"http/1.1" in self._alpn else self._alpn[0]

    def _shake_client(self) -> None:
        down, client = self.down, self._client
        assert down is not None, "it is made before it is told of"
        try:
            if not down.shake():
                return
        except OSError:
            # It does not trust the authority, or went away: the destination has heard no request.
            self.entry.detail = down.tls.why()[1]
            self._close(Reason.CLIENT_GONE)
            return
        assert client is not None, "nothing has ended"
        self._client = None
        self._disarm()
        up = self.up
        assert up is not None, "the destination's handshake came first"
        exchange: InnerExchange | InnerStreams
        if self._selected == H2:
            from tidegate.gate.inner_streams import InnerStreams

            exchange = InnerStreams(self, client, self._upstream, down, up)
        else:
            from tidegate.gate.inner_exchange import InnerExchange

            exchange = InnerExchange(self, client, self._upstream, down, up)
        for fd in self._fds:
            self.gate.reactor.table[fd] = exchange
        if self.failure is not None:
            exchange.drop_origin()
        exchange.begin()

    # Ends.

    def _refuse(self, reason: Reason, speaks: Speaks | None, reply: bytes = b"") -> None:
        decision = self.decision.refuse(reason, fix="")
        self.entry.decision = decision
        if not reply and speaks is Speaks.TLS:
            reply = refusal_alert(reason)
        elif not reply and speaks is Speaks.HTTP:
            reply = refusal_response(reason, decision.sentence())
            self.entry.status = reason.status
        client = self._client
        if client is None:
            return
        self._let_go()
        self.entry.write(How.REFUSED, reason)
        try:
            client.send(reply)
        except OSError:
            client.close()
            self.listener.left(self._fds[0])
            return
        self.gate.linger(self.listener, client, watched=True)

    def _too_slow(self) -> None:
        self._deadline = None
        if self.up is None or self.down is not None:
            self._close(Reason.HEADER_TIMEOUT)
            return
        self.failure = Reason.UPSTREAM_TIMEOUT, "its TLS handshake does not end"
        self._deadline = self.gate.reactor.after(self.task.policy.limits.header_seconds, self._too_slow, self)
        self._meet_client(self.up)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _let_go(self) -> None:
        self._client = None
        self._disarm()
        for fd in self._fds:
            self.gate.reactor.table.pop(fd, None)
        self._upstream.close()

    def _close(self, reason: Reason) -> None:
        client = self._client
        if client is not None:
            self._let_go()
            self.entry.write(How.REFUSED, self.failure[0] if self.failure is not None else reason)
            client.close()
            self.listener.left(self._fds[0])

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending, or the operator cuts it."""
        self._close(reason)

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        self._close(why_broken(error))
