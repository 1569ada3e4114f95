"""What a gate in a process of its own has open, written where its front finds it if the gate is killed (HLD-7, JRN-1).

Rules of the file:

* A connection on its way costs nothing: `AFTER` seconds after a turn in which something was open, what is open by then
  is written down, and again as long as something changes. One that is over before has its line in the log.
* A slot is cleared after the line of its connection is in the log, never before.
"""

from __future__ import annotations

from tidegate.journal.line import line_of
from tidegate.journal.open_lines import SLOTS, fits, put_line
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.gate.gate import Gate
    from tidegate.gate.open_now import Glance
    from tidegate.gate.task import GateTask

AFTER = 0.2  # seconds


class OpenTable:
    """See the head of the file. `fd` is the memory; everything on the gate's thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._free = list(range(SLOTS, 0, -1))  # numbers: a slot's is one more than its place
        self._noted: dict[int, tuple[Any, ...]] = {}  # what was written, by number
        self._ended: set[int] = set()
        self._gate: Gate | None = None
        self._task: GateTask | None = None

    def serve(self, gate: Gate, task: GateTask) -> None:
        """Watch over the connections of this task."""
        self._gate, self._task = gate, task
        gate.lookout = self._soon

    def ended(self, number: int) -> None:
        """The line of the connection with this number is on its way into the log."""
        self._ended.add(number)

    def flushed(self) -> None:
        """It is there."""
        ended, self._ended = self._ended, set()
        for number in ended:
            if self._noted.pop(number, None):
                self._put(number, b"")
            self._free.append(number)

    def _soon(self) -> None:
        gate = self._gate
        assert gate is not None, "it serves a gate"
        gate.lookout = None
        gate.later(AFTER, self._look)

    def _look(self) -> None:
        from tidegate.gate.open_now import open_now

        gate, task = self._gate, self._task
        assert gate is not None, "it serves a gate"
        assert task is not None, "likewise"
        room = SLOTS - len(self._ended)  # theirs are free once the turn is over
        glances, _more = open_now(gate, (task,), room, self._free.pop)
        changed = False
        for one in glances:
            state = (one.state, one.how, one.up, one.down, one.decision)
            if self._noted.get(one.entry.number) != state:
                self._noted[one.entry.number] = state
                self._note(one)
                changed = True
        if changed:
            gate.later(AFTER, self._look)
        else:
            gate.lookout = self._soon  # with the next turn in which something happens

    def _note(self, one: Glance) -> None:
        how = How(one.how) if one.how else How.REFUSED
        event = one.entry.event(how, Reason.GATE_LOST).replace(bytes_up=one.up, bytes_down=one.down)
        line = line_of(event).rstrip(b"\n")
        self._put(one.entry.number, line if fits(line) else b"")

    def _put(self, number: int, line: bytes) -> None:
        try:
            put_line(self._fd, number - 1, line)
        except OSError:
            return  # no memory: what is open now would be missing if the gate were killed as well
