"""A client's connection from its first byte until it is a tunnel, an exchange of plain HTTP, or refused.

Rules of the file:

* The first byte tells what is spoken: HTTP or SOCKS5 (GAT-1). Everything else is answered with 400 and closed.
* Verdict first: nothing is answered with 2xx, resolved or dialled before it (B73).
* A refused connection gets one answer, is never read as a request again (B37), and is drained for a moment so that
  a reset does not eat the answer.
* The stages are the table in states.py.
* The way of an ordinary CONNECT to a literal that connects at once is kept bare: it is what the bench measures.
"""

from __future__ import annotations

import select
from _socket import AF_UNIX, IPPROTO_TCP, MSG_MORE, MSG_PEEK, SO_ERROR, SOL_SOCKET, TCP_INFO, socket

from tidegate.gate.dial import begin, reason_of, why_broken
from tidegate.gate.judge import Judge
from tidegate.gate.linger import render
from tidegate.gate.reactor import ENDED, IN
from tidegate.gate.record import Entry
from tidegate.gate.states import TRANSITIONS, Stage
from tidegate.gate.tunnel import Tunnel
from tidegate.gate.way import Way
from tidegate.model.address_class import AddressClass
from tidegate.model.reason import Reason
from tidegate.model.rule import NO_LIMITS
from tidegate.model.verdict import How, Verdict
from tidegate.wire.authority import connect_target
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import CONNECT_ESTABLISHED, head_end, parse_request_head
from tidegate.wire.refusal import refusal_response, refuse_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.reactor import Timer
    from tidegate.gate.task import Plan
    from tidegate.model.decision import Decision
    from tidegate.wire.http1 import RequestHead

READ = 1 << 14
_ENDED = frozenset((7, 8))  # TCP_CLOSE and TCP_CLOSE_WAIT of the kernel's include/net/tcp_states.h
_SOCKS_METHOD = "SOCKS5"  # what the journal has in the place of an HTTP method


def has_ended(sock: socket) -> bool:
    """Whether the other side has ended its direction, whatever of it is still to be read."""
    if sock.family == AF_UNIX:
        poll = select.poll()
        poll.register(sock, select.POLLRDHUP)
        return bool(poll.poll(0))
    return sock.getsockopt(IPPROTO_TCP, TCP_INFO, 1)[0] in _ENDED


class Client:
    """One connection of a task, in the stages from HEAD to DIALING."""

    __slots__ = (
        "buffer", "deadline", "entry", "fd", "gate", "listener", "rest", "seen", "sock", "socks", "stage", "task",
        "watched", "way",
    )  # fmt: skip

    def __init__(self, gate: Gate, listener: Door, sock: socket, *, watched: bool = False) -> None:
        self.gate = gate
        self.listener = listener
        self.task = listener.task
        self.sock = sock
        self.fd = sock.fileno()
        self.stage = Stage.HEAD
        self.watched = watched
        self.buffer = b""
        self.seen = 0
        self.rest = b""
        self.deadline: Timer | None = None
        self.entry: Entry | None = None
        self.way: Way | None = None
        self.socks = 0  # 0: HTTP; 1: the greeting is awaited; 2: the request

    def enter(self, stage: Stage) -> None:
        """Move along the table."""
        assert stage in TRANSITIONS[self.stage], f"{self.stage.name} does not lead to {stage.name}"
        self.stage = stage

    # HEAD: bytes of a request arrive.

    def begin(self) -> None:
        """Read what is there: with TCP_DEFER_ACCEPT that is mostly the whole request."""
        try:
            data = self.sock.recv(READ)
        except BlockingIOError:
            self._wait()
            return
        except OSError:
            self.gone()
            return
        plan = self.task.heads.get(data)
        if plan is not None:
            self.connect(plan, b"")
        elif data:
            self.buffer = data
            self._read_request()
        else:
            self.gone()

    def ready(self, _fd: int, mask: int) -> None:
        """Bytes arrived, or the client went away."""
        if self.stage is not Stage.HEAD:
            if mask & ENDED:
                self._look_gone()
            return
        while self.stage is Stage.HEAD:
            try:
                data = self.sock.recv(READ)
            except BlockingIOError:
                return
            except OSError:
                self.gone()
                return
            if not data:
                self.gone()
                return
            self.buffer += data
            self._read_request()

    def _wait(self) -> None:
        # Back to the loop, and not for ever.
        if not self.watched:
            self.watched = True
            self.gate.reactor.watch(self.fd, self)
        if self.deadline is None and self.stage is Stage.HEAD:
            seconds = self.task.policy.limits.header_seconds
            self.deadline = self.gate.reactor.after(seconds, self._too_slow, self)

    def resume(self, buffer: bytes) -> None:
        """Take over a connection on which plain requests were exchanged, with the bytes of the next one."""
        self.gate.reactor.table[self.fd] = self
        self.buffer = buffer
        self._read_request()

    def _read_request(self) -> None:
        buffer = self.buffer
        try:
            if self.socks or buffer[0] == 5:
                self._read_socks()
                return
            limits = self.task.policy.limits
            end = head_end(buffer, self.seen, limits)
            if end < 0:
                self.seen = len(buffer)
                self._wait()
                return
            raw = buffer[:end]
            head = parse_request_head(raw, limits)
            if head.method != "CONNECT":
                self._exchange(head, buffer[end:])
                return
            destination = connect_target(head)
        except WireError as error:
            self.malformed(error)
            return
        plan = self.task.plan(destination)
        self.task.remember(raw, plan)
        self.buffer = b""
        self.connect(plan, buffer[end:])

    def _read_socks(self) -> None:
        from tidegate.gate.socks import read_socks

        destination = read_socks(self)
        if destination is None:
            if self.stage is Stage.HEAD:
                self._wait()
            return
        rest, self.buffer = self.buffer, b""
        self.connect(self.task.plan(destination), rest, _SOCKS_METHOD)

    def _exchange(self, head: RequestHead, rest: bytes) -> None:
        from tidegate.gate.forward import Exchange

        self.enter(Stage.EXCHANGE)
        self._disarm()
        Exchange(self.gate, self.listener, self.sock, watched=self.watched).first(head, rest)

    def _too_slow(self) -> None:
        self.deadline = None
        self.fail(Reason.HEADER_TIMEOUT, "")

    # From the verdict to a connection.

    def connect(self, plan: Plan, rest: bytes, method: str = "CONNECT") -> None:
        """Open a tunnel to the plan's destination, or refuse it. `rest` came with the request."""
        self._disarm()
        gate, task = self.gate, self.task
        decision = task.judge(plan, gate.surroundings())
        self.entry = Entry(gate, task, decision, method)
        verdict = decision.verdict
        if verdict is Verdict.DENY:
            self.refused(decision, decision.reason, plan, ())
            return
        self.rest = rest
        rule = decision.rule
        host = decision.destination.host
        way = self.way = Way(gate, task, plan, self, tunnel=True)
        if (
            verdict is Verdict.ALLOW
            and host.packed is not None
            and gate.upstream is None
            and (rule is None or rule.limits is NO_LIMITS)
            and not decision.bounds
            and (decision.address_class is not AddressClass.OWN or decision.destination.port not in gate.marks)
        ):
            sock, number = begin(host.packed, host.text, decision.destination.port)
            if number == 0 and sock is not None:
                self.reached(decision, sock, host.text, b"")
                return
            if sock is None:
                self.refused(decision, reason_of(number), None, (host.text,))
                return
            way.adopt(decision, sock, host.text)
        else:
            way.start()
        if self.way is way:
            self.enter(way.stage)
            self._wait()

    def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
        """The destination is connected: say so, and become a tunnel."""
        entry = self.entry
        assert entry is not None, "a way belongs to a request"
        self.way = None
        entry.decision = decision
        entry.address = address
        if self.socks:
            from tidegate.wire.socks5 import SUCCEEDED

            answer = SUCCEEDED
        else:
            entry.status = 200
            answer = CONNECT_ESTABLISHED
        try:
            self.sock.send(answer)
        except OSError:
            sock.close()
            self.gone()
            return
        self.join(sock, entry, early)

    def join(self, sock: socket, entry: Entry, early: bytes, how: How = How.TUNNELED) -> None:
        """Become a tunnel to `sock`."""
        self.enter(Stage.TUNNEL)
        gate, reactor = self.gate, self.gate.reactor
        if self.task.inspector is not None and self.task.reads(entry.decision):
            from tidegate.gate.inspected import Inspected

            Inspected(gate, self.listener, self.sock, sock, entry, watched=self.watched).begin(self.rest, early)
            return
        tunnel = Tunnel(gate, self.listener, self.sock, sock, entry)
        tunnel.how = how
        tunnel.judge = Judge(tunnel)
        reactor.watch(tunnel.upstream_fd, tunnel)
        if not self.watched:
            reactor.watch(self.fd, tunnel)
        else:
            reactor.table[self.fd] = tunnel
            reactor.again(tunnel, self.fd, IN | ENDED)
        tunnel.begin(self.rest, early)

    def settle(self, decision: Decision, reason: Reason, tried: tuple[str, ...]) -> tuple[Entry, Decision]:
        """The way is over: put on record what it came to, and return the entry and the decision as it is told."""
        entry = self.entry
        assert entry is not None, "a way belongs to a destination"
        self.way = None
        if decision.reason is not reason and decision.verdict is Verdict.ASK:
            decision = decision.replace(reason=reason)
        entry.decision = decision
        if tried:
            entry.address = tried[-1]
        return entry, decision

    def refused(self, decision: Decision, reason: Reason, plan: Plan | None, tried: tuple[str, ...]) -> None:
        """The policy, a person, an address or the network said no."""
        entry, decision = self.settle(decision, reason, tried)
        if self.socks:
            from tidegate.wire.socks5 import refusal_reply

            reply = refusal_reply(reason)
        else:
            entry.status = reason.status
            reply = plan.refusal if plan is not None else b""
            if not reply:
                reply = render(decision, reason, tried)
                if plan is not None:
                    plan.refusal = reply
        entry.write(How.REFUSED, reason)
        self._answer(reply)

    # Ends.

    def malformed(self, error: WireError) -> None:
        """What arrived is no request: say why, and close."""
        entry = Entry(self.gate, self.task, None, _SOCKS_METHOD if self.socks else "")
        entry.malformed(error)
        if self.socks or error.reply:
            reply = error.reply
        else:
            reply = refuse_error(error)
            entry.status = error.reason.status
        entry.write(How.REFUSED, error.reason)
        self._answer(reply)

    def fail(self, reason: Reason, detail: str) -> None:
        """The request did not come to an end, or the gate failed: answer in HTTP where that is spoken, and close."""
        entry = self.entry or Entry(self.gate, self.task, None, "")
        reply = b""
        if not self.socks and reason.status:
            reply = refusal_response(reason, f"{reason.sentence}{detail}")
            entry.status = reason.status
        entry.write(How.REFUSED, reason)
        self._answer(reply)

    def _answer(self, reply: bytes) -> None:
        if self.stage >= Stage.REFUSING:
            return
        self._disarm()
        self.enter(Stage.REFUSING)
        if reply:
            try:
                self.sock.send(reply, MSG_MORE)  # the end that `linger` announces travels in the same packet
            except OSError:
                reply = b""
        if not reply:
            self._close()
            return
        self.gate.linger(self.listener, self.sock, watched=self.watched)

    def _look_gone(self) -> None:
        # While the way is under way: the end of the client's bytes is no end (half-close), unless a person is asked.
        try:
            data = self.sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            self.gone()
            return
        if self.way is not None and self.way.stage is Stage.ASKING:
            if has_ended(self.sock):
                self.gone()
        elif not data and self.sock.getsockopt(SOL_SOCKET, SO_ERROR):
            self.gone()  # a reset behind the end shows only as the socket's error

    def gone(self) -> None:
        """The client went away before it had an answer."""
        entry = self.entry
        if entry is None and (self.buffer or self.socks):
            entry = Entry(self.gate, self.task, None, _SOCKS_METHOD if self.socks else "")
        if entry is not None:
            entry.write(How.REFUSED, Reason.CLIENT_GONE)
        self._close()

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending."""
        entry = self.entry
        if entry is not None:
            entry.write(How.REFUSED, reason)
        self._close()

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        if self.stage < Stage.TUNNEL:
            self.fail(why_broken(error), "")
            return
        # It had handed its socket on: whoever owns it now is what broke.
        owner = self.gate.reactor.table.get(self.fd)
        if owner is not None and owner is not self:
            owner.broken(error)
        elif self.stage is not Stage.CLOSED and self.sock.fileno() >= 0:
            if self.entry is not None:
                self.entry.write(How.REFUSED, Reason.INTERNAL)
            self._close()

    def _disarm(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _close(self) -> None:
        if self.stage is Stage.CLOSED:
            return
        self._disarm()
        way, self.way = self.way, None
        if way is not None:
            way.cancel()
        self.stage = Stage.CLOSED
        self.gate.reactor.table.pop(self.fd, None)
        self.sock.close()
        self.listener.left(self.fd)
