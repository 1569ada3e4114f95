"""Plain HTTP through the gate: requests in absolute form, one after the other on a client's connection.

Rules of the file:

* Each request is judged on its own, also the hundredth on a connection (GAT-3).
* Heads are read strictly and written anew; bodies pass as they come, validated, with bounded memory both ways: what
  the receiver has not taken stops the sender (GAT-4, GAT-5).
* Interim answers are relayed, so is a final answer that comes before the upload has ended; then the connection
  closes after it, and what is still uploaded is thrown away for a moment (B46, B47).
* A connection to an origin is used again only by this client, for the same destination, under the same
  surroundings; every new one resolves and checks anew (B22). One that fails unused is retried once, where repeating the
  request is harmless (RFC 9110 section 9.2.2).
* 101 only for a WebSocket that was asked for and is accepted in the right form; then it is a tunnel.

The answer's side is in answer.py. Sources: RFC 9110, RFC 9112, RFC 6455.
"""

from __future__ import annotations

from _socket import MSG_PEEK, socket

from tidegate.gate.answer import Answering
from tidegate.gate.connection import READ, Client, render
from tidegate.gate.outlet import Outlet
from tidegate.gate.paths import path_allowed
from tidegate.gate.reactor import ENDED, IN, OUT
from tidegate.gate.record import Entry
from tidegate.gate.states import Stage
from tidegate.gate.tunnel import Tunnel
from tidegate.gate.way import Way
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.wire.authority import absolute_form, absolute_target
from tidegate.wire.body import make_body
from tidegate.wire.errors import WireError
from tidegate.wire.framing import request_framing
from tidegate.wire.headers import keeps_alive, offers_websocket, request_head_bytes
from tidegate.wire.http1 import head_end, parse_request_head
from tidegate.wire.refusal import refusal_response, refuse_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.addresses.surroundings import Surroundings
    from tidegate.gate.gate import Gate
    from tidegate.gate.listener import Listener
    from tidegate.gate.reactor import Timer
    from tidegate.gate.task import Meter, Plan
    from tidegate.gate.upstream import Proxy
    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.wire.body import Body
    from tidegate.wire.http1 import RequestHead

BETWEEN = 120.0  # seconds a client may be silent between two requests
FRESH = 1.0  # seconds for which an idle origin is taken to be there still, for requests that cannot be repeated
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})  # RFC 9110 section 9.2.2, without TRACE
_INPUT = IN | ENDED


class Origin:
    """One connection to an origin (or to the upstream proxy on its behalf)."""

    __slots__ = ("address", "around", "fd", "fresh", "outlet", "proxy", "sock", "target", "used_at")

    def __init__(
        self, outlet: Outlet, target: tuple[str, int], address: str, around: Surroundings, proxy: Proxy | None
    ) -> None:
        self.outlet = outlet
        self.sock = outlet.sock
        self.fd = outlet.sock.fileno()
        self.target = target
        self.address = address
        self.around = around
        self.proxy = proxy
        self.fresh = True
        self.used_at = 0.0


class Exchange:
    """A client's connection while plain requests are made on it. Owns both sockets."""

    __slots__ = (
        "answer", "body", "buffer", "client", "closed", "deadline", "decision", "entry", "fd", "gate", "head", "keep",
        "listener", "meter", "more", "origin", "path", "seen", "sock", "task", "touched", "watched", "way",
    )  # fmt: skip

    def __init__(self, gate: Gate, listener: Listener, sock: socket, *, watched: bool) -> None:
        self.gate = gate
        self.listener = listener
        self.task = listener.task
        self.sock = sock
        self.fd = sock.fileno()
        self.client = Outlet(gate.reactor, sock)
        self.closed = False
        self.buffer = b""  # of the client: the next request, or body not passed on yet
        self.seen = 0
        self.more = False  # the client's socket may hold bytes that no event will tell of again
        self.deadline: Timer | None = None
        self.touched = 0.0
        self.origin: Origin | None = None
        self.way: Way | None = None
        # Of the current request:
        self.entry: Entry | None = None
        self.head: RequestHead | None = None
        self.path = b""
        self.decision: Decision | None = None
        self.body: Body | None = None  # what of the upload is still to come
        self.answer: Answering | None = None
        self.keep = False
        self.meter: Meter | None = None
        self.watched = watched

    def first(self, head: RequestHead, rest: bytes) -> None:
        """Take over a connection with its first request."""
        reactor = self.gate.reactor
        self.buffer = rest
        self.more = True
        if self.watched:
            reactor.table[self.fd] = self
        else:
            self.watched = True
            reactor.watch(self.fd, self)
        self._request(head)

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on the client's or the origin's socket."""
        if fd == self.fd:
            if mask & OUT and self.client.blocked:
                self._client_takes()
            if mask & _INPUT and not self.closed:
                self.more = True
                self._client_says(mask)
        elif self.origin is not None and fd == self.origin.fd:
            if mask & OUT and self.origin.outlet.blocked:
                self._origin_takes()
            if mask & _INPUT and not self.closed and self.origin is not None:
                if self.answer is None:
                    self._drop_origin()  # it closed while idle, or speaks unasked
                elif not self.client.blocked:
                    self.answer.read(self.origin, mask & ENDED)

    # The client's side.

    def _client_says(self, mask: int) -> None:
        if self.head is None:
            self._read_head()
        elif self.body is not None and self.answer is not None:
            self.upload()
        elif mask & ENDED:
            self._look_gone()

    def _look_gone(self) -> None:
        try:
            data = self.sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            self.abort(Reason.CLIENT_GONE)
            return
        if not data and self.way is not None and self.way.stage is Stage.ASKING:
            self.abort(Reason.CLIENT_GONE)

    def _client_takes(self) -> None:
        try:
            drained = self.client.flush()
        except OSError:
            self.abort(Reason.CLIENT_GONE)
            return
        if drained and self.answer is not None:
            self.answer.resume()

    def next_request(self) -> None:
        """The last exchange is complete; the connection waits for the next request."""
        self.head = self.entry = self.decision = self.body = self.answer = None
        self.seen = 0
        self._arm(BETWEEN, self._silent)
        if self.buffer or self.more:
            self._read_head()

    def _read_head(self) -> None:
        limits = self.task.policy.limits
        while not self.closed and self.head is None:
            buffer = self.buffer
            if buffer:
                try:
                    end = head_end(buffer, self.seen, limits)
                    if end >= 0:
                        head = parse_request_head(buffer[:end], limits)
                        if head.method == "CONNECT":
                            self._hand_back()
                            return
                        self.buffer = buffer[end:]
                        self._request(head)
                        return
                except WireError as error:
                    self.malformed(error)
                    return
                if not self.seen:
                    self._arm(limits.header_seconds, self._too_slow)
                self.seen = len(buffer)
            if not self.more:
                return
            data = self._recv()
            if data is None:
                return
            if not data:
                self.close()
                return
            self.buffer = buffer + data

    def _recv(self) -> bytes | None:
        # None when there is nothing now; b"" at the end.
        try:
            data = self.sock.recv(READ)
        except BlockingIOError:
            self.more = False
            return None
        except OSError:
            self.abort(Reason.CLIENT_GONE)
            return None
        return data

    def _hand_back(self) -> None:
        # CONNECT on a connection that carried plain requests: it becomes what it would have been at first.
        self._disarm()
        self._drop_origin()
        self.closed = True
        client = Client(self.gate, self.listener, self.sock, watched=True)
        client.resume(self.buffer)

    def _silent(self) -> None:
        self.deadline = None
        self.close()

    def _too_slow(self) -> None:
        self.deadline = None
        entry = Entry(self.gate, self.task, None, "")
        entry.status = Reason.HEADER_TIMEOUT.status
        entry.write(How.REFUSED, Reason.HEADER_TIMEOUT)
        self._say_last(refusal_response(Reason.HEADER_TIMEOUT, Reason.HEADER_TIMEOUT.sentence))

    # From a request to an origin.

    def _request(self, head: RequestHead) -> None:
        self._disarm()
        self.head = head
        task, gate = self.task, self.gate
        try:
            framing = request_framing(head)
            destination, self.path = absolute_target(head)
            self.keep = keeps_alive(head)
            # What must not travel is found before anything is resolved or dialled.
            request_head_bytes(head, destination, self.path)
        except WireError as error:
            self.malformed(error)
            return
        plan = task.plan(destination)
        decision = self.decision = task.judge(plan, gate.surroundings())
        self.entry = Entry(gate, task, decision, head.method)
        if decision.verdict is Verdict.DENY:
            self.refused(decision, decision.reason, plan, ())
            return
        if not path_allowed(decision.rule, head.method, self.path):
            self.refused(decision.refuse(Reason.METHOD_NOT_ALLOWED, fix=""), Reason.METHOD_NOT_ALLOWED, None, ())
            return
        self.body = None if framing.empty else make_body(framing)
        if not self._reuse(destination, decision):
            self._drop_origin()
            way = self.way = Way(gate, task, plan, self, tunnel=False)
            way.start()

    def _reuse(self, destination: Destination, decision: Decision) -> bool:
        origin, head = self.origin, self.head
        if (
            origin is None
            or head is None
            or decision.verdict is not Verdict.ALLOW
            or origin.target != (destination.host.bracketed, destination.port)
            or origin.around is not self.gate.surroundings()
        ):
            return False
        repeatable = self.body is None and head.method in _REPEATABLE
        if not repeatable and self.gate.reactor.now - origin.used_at > FRESH:
            return False
        origin.fresh = False
        self._send_request(origin)
        return True

    def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
        """The origin is connected."""
        way, self.way = self.way, None
        entry = self.entry
        assert entry is not None, "a way belongs to a request"
        entry.decision = self.decision = decision
        destination = decision.destination
        proxy = way.proxy if way is not None else None
        reactor = self.gate.reactor
        origin = self.origin = Origin(
            Outlet(reactor, sock),
            (destination.host.bracketed, destination.port),
            address,
            self.gate.surroundings(),
            proxy if proxy is not None and proxy.plain else None,
        )
        reactor.watch(origin.fd, self)
        if early:
            self.fail(Reason.UPSTREAM_RESPONSE)
            return
        self._send_request(origin)

    def _send_request(self, origin: Origin) -> None:
        head, entry, decision = self.head, self.entry, self.decision
        assert head is not None, "an origin serves a request"
        assert entry is not None, "an origin serves a request"
        assert decision is not None, "an origin serves a request"
        entry.address = origin.address
        origin.used_at = self.gate.reactor.now
        self.meter = self.task.meter(decision)
        websocket = offers_websocket(head, request_framing(head))
        destination, path = decision.destination, self.path
        if origin.proxy is None:
            data = request_head_bytes(head, destination, path, websocket=websocket)
        else:
            authorization = origin.proxy.authorization
            extra = ((b"Proxy-Authorization", authorization),) if authorization else ()
            target = absolute_form(destination, path)
            data = request_head_bytes(head, destination, target, websocket=websocket, extra=extra)
        self.answer = Answering(self, head, websocket=websocket, proxied=origin.proxy is not None)
        seconds = self.task.policy.limits.idle_seconds
        if seconds:
            self.touched = self.gate.reactor.now
            self._arm(seconds, self._idle)
        if not self._send_up(origin, data):
            return
        if self.body is not None:
            self.upload()

    def _send_up(self, origin: Origin, data: bytes | memoryview) -> bool:
        # Whether more may be sent now.
        if self.meter is not None and not self.meter.spend(len(data)):
            self.fail(Reason.BYTES_LIMIT)
            return False
        entry = self.entry
        if entry is not None:
            entry.up += len(data)
        try:
            return origin.outlet.send(data)
        except OSError:
            # It takes no more. It may have answered before it closed: reading finds out.
            if self.body is not None:
                self.body = None
                self.keep = False
            if self.answer is not None:
                self.answer.read(origin)
            return False

    def upload(self) -> None:
        """Pass on what the client sends of its body, as far as the origin takes it."""
        while True:
            body, origin = self.body, self.origin
            if body is None or origin is None or self.closed or origin.outlet.blocked:
                return
            data = self.buffer
            if not data:
                received = self._recv() if self.more else None
                if received is None:
                    return
                if not received:
                    self.abort(Reason.CLIENT_GONE)
                    return
                data = received
            self.touched = self.gate.reactor.now
            try:
                used, spans = body.feed(data)
            except WireError as error:
                self.malformed(error)
                return
            self.buffer = data[used:]
            if body.done:
                self.body = None
            if spans and not self._send_up(origin, spans[0] if len(spans) == 1 else b"".join(spans)):
                return

    def _origin_takes(self) -> None:
        origin = self.origin
        if origin is None:
            return
        try:
            drained = origin.outlet.flush()
        except OSError:
            self.body = None
            self.keep = False
            if self.answer is not None:
                self.answer.read(origin)
            return
        if drained and self.body is not None:
            self.upload()

    # What the answer's side asks for.

    def retry(self) -> bool:
        """Whether the request goes out once more: an idle origin closed just when it was used again."""
        origin, head, decision = self.origin, self.head, self.decision
        if origin is None or origin.fresh or head is None or decision is None or self.entry is None:
            return False
        if head.method not in _REPEATABLE or not request_framing(head).empty:
            return False
        self._drop_origin()
        self.answer = None
        way = self.way = Way(self.gate, self.task, self.task.plan(decision.destination), self, tunnel=False)
        way.start()
        return True

    def complete(self, *, keep_origin: bool, close: bool) -> None:
        """The answer has been passed on."""
        entry = self.entry
        if entry is not None:
            decision = entry.decision
            entry.write(How.FORWARDED, decision.reason if decision is not None else Reason.ALLOWED)
        self.entry = None
        if not keep_origin or self.body is not None:
            self._drop_origin()
        elif self.origin is not None:
            self.origin.used_at = self.gate.reactor.now
        if close or self.body is not None:
            self._say_last(b"")
        else:
            self._disarm()
            self.next_request()

    def switch(self, rest: bytes) -> None:
        """A WebSocket was accepted: the two connections are a tunnel now."""
        origin, entry = self.origin, self.entry
        assert origin is not None, "a 101 comes from somewhere"
        assert entry is not None, "a 101 comes from somewhere"
        self._disarm()
        self.closed = True
        self.origin = None
        reactor = self.gate.reactor
        up, down = entry.up, entry.down
        tunnel = Tunnel(self.gate, self.listener, self.sock, origin.sock, entry)
        tunnel.how = How.FORWARDED
        tunnel.up.moved, tunnel.down.moved = up, down
        for fd in (self.fd, origin.fd):
            reactor.table[fd] = tunnel
        if rest:
            tunnel.down.offer(rest)
        if self.buffer:
            tunnel.up.offer(self.buffer)
        for fd in (self.fd, origin.fd):
            reactor.again(tunnel, fd, IN | ENDED)

    def fail(self, reason: Reason) -> None:
        """The origin, or what lies before it, did not give an answer that can be passed on."""
        answer = self.answer
        if answer is not None and answer.begun:
            self.abort(reason)
            return
        decision = self.decision
        if decision is None:
            self.abort(reason)
        else:
            self.refused(decision, reason, None, ())

    def refused(self, decision: Decision, reason: Reason, plan: Plan | None, tried: tuple[str, ...]) -> None:
        """The policy, a person, an address or the network said no."""
        self.way = None
        head, entry = self.head, self.entry
        body = head is None or head.method != "HEAD"
        if decision.verdict is Verdict.ASK and decision.reason is not reason:
            decision = decision.replace(reason=reason)
        reply = plan.refusal if plan is not None and body else b""
        if not reply:
            reply = render(decision, reason, tried, body=body)
            if plan is not None and body:
                plan.refusal = reply
        if entry is not None:
            entry.decision = decision
            if tried:
                entry.address = tried[-1]
            entry.status = reason.status
            entry.write(How.REFUSED, reason)
        self._say_last(reply)

    def malformed(self, error: WireError) -> None:
        """What the client sent is no request, or no body."""
        answer = self.answer
        if answer is not None and answer.begun:
            self.abort(error.reason)
            return
        head = self.head
        entry = self.entry or Entry(self.gate, self.task, None, head.method if head is not None else "")
        entry.host = error.raw
        entry.status = error.reason.status
        entry.write(How.REFUSED, error.reason)
        self._say_last(refuse_error(error, body=head is None or head.method != "HEAD"))

    # Ends.

    def _say_last(self, reply: bytes) -> None:
        if self.closed:
            return
        try:
            if reply:
                self.client.send(reply)
        except OSError:
            self.close()
            return
        if self.client.blocked:
            # The answer before it is still being read: rather cut it than keep what is refused.
            self.close()
            return
        self._leave()
        self.gate.linger(self.listener, self.sock, watched=True)

    def _leave(self) -> None:
        self.closed = True
        self._disarm()
        way, self.way = self.way, None
        if way is not None:
            way.cancel()
        self._drop_origin()
        self.gate.reactor.table.pop(self.fd, None)
        self.answer = None

    def abort(self, reason: Reason) -> None:
        """Stop in the middle: both sides are closed, so that neither takes half a message for a whole one."""
        entry = self.entry
        if entry is not None:
            begun = self.answer is not None and self.answer.begun
            entry.write(How.FORWARDED if begun else How.REFUSED, reason)
        self.close()

    def close(self) -> None:
        """Close both sides without a word."""
        if not self.closed:
            self._leave()
            self.sock.close()
            self.listener.left()

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending."""
        self.abort(reason)

    def broken(self, _error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        self.abort(Reason.INTERNAL)

    def _drop_origin(self) -> None:
        origin, self.origin = self.origin, None
        if origin is not None:
            self.gate.reactor.table.pop(origin.fd, None)
            origin.sock.close()

    def _arm(self, seconds: float, callback: object) -> None:
        self._disarm()
        self.deadline = self.gate.reactor.after(seconds, callback, self)  # type: ignore[arg-type]

    def _disarm(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _idle(self) -> None:
        seconds = self.task.policy.limits.idle_seconds
        left = self.touched + seconds - self.gate.reactor.now
        self.deadline = None
        if left <= 0:
            self.abort(Reason.IDLE_TIMEOUT)
        else:
            self._arm(left, self._idle)
