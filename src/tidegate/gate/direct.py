"""What went around the gate and failed at once, as the kernel's side reports it: UDP and what is not TCP (JRN-3).

One line at most in five seconds for the same protocol, address and port (bursts.py).
"""

from __future__ import annotations

from tidegate.gate.bursts import Bursts
from tidegate.gate.captured import destination_of
from tidegate.gate.record import Entry
from tidegate.model.decision import Decision
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.policy.decide import NEVER_SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask

_NAMES = {"udp": "UDP", "icmp": "ICMP", "other": "IP"}


class DirectAttempts:
    """Attempts of one task that no rule could let through."""

    __slots__ = ("_bursts", "_gate", "_task")

    def __init__(self, gate: Gate, task: GateTask) -> None:
        self._gate = gate
        self._task = task
        self._bursts = Bursts(gate.reactor, self._write)

    def record(self, protocol: str, packed: bytes, port: int) -> None:
        """Take one attempt. `protocol` is `udp`, `icmp` or `other`; the port is 0 where there is none."""
        self._bursts.take((protocol, packed, port))

    def close(self) -> None:
        """Write the counts that wait."""
        self._bursts.close()

    def _write(self, kind: tuple[str, bytes, int], count: int) -> None:
        protocol, packed, port = kind
        reason = Reason.NOT_TCP
        destination = destination_of(self._task, (packed, port))
        decision = Decision(Verdict.DENY, destination, self._task.phase, reason, None, reason.word, NEVER_SOURCE)
        entry = Entry(self._gate, self._task, decision, _NAMES.get(protocol, "IP"))
        entry.count = count
        entry.write(How.REFUSED, reason)
