"""What went around the gate and failed at once, as the kernel's side reports it: UDP and what is not TCP (JRN-3).

Rules of the file: one line at most in `WINDOW` seconds for the same protocol, address and port; what came meanwhile is
the next line's count, so none is lost. Kinds are bounded: past `KINDS` the oldest is written out and forgotten.
"""

from __future__ import annotations

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

WINDOW = 5.0  # seconds (JRN-3)
KINDS = 256
_NAMES = {"udp": "UDP", "icmp": "ICMP", "other": "IP"}


class DirectAttempts:
    """Attempts of one task that no rule could let through."""

    __slots__ = ("_counts", "_gate", "_task")

    def __init__(self, gate: Gate, task: GateTask) -> None:
        self._gate = gate
        self._task = task
        self._counts: dict[tuple[str, bytes, int], int] = {}

    def record(self, protocol: str, packed: bytes, port: int) -> None:
        """Take one attempt. `protocol` is `udp`, `icmp` or `other`; the port is 0 where there is none."""
        kind = (protocol, packed, port)
        count = self._counts.get(kind)
        if count is not None:
            self._counts[kind] = count + 1
            return
        if len(self._counts) >= KINDS:
            oldest = next(iter(self._counts))
            self._write(oldest, self._counts.pop(oldest))
        self._counts[kind] = 0
        self._write(kind, 1)
        self._gate.reactor.after(WINDOW, lambda: self._look(kind))

    def _look(self, kind: tuple[str, bytes, int]) -> None:
        count = self._counts.pop(kind, 0)
        if count:
            self._counts[kind] = 0
            self._write(kind, count)
            self._gate.reactor.after(WINDOW, lambda: self._look(kind))

    def close(self) -> None:
        """Write the counts that wait."""
        while self._counts:
            self._write(*self._counts.popitem())

    def _write(self, kind: tuple[str, bytes, int], count: int) -> None:
        if not count:
            return
        protocol, packed, port = kind
        reason = Reason.NOT_TCP
        destination = destination_of(self._task, (packed, port))
        decision = Decision(Verdict.DENY, destination, self._task.phase, reason, None, reason.word, NEVER_SOURCE)
        entry = Entry(self._gate, self._task, decision, _NAMES.get(protocol, "IP"))
        entry.count = count
        entry.write(How.REFUSED, reason)
