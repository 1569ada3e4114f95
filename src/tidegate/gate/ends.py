"""How an exchange of plain HTTP ends: refused, malformed, failed, cut, idle, or simply over.

Rules of the file:

* A request is recorded once, however it ends.
* While nothing of the answer has been passed on, the client gets an answer that says why; after that both sides are
  closed, so that neither takes half a message for a whole one.
* Refusals close the connection and are never followed by another request (B37).
"""

from __future__ import annotations

from _socket import SO_LINGER, SOL_SOCKET

from tidegate.gate.dial import why_broken
from tidegate.gate.linger import RESET, render
from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import remaining
from tidegate.gate.record import Entry
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.wire.errors import MethodFieldError
from tidegate.wire.refusal import reads_json, refusal_response, refuse_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

    from tidegate.gate.answer import Answering
    from tidegate.gate.cleaned import CleanedBody
    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.origin import Origin, Source
    from tidegate.gate.reactor import Timer
    from tidegate.gate.request import Request
    from tidegate.gate.task import Allowance, Meter, Plan
    from tidegate.gate.way import Way
    from tidegate.model.decision import Decision
    from tidegate.model.seams import Cleaner
    from tidegate.wire.body import Body
    from tidegate.wire.errors import WireError
    from tidegate.wire.http1 import ResponseHead


class Ends:
    """The sockets, clocks and ends of an exchange; what happens in between is forward.Exchange.

    `how` is what the journal says of its requests; where `pinned` the client's connection ends with the origin's;
    fields of answers named in `without` stay behind.
    """

    how = How.FORWARDED
    pinned = False
    without: frozenset[bytes] = frozenset()
    cleaner: Cleaner | None = None  # what keeps values of secrets out of answers

    __slots__ = (
        "allowance", "answer", "between", "body", "buffer", "client", "closed", "deadline", "decision", "ending",
        "entry", "fd", "gate", "keep", "listener", "meter", "more", "origin", "request", "seen", "silence", "sock",
        "source", "task", "touched", "watched", "way",
    )  # fmt: skip

    def __init__(self, gate: Gate, listener: Door, sock: socket, *, watched: bool) -> None:
        self.gate = gate
        self.listener = listener
        self.task = listener.task
        self.sock = sock
        self.fd = sock.fileno()
        self.client = Outlet(gate.reactor, sock)
        self.source: Source = sock  # what the client says is read from here
        self.closed = False
        self.buffer = b""  # of the client: the next request, or body not passed on yet
        self.seen = 0
        self.more = False  # the client's socket may hold bytes that no event will tell of again
        self.ending = False  # its end was announced
        self.deadline: Timer | None = None
        self.between: Timer | None = None
        self.silence: Timer | None = None  # while an answer is awaited; it outlives it, and looks when it ends
        self.touched = 0.0
        self.origin: Origin | None = None
        self.way: Way | None = None
        # Of the current request:
        self.entry: Entry | None = None
        self.request: Request | None = None
        self.decision: Decision | None = None
        self.body: Body | CleanedBody | None = None  # what of the upload is still to come
        self.answer: Answering | None = None
        self.keep = False
        self.meter: Meter | Allowance | None = None  # of bytes up
        self.allowance: Allowance | None = None  # of bytes down
        self.watched = watched

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the sockets; Exchange knows what to do about it."""
        raise NotImplementedError

    def heard(self, head: ResponseHead) -> None:
        """The origin has answered; whoever makes more of its head says what."""

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
        request, entry = self.request, self.entry
        body = request is None or request.method != "HEAD"
        json = request is not None and reads_json(request.head.headers)
        if decision.verdict is Verdict.ASK and decision.reason is not reason:
            decision = decision.replace(reason=reason)
        usual = plan if body and not json else None
        reply = usual.refusal if usual is not None else b""
        if not reply:
            reply = render(decision, reason, tried, body=body, json=json)
            if usual is not None:
                usual.refusal = reply
        if entry is not None:
            entry.decision = decision
            if tried:
                entry.address = tried[-1]
            entry.status = reason.status
            entry.write(How.REFUSED, reason)
        self.say_last(reply)

    def not_sent(self, reason: Reason, detail: str) -> None:
        """As `refused`, before all of it was sent, with a clause that says more than the reason does."""
        entry, request, decision = self.entry, self.request, self.decision
        assert entry is not None, "a request is recorded"
        assert decision is not None, "it was judged"
        line = decision.replace(reason=reason).sentence()
        detail = "; ".join(filter(None, (detail, entry.came_from())))
        body = request is None or request.method != "HEAD"
        json = request is not None and reads_json(request.head.headers)
        entry.status = reason.status
        entry.write(How.REFUSED, reason)
        self.say_last(refusal_response(reason, f"{line} ({detail})" if detail else line, body=body, json=json))

    def malformed(self, error: WireError, method: str = "") -> None:
        """What the client sent is no request, or no body."""
        answer = self.answer
        if answer is not None and answer.begun:
            self.abort(error.reason)
            return
        request = self.request
        if isinstance(error, MethodFieldError) and self.entry is not None and self.decision is not None:
            # It is well formed, and asks for what its rule does not let pass.
            self.entry.decision = self.decision = self.decision.refuse(error.reason, fix="")
            self.not_sent(error.reason, error.detail)
            return
        method = request.method if request is not None else method
        entry = self.entry or Entry(self.gate, self.task, None, method)
        entry.malformed(error)
        entry.status = error.reason.status
        entry.write(How.REFUSED, error.reason)
        self.say_last(refuse_error(error, body=method != "HEAD"))

    # Ends.

    def say_last(self, reply: bytes) -> None:
        """Answer for the last time, and let the client read it."""
        if self.closed:
            return
        try:
            if reply:
                self.client.send(reply)
            self.client.finish()
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
        self.client.settle()
        self.stop_clocks()
        way, self.way = self.way, None
        if way is not None:
            way.cancel()
        self.drop_origin()
        self.gate.reactor.table.pop(self.fd, None)
        self.answer = None

    def abort(self, reason: Reason) -> None:
        """Stop in the middle: both sides are closed, so that neither takes half a message for a whole one."""
        entry = self.entry
        if entry is not None:
            begun = self.answer is not None and self.answer.begun
            entry.write(self.how if begun else How.REFUSED, reason)
        if not self.closed and self.answer is not None and self.answer.open_ended:
            self.sock.setsockopt(SOL_SOCKET, SO_LINGER, RESET)  # an orderly end would say that the body is whole
        self.close()

    def close(self) -> None:
        """Close both sides without a word."""
        if not self.closed:
            self._leave()
            self.sock.close()
            self.listener.left(self.fd)

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending."""
        self.abort(reason)

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        owner = self.gate.reactor.table.get(self.fd)
        if self.closed and owner is not None and owner is not self:
            owner.broken(error)  # it had handed its socket on
        else:
            self.abort(why_broken(error))

    def drop_origin(self) -> None:
        """Close the connection to the origin, if there is one."""
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.outlet.settle()
            self.gate.reactor.table.pop(origin.fd, None)
            origin.sock.close()

    def arm(self, seconds: float, callback: Callable[[], None]) -> None:
        """Start the one clock of this connection anew."""
        self.disarm()
        self.deadline = self.gate.reactor.after(seconds, callback, self)

    def stop_clocks(self) -> None:
        """Let no timer of this connection run any more."""
        self.disarm()
        if self.between is not None:
            self.between.cancel()
            self.between = None
        if self.silence is not None:
            self.silence.cancel()
            self.silence = None

    def disarm(self) -> None:
        """Stop it."""
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def watch_silence(self) -> None:
        """See that what is under way does not stand still. One clock serves many requests: most end long before it."""
        seconds = self.task.policy.limits.idle_seconds
        if seconds and self.silence is None:
            self.silence = self.gate.reactor.after(seconds, self.idle, self)

    def idle(self) -> None:
        """Nothing moved for a while; both directions count (B52)."""
        self.silence = None
        seconds = self.task.policy.limits.idle_seconds
        if self.answer is None or not seconds:
            return  # nothing is under way; the next request watches anew
        left = self.touched + seconds - self.gate.reactor.now
        if left <= 0:
            self.abort(Reason.IDLE_TIMEOUT)
        else:
            self.silence = self.gate.reactor.after(remaining(left, seconds), self.idle, self)
