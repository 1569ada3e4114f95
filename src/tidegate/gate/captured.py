"""A connection that was captured: made to an address, and judged as a CONNECT to the name behind it (HLD-6).

Rules of the file:

* A synthetic address is turned back into the name it was given to; one that was given to none is refused. Any other
  address is a literal and needs a rule for literals (ADR-6).
* From there it is the life of a CONNECT: the same Decision, the same look-up after the verdict (ADR-4), the same look
  at the first bytes (GAT-9), where the name in TLS or in a Host must be the captured one. Only nobody is told "200".
* A client that is refused is told so in its own protocol (parting.py).
"""

from __future__ import annotations

from tidegate.addresses.admission import address_text
from tidegate.gate.connection import Client
from tidegate.gate.listener import Listener
from tidegate.gate.original import finder
from tidegate.gate.parting import Parting, reset
from tidegate.gate.record import Entry
from tidegate.gate.states import Stage
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.host import Host
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.policy.decide import NEVER_SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.gate import Gate
    from tidegate.gate.original import Place
    from tidegate.gate.task import GateTask, Plan

METHOD = "TCP"  # what the journal has in the place of an HTTP method


class Captured(Client):
    """One captured connection, until it is a tunnel or refused."""

    __slots__ = ()

    listener: CaptureListener

    def begin(self) -> None:
        """Find out where it was going. Nothing of what the client sends is read before the verdict."""
        try:
            place = self.listener.find(self.sock)
        except OSError:
            self.fail(Reason.NOT_ISSUED, "")
            return
        plan = self.task.captured.get(place)
        if plan is None:
            destination = destination_of(self.task, place)
            reason = impossible(self.task, destination)
            if reason is not None:
                decision = Decision(Verdict.DENY, destination, self.task.phase, reason, None, reason.word, NEVER_SOURCE)
                self.entry = Entry(self.gate, self.task, decision, METHOD)
                self.refused(decision, decision.reason, None, ())
                return
            plan = self.task.plan(destination)
            self.task.captured[place] = plan
        self.connect(plan, b"", METHOD)

    def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
        """The destination is connected: become a tunnel."""
        entry = self.entry
        assert entry is not None, "a way belongs to a destination"
        self.way = None
        entry.decision = decision
        entry.address = address
        self.join(sock, entry, early, How.CAPTURED)

    def refused(self, decision: Decision, reason: Reason, plan: Plan | None, tried: tuple[str, ...]) -> None:  # noqa: ARG002 - the traveller's seam
        """The policy, a person, an address or the network said no."""
        entry, decision = self.settle(decision, reason, tried)
        entry.write(How.REFUSED, reason)
        self._disarm()
        self.enter(Stage.REFUSING)
        Parting(self.gate, self.listener, self.sock, decision, reason, tried, watched=self.watched)

    def fail(self, reason: Reason, detail: str) -> None:  # noqa: ARG002 - as the base has it
        """The destination is unknown, or the gate failed."""
        entry = self.entry or Entry(self.gate, self.task, None, METHOD)
        entry.write(How.REFUSED, reason)
        if self.stage < Stage.REFUSING:
            self._disarm()
            way, self.way = self.way, None
            if way is not None:
                way.cancel()
            self.stage = Stage.CLOSED
            self.gate.reactor.table.pop(self.fd, None)
            reset(self.sock)
            self.listener.left(self.fd)


class CaptureListener(Listener):
    """A listening socket that connections to anywhere arrive at. `find` says where one was going."""

    __slots__ = ("find",)

    client = Captured
    defer = False  # ssh and databases speak first
    batch = 1  # a refusal costs as much as an answer: a flood of them takes its turn with everybody's bytes

    def __init__(self, gate: Gate, fd: int, task: GateTask, way: str | Destination) -> None:
        """Take over a listening TCP socket.

        Raises:
            OSError: when `fd` is no such socket; it is still the caller's then.
            ValueError: when there is no such way; likewise.
        """
        self.find = finder(way)
        super().__init__(gate, fd, task)

    def turn_away(self, sock: socket) -> None:
        """As the base has it, with where the connection was going."""
        try:
            destination = destination_of(self.task, self.find(sock))
        except OSError:
            super().turn_away(sock)
            return
        reason = Reason.TOO_MANY_CONNECTIONS
        decision = self.task.plan(destination).decision.refuse(reason, fix="")
        Entry(self.gate, self.task, decision, METHOD).write(How.REFUSED, reason)
        sock.close()


def destination_of(task: GateTask, place: Place) -> Destination:
    """Return what a place is to the policy: a name where its address was given to one, else the literal."""
    if isinstance(place, Destination):
        return place
    met = task.met.get(place)
    if met is not None:
        return met
    packed, port = place
    synthetic = task.synthetic
    host = synthetic.name(packed) if synthetic is not None else None
    return Destination(Host(address_text(packed), packed) if host is None else host, port)


def impossible(task: GateTask, destination: Destination) -> Reason | None:
    """Why no policy can let a destination through: an address that only a name could have, or a port that is none."""
    packed = destination.host.packed
    if packed is not None and task.synthetic is not None and task.synthetic.ranges.hold(packed):
        return Reason.NOT_ISSUED
    return None if destination.port else Reason.BAD_PORT
