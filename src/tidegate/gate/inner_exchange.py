"""HTTP/1.1 inside TLS, read on both sides: requests judged one by one, as in clear text (INS-3, INS-4, INS-6, GAT-3).

Rules of the file:

* It is the exchange of plain HTTP, with the same parser, framing and limits, over TLS ends in place of sockets. What
  differs: the destination is the connection's, whatever a request says; there is one connection to it, and both end
  together; what leads around the gate (Alt-Svc) is taken out of answers.
* While the client is silent that one connection may be let go (idle_ends.py); its next request makes it again first.
* Each request is a line of the journal. A connection without one is a line of its own.
* Where the destination is an agent's model service, a request is looked at first, with its body (inner_guard.py).
* Where the task has secrets, a stand-in becomes its value while the head is made ready, or the request is refused; in
  what a host of a secret answers, values become stand-ins again (INS-5).
* A request that cannot be sent because the destination ended an idle connection is not answered: the connection
  ends, as it would have without us, and the client tries again.
"""

from __future__ import annotations

from tidegate.gate.forward import Exchange
from tidegate.gate.idle_ends import made_once
from tidegate.gate.inner_guard import HeldBody, look_at
from tidegate.gate.inner_tunnel import InnerTunnel
from tidegate.gate.origin import Origin
from tidegate.gate.reactor import IN, OUT
from tidegate.gate.record import Entry
from tidegate.gate.redial import Redial, dial_again
from tidegate.gate.request import InnerRequest
from tidegate.gate.tls_end import TlsEnd
from tidegate.gate.upload import body_of, look_through
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.wire.by_connection import by_connection
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import parse_request_head
from tidegate.wire.refusal import refusal_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.inspected import Inspected
    from tidegate.gate.request import Request
    from tidegate.gate.task import Plan
    from tidegate.model.decision import Decision
    from tidegate.model.seams import Look
    from tidegate.wire.http1 import ResponseHead

KNOWN = 32  # heads of one connection that come again and again
KNOWN_BYTES = 1024
ALT_SVC = frozenset((b"alt-svc",))  # RFC 7838: another host, port or protocol than the one that was judged


class InnerExchange(Exchange):
    """A client's connection inside TLS, from the end of both handshakes on."""

    __slots__ = (
        "_asked", "_ends", "_held", "_keeps", "_known", "_look", "cleaner", "down", "failure",
        "made_again", "opened", "up",
    )  # fmt: skip

    how = How.INSPECTED
    pinned = True
    without = ALT_SVC

    def __init__(self, begun: Inspected, client: socket, upstream: socket, down: TlsEnd, up: TlsEnd) -> None:
        super().__init__(begun.gate, begun.listener, client, watched=True)
        self.client = down.outlet
        self.source = down
        self.down = down
        self.up: TlsEnd | None = up  # None once it was let go
        self.opened = begun.entry  # of the connection; what says whether it is cut
        self.failure = begun.failure
        self.decision = begun.decision
        self._asked = False
        self.made_again = False  # its connection to the destination
        self._ends = self.task.idle_ends
        self._keeps = made_once(begun.decision)  # its connection to the destination is never let go
        self._look: Look | None = None  # of the current request, where its destination is guarded
        self._held: HeldBody | None = None  # while its body comes in
        self._known: dict[bytes, InnerRequest] = {}
        destination = begun.decision.destination
        secrets = self.task.secrets
        self.cleaner = None if secrets is None else secrets.cleaner(destination.host.text, destination.port)
        gate = self.gate
        origin = self.origin = Origin(up.outlet, destination, begun.entry.address, gate.surroundings(), None, None)
        origin.sock = upstream
        origin.source = up

    def begin(self) -> None:
        """Wait for requests, and read what is there."""
        self.more = True
        super().next_request()
        self._wait()

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the sockets."""
        up = self.up
        if fd == self.fd:
            self.down.wake(mask)
        elif up is not None:
            up.wake(mask)
            if self.answer is None and self._only_tls_speaks(up):
                mask &= OUT
        Exchange.ready(self, fd, mask)  # hot: super() makes an object each time, here and below
        up = self.up
        if up is None:
            return  # it was let go, and the next request makes another
        if up.ended and self.answer is not None and self.origin is not None and not self.client.blocked:
            self.answer.read(self.origin)  # its end came with its last bytes, and its socket may stay open
        if self.origin is None and self.request is None and not self.closed and self.failure is None:
            self._over()  # the destination ended the idle connection

    def _only_tls_speaks(self, up: TlsEnd) -> bool:
        # Session tickets and key updates come while no answer is awaited; they are no answer nobody asked for.
        try:
            up.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def receive(self) -> bytes | None:
        """Read from the client."""
        data = Exchange.receive(self)
        if self.down.ended:
            self.ending = True
            self.more = self.more or bool(data)  # no event tells of the end that was read with these bytes
        return data

    # A request.

    def _take_head(self, raw: bytes, rest: bytes) -> None:
        self._ends.works(self)
        opened = self.opened.decision
        assert opened is not None, "a connection that is read was allowed"
        request = self._known.get(raw)
        if request is None:
            request = InnerRequest(parse_request_head(raw, self.task.policy.limits), opened.destination)
            request.why_not = request.why_refused(opened)
            if b"authorization" in request.head.names:
                self._keeps = by_connection(request.head.values(b"authorization")) or self._keeps
            usual = request.framing.empty and not request.secret and self.task.secrets is None
            if usual and len(raw) <= KNOWN_BYTES:
                if len(self._known) >= KNOWN:
                    self._known.clear()
                self._known[raw] = request
        self.buffer = rest
        self._ask_inside(request)

    def _ask_inside(self, request: InnerRequest) -> None:
        if self.deadline is not None:
            self.disarm()
        self._asked = True
        decision = self.decision = self.opened.decision
        assert decision is not None, "a connection that is read was allowed"
        self.request = request
        self.keep = request.keep
        entry = self.entry = Entry(self.gate, self.task, decision, request.method)
        entry.address = self.opened.address
        entry.detail = self.opened.detail
        if request.why_not is not None:
            self.refused(decision.refuse(request.why_not, fix=""), request.why_not, None, ())
            return
        if self.failure is not None:
            self.not_sent(*self.failure)
            return
        if self.up is None:
            dial_again(self)
        else:
            self._go_on(request)

    def _go_on(self, request: InnerRequest) -> None:
        origin = self.origin
        if origin is None:
            self.abort(Reason.UPSTREAM_CLOSED)
            return
        look = self._look = look_at(self, request)
        if look is None:
            self._pass_on(request, origin)
        elif look.why:
            self._guarded(look)
        elif look.body:
            self._held = HeldBody(self, request, look)
            self._held.pull()
        else:
            self._pass_on(request, origin)

    def looked(self) -> None:
        """The body of a guarded request is whole, or will not be taken."""
        look, held, request = self._look, self._held, self.request
        assert look is not None, "it was begun"
        assert held is not None, "it was begun"
        assert isinstance(request, InnerRequest), "it was begun"
        held.stop()
        self._held = None
        content = look.done()
        if look.why:
            self._guarded(look)
        elif self.origin is None:
            self.abort(Reason.UPSTREAM_CLOSED)  # it ended while the body came; the client tries again
        else:
            request.carry(content)
            self._pass_on(request, self.origin)

    def _guarded(self, look: Look) -> None:
        decision, entry, request = self.decision, self.entry, self.request
        assert decision is not None, "a connection that is read was allowed"
        assert entry is not None, "a request is recorded"
        reason = look.reason
        entry.decision = self.decision = decision = decision.refuse(reason, fix="")
        entry.path = look.path
        entry.status = reason.status
        entry.write(How.REFUSED, reason)
        said = look.answer(f"tidegate: {decision.sentence()} ({look.why})")
        body = request is None or request.method != "HEAD"
        self.say_last(refusal_response(reason, "", body=body, told_as=said))

    def _pass_on(self, request: InnerRequest, origin: Origin) -> None:
        decision = self.decision
        assert decision is not None, "a connection that is read was allowed"
        secrets = self.task.secrets
        if secrets is not None:
            if self.cleaner is not None and request.websocket:
                self._not_as_it_is(Reason.NOT_INSPECTABLE, "a WebSocket cannot be kept free of a secret's value")
                return
            try:
                request.swap(secrets, self.cleaner)
            except WireError as error:
                self._not_as_it_is(error.reason, error.detail)
                return
        try:
            if request.content:
                look_through(request, decision, request.content)
                request.out += request.content
            else:
                self.body = body_of(request, decision)
        except WireError as error:
            self.malformed(error)
            return
        self._send_request(origin, request, decision)

    def _client_says(self, mask: int) -> None:
        if self._held is not None:
            self._held.pull()
        else:
            super()._client_says(mask)

    def _not_as_it_is(self, reason: Reason, detail: str) -> None:
        # The destination has heard nothing of this request (INS-5).
        decision, entry = self.decision, self.entry
        assert decision is not None, "a connection that is read was allowed"
        assert entry is not None, "a request is recorded"
        entry.decision = self.decision = decision.refuse(reason, fix="")
        self.not_sent(reason, detail)

    def next_request(self) -> None:
        """The last exchange is complete; the connection waits for the next request."""
        if self._look is not None or self._held is not None:
            self._let_go()
        if self.origin is not None:
            self.origin.fresh = False
        Exchange.next_request(self)
        self._wait()

    def complete(self, *, keep_origin: bool, close: bool) -> None:
        """The answer has been passed on."""
        up = self.up
        assert up is not None, "an answer comes from somewhere"
        if self.origin is not None and self.origin.fresh:
            up.tls.worked()
        keep_origin = keep_origin and not up.ended
        Exchange.complete(self, keep_origin=keep_origin, close=close or not keep_origin)

    def retry(self) -> bool:
        """Never: the connection was verified, and another one would have to be."""
        return False

    def fail(self, reason: Reason) -> None:
        """The destination did not give an answer that can be passed on."""
        answer, origin = self.answer, self.origin
        if reason is Reason.UPSTREAM_CLOSED and (answer is None or not answer.begun):
            up = self.up
            why, detail = up.tls.why() if up is not None else (reason, "")
            if why is Reason.CLIENT_CERTIFICATE or (up is not None and up.tls.alerted):
                self.not_sent(why, detail)
                return
            if origin is not None and not origin.fresh and self.body is None and self._look is None:
                self.abort(reason)  # see the rules of the file
                return
        super().fail(reason)

    def switch(self, rest: bytes) -> None:
        """A WebSocket was accepted: what follows is passed on as it is."""
        origin, entry = self.origin, self.entry
        assert origin is not None, "a 101 comes from somewhere"
        assert entry is not None, "a 101 comes from somewhere"
        self.stop_clocks()
        self.closed = True
        self.origin = None
        InnerTunnel(self, origin.sock, entry, up=self.buffer, down=rest)

    # A connection to the destination that is let go while the client is silent, and made again (idle_ends.py).

    def _wait(self) -> None:
        if self.request is None and self.origin is not None and not self._keeps and not self.closed:
            self._ends.waits(self, self.gate.reactor)

    def heard(self, head: ResponseHead) -> None:
        """The head of an answer: it may say that the destination knows its client by the connection."""
        if b"www-authenticate" in head.names:
            self._keeps = by_connection(head.values(b"www-authenticate")) or self._keeps

    def let_go(self) -> None:
        """Close the connection to the destination, unless something is under way on either."""
        up, origin = self.up, self.origin
        idle = self.request is None and not self.buffer and not self.client.blocked and not self.closed
        if up is not None and origin is not None and idle and not origin.outlet.blocked:
            up.part()
            self.drop_origin()
            self.up = None
            self._known.clear()

    def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
        """The destination is connected again, under what the policy says of it now."""
        way, entry = self.way, self.entry
        assert entry is not None, "a request is recorded"
        self.opened.decision = entry.decision = self.decision = decision
        self.opened.address = entry.address = address
        self._keeps = made_once(decision) or self._keeps
        assert isinstance(way, Redial), "nothing else sets out here"
        way.shake(sock, early)

    def why_not(self, decision: Decision) -> Reason | None:
        """Why the request that waits for it does not pass under what the policy says now."""
        request = self.request
        assert isinstance(request, InnerRequest), "it waits"
        return request.why_refused(decision)

    def failed(self, reason: Reason, detail: str) -> None:
        """TLS with the destination came to nothing."""
        if self.entry is not None:
            self.entry.detail = detail
        self.not_sent(reason, detail)

    def joined(self, decision: Decision, sock: socket, up: TlsEnd) -> None:
        """It is connected, verified, and speaks what the client speaks: go on with the request."""
        self.way = None
        self.made_again = True
        request = self.request
        assert isinstance(request, InnerRequest), "it waited for this"
        self._known.clear()  # they were judged by what let the first connection through
        request.why_not = None
        gate = self.gate
        origin = Origin(up.outlet, decision.destination, self.opened.address, gate.surroundings(), None, None)
        origin.sock = sock
        origin.source = up
        self.up, self.origin = up, origin
        gate.reactor.table[origin.fd] = self
        gate.reactor.again(self, origin.fd, IN)  # what came with the end of the handshake was told of once
        self._go_on(request)

    # Ends.

    def _over(self) -> None:
        if not self.client.blocked:
            self.say_last(b"")
        else:
            self.close()

    def _let_go(self) -> None:
        look, self._look = self._look, None
        if look is not None:
            look.let_go()
        held, self._held = self._held, None
        if held is not None:
            held.stop()

    def _leave(self) -> None:
        self._let_go()
        self._ends.works(self)
        if not self._asked:
            self._asked = True
            self.opened.write(self.how, self.failure[0] if self.failure is not None else Reason.ALLOWED)
        super()._leave()

    def _ask(self, plan: Plan, request: Request) -> None:
        raise NotImplementedError("requests inside TLS go to the destination of their connection")
