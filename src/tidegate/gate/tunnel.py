"""Two sockets and the bytes between them, once a connection is allowed and dialled.

Rules of the file:

* The client's first bytes are held until they are judged (GAT-9); the server's never are, because ssh and databases
  speak first.
* A direction that ends is closed on the other side (half-close) and the tunnel lives until both have ended. A reset
  on one side is a reset on the other.
* How a direction moves its bytes is in flow.py.
* One activity clock for both directions (B52), off by default.

Nothing here knows HTTP: judge.py judges, this moves.
"""

from __future__ import annotations

from _socket import MSG_MORE, SHUT_WR, SO_ERROR, SO_LINGER, SOL_SOCKET

from tidegate.gate.flow import Flow
from tidegate.gate.linger import RESET
from tidegate.gate.reactor import ENDED, ERR, IN, OUT, remaining
from tidegate.gate.task import Allowance
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.judge import Judge
    from tidegate.gate.reactor import Timer
    from tidegate.gate.record import Entry
    from tidegate.model.decision import Decision

_INPUT = IN | ENDED


class Tunnel:
    """A handler of two descriptors; it owns both sockets from its first moment and closes them together."""

    __slots__ = (
        "client", "client_fd", "down", "entry", "gate", "how", "idle", "judge", "kept_alive", "listener", "touched",
        "up", "upstream", "upstream_fd",
    )  # fmt: skip

    def __init__(self, gate: Gate, listener: Door, client: socket, upstream: socket, entry: Entry) -> None:
        self.gate = gate
        self.listener = listener
        self.client: socket | None = client
        self.upstream = upstream
        self.client_fd = client.fileno()
        self.upstream_fd = upstream.fileno()
        self.entry = entry
        self.how = How.TUNNELED
        self.judge: Judge | None = None
        self.up = Flow(self, client, upstream)
        self.down = Flow(self, upstream, client)
        self.kept_alive = False
        self.touched = 0.0
        self.idle: Timer | None = None
        seconds = entry.task.policy.limits.idle_seconds
        if seconds:
            self.touched = gate.reactor.now
            self.idle = gate.reactor.after(seconds, self._look_idle, self)
        decision = entry.decision
        if decision is not None and (decision.rule is not None or decision.grant is not None):
            self.up.limit, self.down.limit = entry.task.meters(decision, gate.asker)

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the two descriptors."""
        if self.idle is not None:
            self.touched = self.gate.reactor.now
        if fd == self.client_fd:
            source, sink = self.up, self.down
        else:
            source, sink = self.down, self.up
        if mask & OUT and sink.blocked:
            sink.push()
        if mask & _INPUT and self.client is not None:
            if self.judge is not None and source is self.up:
                self._hear(self.judge, mask & ENDED)
            elif source.eof:
                if mask & ERR:
                    self._look_for_reset(source)
            else:
                source.pull(mask & ENDED)

    def also_under(self, decision: Decision) -> None:
        """A second decision lets this tunnel through, that of the name in its TLS: its bytes count there too."""
        asker, task = self.gate.asker, self.entry.task
        if asker is not None and decision.grant is not None and decision.grant.bytes is not None:
            self.up.limit = Allowance(asker, task.id, decision, self.up.limit)
            self.down.limit = Allowance(asker, task.id, decision, self.down.limit)

    # The client's first bytes (GAT-9).

    def begin(self, rest: bytes, early: bytes) -> None:
        """Begin with what came from the client with its request, and from the server before it was asked."""
        if early:
            self.down.offer(early)
        if rest and self.client is not None:
            self.hear(rest)

    def hear(self, data: bytes) -> None:
        """Take first bytes that came with the request."""
        judge = self.judge
        if judge is None:
            self.up.offer(data)
        else:
            judge.feed(data)

    def _hear(self, judge: Judge, ended: int) -> None:
        while self.judge is judge and not judge.waiting:
            try:
                data = self.up.source.recv(judge.room)
            except BlockingIOError:
                return
            except OSError:
                self.reset()
                return
            if not data:
                judge.ended()
                return
            judge.feed(data)
        if self.client is not None and self.judge is None:
            self.up.pull(ended)

    def pass_on(self, held: bytes | memoryview) -> None:
        """The first bytes are judged and may go; from here on nothing is looked at."""
        self.judge = None
        if held:
            self.up.offer(held)

    def pass_end(self) -> None:
        """The client ended its direction before or while it was judged."""
        self.judge = None
        self.up._end()  # noqa: SLF001 - one state machine in two classes

    def refuse(self, reason: Reason, reply: bytes) -> None:
        """Cut the tunnel, and tell the client why in its own protocol. The server sees no byte of it."""
        client = self.client
        if client is None:
            return
        if reply and not self.down.blocked:
            try:
                client.send(reply, MSG_MORE)  # travels with the end that `linger` announces
            except OSError:
                reply = b""
        self.gate.reactor.table.pop(self.client_fd, None)
        self._finish(reason, How.REFUSED)
        self.gate.linger(self.listener, client, watched=True)

    # Ends.

    def ended(self, flow: Flow) -> None:
        """One direction has ended and all its bytes are passed on."""
        if self.client is None:
            return
        if self.up.done and self.down.done:
            self.close(self.reason)
            return
        try:
            flow.sink.shutdown(SHUT_WR)
        except OSError:
            self.reset()

    @property
    def reason(self) -> Reason:
        """The reason of a tunnel that ended by itself."""
        decision = self.entry.decision
        return decision.reason if decision is not None else Reason.ALLOWED

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes that moved away from the task, and to it."""
        return self.up.moved, self.down.moved

    def judged(self, flow: Flow) -> bool:
        """Whether the flow may be read freely: the client's bytes belong to the judge while there is one (GAT-9)."""
        return self.judge is None or flow is self.down

    def again(self, flow: Flow) -> None:
        """Let the flow go on in the next turn, after the others had theirs."""
        fd = self.client_fd if flow is self.up else self.upstream_fd
        self.gate.reactor.again(self, fd, IN | ENDED)

    def _look_for_reset(self, flow: Flow) -> None:
        # A direction that has ended is not read any more, so a reset shows only here.
        if flow.source.getsockopt(SOL_SOCKET, SO_ERROR):
            self.reset()

    def reset(self) -> None:
        """One side broke: both do, and the other side sees a reset too."""
        if self.client is None:
            return
        for sock in (self.client, self.upstream):
            sock.setsockopt(SOL_SOCKET, SO_LINGER, RESET)
        self.close(self.reason)

    def write_failed(self, flow: Flow) -> None:
        """A side takes no more bytes. What it said before (an early answer) still reaches the other side first."""
        flow.give_up()
        other = self.down if flow is self.up else self.up
        if not self.judged(other):
            self.reset()  # the client went before its first bytes were judged: none of them goes to the server
            return
        moved = other.moved
        if not other.eof:
            other.pull(ENDED)
        if self.client is not None and other.eof and not other.blocked:
            if other.moved == moved:
                self.reset()
            else:
                self.close(self.reason)

    def _look_idle(self) -> None:
        seconds = self.entry.task.policy.limits.idle_seconds
        reactor = self.gate.reactor
        left = self.touched + seconds - reactor.now
        if left <= 0:
            self.close(Reason.IDLE_TIMEOUT)
        else:
            self.idle = reactor.after(remaining(left, seconds), self._look_idle, self)

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending."""
        self.close(reason)

    def broken(self, _error: Exception) -> None:
        """A bug: this tunnel ends, and only it."""
        self.close(Reason.INTERNAL)

    def close(self, reason: Reason) -> None:
        """Close both sides and record it; later calls do nothing."""
        client = self.client
        if client is None:
            return
        self._finish(reason, self.how)
        client.close()
        self.listener.left(self.client_fd)

    def _finish(self, reason: Reason, how: How) -> None:
        # All but the client's socket.
        self.client = None
        table = self.gate.reactor.table
        table.pop(self.client_fd, None)
        table.pop(self.upstream_fd, None)
        self.upstream.close()
        self.up.drop_pipe()
        self.down.drop_pipe()
        if self.idle is not None:
            self.idle.cancel()
        if self.judge is not None:
            self.judge.cancel()
            self.judge = None
        entry = self.entry
        entry.up, entry.down = self.sizes
        entry.write(how, reason)
