"""What will be said of one connection (or one request on a keep-alive connection) once it has ended (JRN-1).

Rules of the file: an entry is opened where the client's request becomes known, filled in on the way, and written
exactly once. Nothing of a message but its method, host and sizes ever enters it (JRN-5).
"""

from __future__ import annotations

from tidegate.gate.redirected import came_from, note_redirect
from tidegate.model.event import Event
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask
    from tidegate.model.decision import Decision
    from tidegate.wire.errors import WireError

NOT_JUDGED = "malformed"  # the name and source of what never became a decision
SOURCE = "gate"


class Entry:
    """One line of the journal in the making. Set `decision` as soon as there is one; it carries rule and address."""

    __slots__ = (
        "address", "also", "at", "began", "count", "decision", "detail", "down", "gate", "host", "method", "number",
        "path", "port", "status", "task", "up",
    )  # fmt: skip

    def __init__(self, gate: Gate, task: GateTask, decision: Decision | None, method: str) -> None:
        self.gate: Gate | None = gate
        self.task = task
        self.at = gate.wall()
        self.began = gate.reactor.now
        self.decision = decision
        self.also: Decision | None = None  # of the name in the TLS of a tunnel to a literal, where a person was asked
        self.method = method
        self.host = ""  # only where no decision names one
        self.port = 0
        self.address = ""
        self.status = 0
        self.up = 0
        self.down = 0
        self.detail = ""
        self.path = ""  # of a refused call to a model service
        self.count = 1
        self.number = 0  # once somebody has looked at it while it was open (open_now.py)

    def leads_to(self, host: str, port: int) -> bool:
        """Whether this is about a canonical host and port: by its request, or by the name that its TLS named."""
        return any(
            decision is not None and (decision.destination.host.text, decision.destination.port) == (host, port)
            for decision in (self.decision, self.also)
        )

    def led(self, location: bytes) -> bool:
        """Take note that the answer leads elsewhere; whether it is refused for that (SRV-6)."""
        if self.decision is not None:
            note_redirect(self.task, self.decision.destination, location)
        return bool(location) and not self.task.redirected

    def came_from(self) -> str:
        """Say who has sent the task here, '' where nobody has."""
        return "" if self.decision is None else came_from(self.task, self.decision.destination)

    def malformed(self, error: WireError) -> None:
        """Name what a malformed request wanted, as far as it was clear."""
        destination = error.destination
        self.host = error.raw if destination is None else destination.host.text
        self.port = 0 if destination is None else destination.port

    def write(self, how: How, reason: Reason) -> None:
        """Hand the event to the recorder; the second call and later ones do nothing."""
        gate = self.gate
        if gate is not None:
            event = self.event(how, reason)
            self.gate = None
            gate.record(event, self.task.recorder)

    def event(self, how: How, reason: Reason) -> Event:
        """Return the event as it would be written now, before it is."""
        gate, decision = self.gate, self.decision
        assert gate is not None, "it is not written yet"
        duration = gate.clock() - self.began
        if decision is None:
            return Event(
                self.at, self.task.id, self.task.phase, Verdict.DENY, "", NOT_JUDGED, SOURCE, self.host, self.port,
                reason, how, self.address, self.status, self.up, self.down, duration, self.method, self.count,
                self.detail,
            )  # fmt: skip
        rule, destination = decision.rule, decision.destination
        return Event(
            self.at, self.task.id, decision.phase, decision.verdict, "" if rule is None else rule.text,
            decision.name, decision.source, destination.host.text, destination.port, reason, how,
            self.address or decision.address, self.status, self.up, self.down, duration, self.method,
            self.count, self.detail, decision.fix if how is How.REFUSED else "",
            how is not How.REFUSED and decision.phase is not self.task.phase, self.number, self.path,
        )  # fmt: skip
