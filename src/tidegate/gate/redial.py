"""The connection to a destination made again, for a client whose idle one was let go (INS-3).

Rules of the file:

* It is a way like every other (way.py): the live policy judges the destination, its address is admitted again, and one
  place dials. The address is the one that was dialled before; a name is not looked up a second time.
* The destination is offered the one protocol that the client speaks, is verified as at first, and is refused where it
  selects another. Nothing of the request has been sent until all of that is done, and it is sent once.
* What waits is judged again by what the policy says now. A policy that would not read the destination any more ends
  the connection without an answer: the client's next one is judged from its beginning.

Who waits is an exchange of HTTP/1.1 or the streams of HTTP/2. Sources: docs/decisions/0022 and 0028.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.gate.reactor import OUT
from tidegate.gate.resolve import Answer
from tidegate.gate.tls_end import TlsEnd
from tidegate.gate.way import Way
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Protocol

    from tidegate.gate.gate import Gate
    from tidegate.gate.reactor import Timer
    from tidegate.gate.record import Entry
    from tidegate.gate.task import GateTask, Plan
    from tidegate.gate.way import Traveller
    from tidegate.model.decision import Decision

    class Waiting(Traveller, Protocol):
        """Who waits for it. `opened` is the line of its connection, with what was dialled at first."""

        gate: Gate
        task: GateTask
        opened: Entry
        down: TlsEnd
        way: Way | None

        def why_not(self, decision: Decision) -> Reason | None:
            """Why what waits does not pass under this decision."""

        def joined(self, decision: Decision, sock: socket, up: TlsEnd) -> None:
            """It is connected, verified, and speaks what the client speaks."""

        def failed(self, reason: Reason, detail: str) -> None:
            """TLS came to nothing; with a clause for people. `way` is over."""

        def abort(self, reason: Reason) -> None:
            """End without an answer: the client tries again, and is judged from its beginning."""


def dial_again(waiting: Waiting) -> None:
    """Make a connection again; nothing that waits is sent before it stands."""
    opened = waiting.opened
    assert opened.decision is not None, "a connection that is read was allowed"
    destination = opened.decision.destination
    plan = waiting.task.plan(destination)
    if plan.destination != destination:
        waiting.abort(Reason.UPSTREAM_CLOSED)  # an address that stands for a name now: the client tries again
        return
    way = waiting.way = Redial(waiting, plan, opened.address)
    way.start()


class Redial(Way):
    """A way that ends in TLS: `joined` or one of the refusals of who waits is called, or it is cancelled.

    `address` is the text of the one to dial, '' where only the upstream proxy knows it.
    """

    __slots__ = ("_address", "_deadline", "_sock", "_up", "_waiting")

    def __init__(self, waiting: Waiting, plan: Plan, address: str) -> None:
        super().__init__(waiting.gate, waiting.task, plan, waiting, tunnel=True)
        self._waiting = waiting
        self._address = address
        self._sock: socket | None = None
        self._up: TlsEnd | None = None
        self._deadline: Timer | None = None

    def _allowed(self) -> None:
        waiting, decision = self._waiting, self.decision
        why_not = waiting.why_not(decision)
        if not self.task.reads(decision):
            waiting.abort(Reason.UPSTREAM_CLOSED)
        elif why_not is not None:
            self.decision = decision.refuse(why_not, fix="")
            self._refuse(why_not)
        else:
            super()._allowed()

    def _look_up(self) -> None:
        if self._address:
            family = AF_INET6 if ":" in self._address else AF_INET
            self._resolved(Answer((inet_pton(family, self._address),)))
        else:
            super()._look_up()

    # TLS.

    def shake(self, sock: socket, early: bytes) -> None:
        """The destination is connected; `early` came from it before it was spoken to."""
        waiting, gate = self._waiting, self.gate
        inspector = self.task.inspector
        assert inspector is not None, "whoever reads was asked"
        self._sock = sock
        self._cancel = self._drop
        spoken = waiting.down.tls.selected
        tls = inspector.upstream(self.decision.destination, (spoken,) if spoken else ())
        up = self._up = TlsEnd(gate.reactor, sock, tls)
        gate.reactor.watch(up.fd, self)
        self._deadline = gate.reactor.after(self.task.policy.limits.total_seconds, self._too_slow, self)
        if early:
            self._fail(Reason.UPSTREAM_TLS, "it spoke before it was spoken to")
        else:
            self._go_on(up)

    def ready(self, _fd: int, mask: int) -> None:
        """Something happened on the destination's socket."""
        up = self._up
        if up is None:
            return
        up.wake(mask)
        try:
            if mask & OUT:
                up.outlet.flush()
        except OSError:
            self._fail(*up.tls.why())
            return
        self._go_on(up)

    def _go_on(self, up: TlsEnd) -> None:
        try:
            if not up.shake():
                return
        except OSError:
            self._fail(*up.tls.why())
            return
        if up.tls.selected != self._waiting.down.tls.selected:
            self._fail(Reason.UPSTREAM_TLS, "it does not speak the protocol any more that it spoke at first")
            return
        sock, self._sock = self._sock, None
        assert sock is not None, "TLS is spoken on it"
        self._rest()
        self._waiting.joined(self.decision, sock, up)

    def _too_slow(self) -> None:
        self._deadline = None
        self._fail(Reason.UPSTREAM_TIMEOUT, "its TLS handshake does not end")

    def _fail(self, reason: Reason, detail: str) -> None:
        self._drop()
        self._waiting.way = None
        self._waiting.failed(reason, detail)

    def _rest(self) -> None:
        self._up = self._cancel = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _drop(self) -> None:
        self._rest()
        sock, self._sock = self._sock, None
        if sock is not None:
            self.gate.reactor.table.pop(sock.fileno(), None)
            sock.close()

    def cut(self, _reason: Reason) -> None:
        """The gate is ending; the client that waits cancels this."""

    def broken(self, error: Exception) -> None:
        """A bug: the client's connection ends, and this with it."""
        self._waiting.broken(error)
