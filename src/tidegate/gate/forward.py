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

What goes up is in origin.py, the answer's side in answer.py, and how it ends in ends.py.
Sources: RFC 9110, RFC 9112, RFC 6455.
"""

from __future__ import annotations

from _socket import MSG_PEEK, SO_ERROR, SOL_SOCKET, socket

from tidegate.gate.answer import Answering
from tidegate.gate.connection import READ, Client, has_ended
from tidegate.gate.ends import Ends
from tidegate.gate.origin import Origin, origin_takes, post_up, send_up, upload
from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import ENDED, IN, OUT, remaining
from tidegate.gate.record import Entry
from tidegate.gate.request import Request
from tidegate.gate.states import Stage
from tidegate.gate.tunnel import Tunnel
from tidegate.gate.upload import body_of
from tidegate.gate.way import Way
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import head_end, parse_request_head
from tidegate.wire.refusal import refusal_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.task import Plan
    from tidegate.model.decision import Decision
    from tidegate.model.seams import Secrets
    from tidegate.wire.http1 import RequestHead

BETWEEN = 120.0  # seconds a client may be silent between two requests
_INPUT = IN | ENDED


class Exchange(Ends):
    """A client's connection while plain requests are made on it. Owns both sockets."""

    __slots__ = ()

    def first(self, head: RequestHead, rest: bytes) -> None:
        """Take over a connection with its first request."""
        reactor = self.gate.reactor
        self.buffer = rest
        self.more = True
        if self.watched:
            reactor.table[self.fd] = self
            self.ending = True  # for all we know: an event may have told the one before
        else:
            self.watched = True
            reactor.watch(self.fd, self)
        self._judge(head, b"")

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on the client's or the origin's socket."""
        if fd == self.fd:
            if mask & OUT and self.client.blocked:
                self._client_takes()
            if mask & _INPUT and not self.closed:
                self.more = True
                if mask & ENDED:
                    self.ending = True
                self._client_says(mask)
        elif self.origin is not None and fd == self.origin.fd:
            if mask & OUT and self.origin.outlet.blocked:
                origin_takes(self, self.origin)
            if mask & _INPUT and not self.closed and self.origin is not None:
                if mask & ENDED:
                    self.origin.ending = True  # told once: whoever reads up to the end of an answer does not see it
                if self.answer is None:
                    self.drop_origin()  # it closed while idle, or speaks unasked
                elif not self.client.blocked:
                    self.answer.read(self.origin, through=False)

    # The client's side.

    def _client_says(self, mask: int) -> None:
        if self.request is None:
            self._read_head()
        elif self.body is not None and self.answer is not None:
            upload(self)
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
        way = self.way
        if way is not None and way.stage is Stage.ASKING:
            gone = has_ended(self.sock)  # nobody is asked for one that says no more, though bytes of its body wait
        else:
            # The end of a client's bytes alone is none: it may still read. A reset behind the end shows only here.
            gone = not data and bool(self.sock.getsockopt(SOL_SOCKET, SO_ERROR))
        if gone:
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
        self.request = self.entry = self.decision = self.body = self.answer = None
        self.seen = 0
        self.touched = self.gate.reactor.now
        if self.between is None:
            self.between = self.gate.reactor.after(BETWEEN, self._silent, self)
        if self.buffer or self.more:
            self._read_head()

    def _read_head(self) -> None:
        limits = self.task.policy.limits
        while not self.closed and self.request is None:
            buffer = self.buffer
            if buffer:
                try:
                    end = head_end(buffer, self.seen, limits)
                    if end >= 0:
                        self._take_head(buffer[:end], buffer[end:])
                        return
                except WireError as error:
                    self.malformed(error)
                    return
                if not self.seen:
                    self.arm(limits.header_seconds, self._too_slow)
                self.seen = len(buffer)
            if not self.more:
                return
            data = self.receive()
            if data is None:
                return
            if not data:
                self.close()
                return
            self.buffer = buffer + data

    def _take_head(self, raw: bytes, rest: bytes) -> None:
        task = self.task
        known = task.requests.get(raw)
        if known is not None:
            self.buffer = rest
            self._ask(known[0], known[1])
            return
        head = parse_request_head(raw, task.policy.limits)
        if head.method == "CONNECT":
            self._hand_back()
            return
        self.buffer = rest
        self._judge(head, raw)

    def receive(self) -> bytes | None:
        """Read from the client: None when there is nothing now, b"" at its end."""
        try:
            data = self.source.recv(READ)
        except BlockingIOError:
            self.more = False
            return None
        except OSError:
            self.abort(Reason.CLIENT_GONE)
            return None
        if len(data) < READ and not self.ending:
            self.more = False  # a short read has emptied the socket (epoll(7))
        return data

    def _hand_back(self) -> None:
        # CONNECT on a connection that carried plain requests: it becomes what it would have been at first.
        self.client.settle()
        if self.client.blocked:
            self.close()  # it asks on and does not read
            return
        self.stop_clocks()
        self.drop_origin()
        self.closed = True
        client = Client(self.gate, self.listener, self.sock, watched=True)
        client.resume(self.buffer)

    def _silent(self) -> None:
        # One long timer for all requests of a connection: it looks whether there was one meanwhile.
        self.between = None
        left = self.touched + BETWEEN - self.gate.reactor.now
        if self.request is None and left <= 0:
            self.close()
        else:
            left = remaining(left, BETWEEN) if left > 0 else BETWEEN
            self.between = self.gate.reactor.after(left, self._silent, self)

    def _too_slow(self) -> None:
        self.deadline = None
        entry = Entry(self.gate, self.task, None, "")
        entry.status = Reason.HEADER_TIMEOUT.status
        entry.write(How.REFUSED, Reason.HEADER_TIMEOUT)
        self.say_last(refusal_response(Reason.HEADER_TIMEOUT, Reason.HEADER_TIMEOUT.sentence))

    # From a request to an origin.

    def _judge(self, head: RequestHead, raw: bytes) -> None:
        task = self.task
        try:
            request = Request(head)
        except WireError as error:
            self.malformed(error, head.method)
            return
        plan = task.plan(request.destination)
        if request.framing.empty and not request.secret:
            task.remember_request(raw, plan, request)
        self._ask(plan, request)

    def _ask(self, plan: Plan, request: Request) -> None:
        if self.deadline is not None:
            self.disarm()
        task, gate = self.task, self.gate
        self.request = request
        self.keep = request.keep
        around = gate.surroundings()
        decision = self.decision = task.judge(plan, around)
        self.entry = Entry(gate, task, decision, request.method)
        if decision.verdict is Verdict.DENY:
            self.refused(decision, decision.reason, plan, ())
            return
        why_not = request.why_refused(decision)
        if why_not is not None:
            self.refused(decision.refuse(why_not, fix=""), why_not, None, ())
            return
        if task.secrets is not None and (why := _misdirected(request, task.secrets)):
            self.entry.decision = self.decision = decision.refuse(Reason.SECRET_MISDIRECTED, fix="")
            self.not_sent(Reason.SECRET_MISDIRECTED, why)
            return
        try:
            self.body = body_of(request, decision)
        except WireError as error:
            self.malformed(error)
            return
        origin = self.origin
        if origin is not None and origin.fits(request, plan, decision, around, gate.reactor.now):
            origin.fresh = False
            self._send_request(origin, request, decision)
        else:
            self.drop_origin()
            way = self.way = Way(gate, task, plan, self, tunnel=False)
            way.start()

    def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
        """The origin is connected."""
        way, self.way = self.way, None
        entry, request = self.entry, self.request
        assert entry is not None, "a way belongs to a request"
        assert request is not None, "a way belongs to a request"
        entry.decision = self.decision = decision
        proxy = way.proxy if way is not None else None
        gate = self.gate
        origin = self.origin = Origin(
            Outlet(gate.reactor, sock),
            request.destination,
            address,
            gate.surroundings(),
            way.plan if way is not None else None,
            proxy if proxy is not None and proxy.plain else None,
        )
        gate.reactor.watch(origin.fd, self)
        if early:
            self.fail(Reason.UPSTREAM_RESPONSE)
            return
        self._send_request(origin, request, decision)

    def _send_request(self, origin: Origin, request: Request, decision: Decision) -> None:
        entry = self.entry
        assert entry is not None, "a request is recorded"
        entry.address = origin.address
        self.touched = origin.used_at = self.gate.reactor.now
        self.meter, self.allowance = self.task.meters(decision, self.gate.asker)
        proxy = origin.proxy
        self.answer = Answering(self, request, proxied=proxy is not None)
        if self.silence is None:
            self.watch_silence()
        data = request.out if proxy is None else request.for_proxy(proxy)
        if self.body is None:
            post_up(self, origin, data)
        elif send_up(self, origin, data):
            upload(self)

    # What the answer's side asks for.

    def retry(self) -> bool:
        """Whether the request goes out once more: an idle origin closed just when it was used again."""
        origin, request = self.origin, self.request
        if origin is None or origin.fresh or request is None or not request.repeatable or self.entry is None:
            return False
        plan = self.task.plan(request.destination)
        if plan is not origin.plan:
            return False  # another policy or phase: what allowed the request is no longer in force
        self.drop_origin()
        self.answer = None
        self.entry.address = ""
        way = self.way = Way(self.gate, self.task, plan, self, tunnel=False)
        way.start()
        return True

    def complete(self, *, keep_origin: bool, close: bool) -> None:
        """The answer has been passed on."""
        entry = self.entry
        if entry is not None:
            decision = entry.decision
            entry.write(self.how, decision.reason if decision is not None else Reason.ALLOWED)
        self.entry = None
        origin = self.origin
        if (
            not keep_origin
            or self.body is not None
            or (origin is not None and (origin.ending or origin.outlet.blocked))
        ):
            self.drop_origin()  # an origin that answers and does not read would let what waits for it grow
        elif origin is not None:
            origin.used_at = self.gate.reactor.now
        if close or self.body is not None:
            self.say_last(b"")
        else:
            self.next_request()

    def switch(self, rest: bytes) -> None:
        """A WebSocket was accepted: the two connections are a tunnel now."""
        origin, entry = self.origin, self.entry
        assert origin is not None, "a 101 comes from somewhere"
        assert entry is not None, "a 101 comes from somewhere"
        origin.outlet.settle()
        self.client.settle()
        if origin.outlet.blocked or self.client.blocked:
            self.abort(Reason.UPSTREAM_RESPONSE)  # what waits would be lost, or arrive behind what comes later
            return
        self.stop_clocks()
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


def _misdirected(request: Request, secrets: Secrets) -> str:
    """Say what of a request in clear text is a secret's stand-in, '' where nothing is (INS-5, B122)."""
    where = request.destination
    try:
        head = request.head
        secrets.swap(where.host.text, where.port, head.target, head.headers, tls=False, method=head.method)
    except WireError as error:
        return error.detail
    return ""
