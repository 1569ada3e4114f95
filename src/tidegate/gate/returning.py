"""HTTP/2 inside TLS: the connection to the destination let go while no stream is open, and made again (INS-3).

Rules of the file (docs/decisions/0028):

* It is one of those that wait (idle_ends.py) while there is no stream; its client's connection stays. The next stream
  is judged by what the policy says then, and makes it again (redial.py).
* What is to be sent waits until it stands and is verified, and is sent once. Where it does not come to stand nothing
  was sent, each stream is told why, and the client's connection ends.

How bytes move is in inner_streams.py.
"""

from __future__ import annotations

from tidegate.gate.idle_ends import made_once
from tidegate.gate.reactor import IN
from tidegate.gate.redial import Redial, dial_again
from tidegate.model.verdict import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.gate import Gate
    from tidegate.gate.idle_ends import IdleEnds
    from tidegate.gate.inspected import Inspected
    from tidegate.gate.record import Entry
    from tidegate.gate.task import Allowance, GateTask, Meter, Plan
    from tidegate.gate.tls_end import TlsEnd
    from tidegate.gate.way import Way
    from tidegate.model.decision import Decision
    from tidegate.model.reason import Reason
    from tidegate.model.seams import Streams


class ReturningStreams:
    """The part of InnerStreams that lets its destination go and reaches it again."""

    __slots__ = (
        "_client", "_deaf", "_early", "_ends", "_fds", "_keeps", "_limits", "_streams", "_up", "_upstream", "_waits",
        "_worked", "down", "entry", "gate", "made_again", "opened", "task", "way",
    )  # fmt: skip

    def __init__(self, begun: Inspected, client: socket, upstream: socket, down: TlsEnd, up: TlsEnd) -> None:
        self.gate: Gate = begun.gate
        self.task: GateTask = begun.task
        self.entry: Entry = begun.entry
        self.opened: Entry = begun.entry
        self._client: socket | None = client
        self._upstream = upstream
        self.down = down
        self._up: TlsEnd | None = up  # None once it was let go
        self._fds = client.fileno(), upstream.fileno()
        self._streams: Streams
        self._limits: tuple[Meter | Allowance | None, Allowance | None]
        self._limits = self.task.meters(begun.decision, self.gate.asker)
        self._worked = False
        self._deaf = begun.failure is not None  # the destination takes nothing any more
        self.way: Way | None = None  # to a destination that was let go
        self.made_again = False  # the connection to it
        self._early = b""  # what is to be sent there once it stands
        self._ends: IdleEnds = self.task.idle_ends
        self._keeps = made_once(begun.decision)  # it is never let go
        self._waits = False  # there is no stream

    def drop_origin(self) -> None:
        """There is no destination to speak to, or no more; later calls do nothing."""
        if self._upstream.fileno() >= 0:  # else its number may be another connection's by now
            self.gate.reactor.table.pop(self._fds[1], None)
            self._upstream.close()

    def _look_needed(self) -> None:
        # Whether that connection has something to do: without one it is made for a stream.
        streams = self._streams
        if self._up is None:
            if streams.reaching and self.way is None:
                dial_again(self)
        elif streams.streams:
            if self._waits:
                self._waits = False
                self._ends.works(self)
        elif not (self._waits or self._keeps or streams.keeps):
            self._waits = True
            self._ends.waits(self, self.gate.reactor)

    def let_go(self) -> None:
        """Close the connection to the destination, unless something is under way."""
        self._waits = False
        up = self._up
        if up is None or self._deaf or self._client is None or up.outlet.blocked or self.down.outlet.blocked:
            return
        last = self._streams.let_go(self._judge)
        if last is None:
            return
        try:
            up.outlet.send(last)
        except OSError:
            self._early = b""  # it has gone by itself, and heard nothing that anybody waits for
        up.part()
        self.drop_origin()
        self._up = None

    def _judge(self) -> Decision | None:
        """What the policy says of the destination now; None where the client has to begin anew."""
        known, task = self.entry.decision, self.task
        assert known is not None, "a connection that is read was allowed"
        plan = task.plan(known.destination)
        decision = task.judge(plan, self.gate.surroundings())
        if plan.destination != known.destination or decision.verdict is Verdict.ASK:
            return None
        return decision if decision.verdict is Verdict.DENY or task.reads(decision) else None

    def why_not(self, _decision: Decision) -> Reason | None:
        """Each stream was judged by itself, in the turn in which the way was begun."""
        return None

    def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
        """The destination is connected again, under what the policy says of it now."""
        way = self.way
        self.entry.decision, self.entry.address = decision, address
        self._streams.reached(decision)
        self._limits = self.task.meters(decision, self.gate.asker)
        self._keeps = made_once(decision) or self._keeps
        assert isinstance(way, Redial), "nothing else sets out here"
        way.shake(sock, early)

    def joined(self, _decision: Decision, sock: socket, up: TlsEnd) -> None:
        """It is verified, and speaks HTTP/2: what waits is sent."""
        self.way = None
        self.made_again = True
        self._worked = False
        self._up, self._upstream = up, sock
        self._fds = self._fds[0], up.fd
        reactor = self.gate.reactor
        reactor.table[up.fd] = self
        data, self._early = self._early, b""
        self._send(data)
        for fd in self._fds:  # what came with the end of the handshake was told of once, and the client was not read
            reactor.again(self, fd, IN)

    def refused(self, decision: Decision, reason: Reason, _plan: Plan | None, tried: tuple[str, ...]) -> None:
        """The policy, an address or the network said no."""
        self.way = None
        self._streams.reached(decision)
        self.failed(reason, f"tried {', '.join(tried)}" if tried else "")

    def failed(self, reason: Reason, detail: str) -> None:
        """There is no connection: each stream is told so, and the client's connection ends."""
        self._deaf = True
        self._early = b""
        self._streams.upstream_ended(reason, detail)
        self._send()

    # What InnerStreams is beside this.

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the sockets."""
        raise NotImplementedError

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        raise NotImplementedError

    def abort(self, reason: Reason) -> None:
        """End without an answer: the client has to begin anew."""
        raise NotImplementedError

    def _send(self, up: bytes = b"", down: bytes = b"") -> None:
        raise NotImplementedError

    def _stop(self) -> None:
        # Whoever leaves waits for nothing.
        self._ends.works(self)
        way, self.way = self.way, None
        if way is not None:
            way.cancel()
        self._streams.done()
