"""What went around the gate and failed at once, as the kernel's side reports it (JRN-3).

One line at most in five seconds for the same protocol, address and port (bursts.py).
"""

from __future__ import annotations

from tidegate.gate.bursts import Bursts
from tidegate.gate.captured import destination_of
from tidegate.gate.record import Entry
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.host import Host
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.policy.decide import NEVER_SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask

DNS = 53
DNS_LOOKUPS = "DNS lookups (port 53)"
_NAMES = {"tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "other": "IP"}


class DirectAttempts:
    """Attempts of one task that no rule could let through."""

    __slots__ = ("_bursts", "_gate", "_task")

    def __init__(self, gate: Gate, task: GateTask) -> None:
        self._gate = gate
        self._task = task
        self._bursts = Bursts(gate.reactor, self._write)

    def record(self, protocol: str, packed: bytes, port: int) -> None:
        """Take one attempt. `protocol` is `tcp`, `udp`, `icmp` or `other`; the port is 0 where there is none."""
        self._bursts.take((protocol, packed, port))

    def close(self) -> None:
        """Write the counts that wait."""
        self._bursts.close()

    def _write(self, kind: tuple[str, bytes, int], count: int) -> None:
        protocol, packed, port = kind
        reason = Reason.AROUND_GATE if protocol == "tcp" else Reason.NOT_TCP
        self._refuse(destination_of(self._task, (packed, port)), reason, protocol, count)

    def record_dns(self) -> None:
        """Take look-ups that nobody answered, all at once: where, and how often, says nothing."""
        self._refuse(Destination(Host(DNS_LOOKUPS), 0), Reason.DNS_AROUND, "udp", 1)

    def _refuse(self, destination: Destination, reason: Reason, protocol: str, count: int) -> None:
        decision = Decision(Verdict.DENY, destination, self._task.phase, reason, None, reason.word, NEVER_SOURCE)
        entry = Entry(self._gate, self._task, decision, _NAMES.get(protocol, "IP"))
        entry.count = count
        entry.write(How.REFUSED, reason)
