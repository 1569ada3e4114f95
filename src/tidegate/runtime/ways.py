"""What a task's way out depends on, as its front watches it: the gate, and what leads there (HLD-7).

Rules of the file: nothing here waits. What is gone is a sentence by which the front ends the task; where the task may
come to the next server (comeback.py), the end of this one is none.
"""

from __future__ import annotations

import os

from tidegate.runtime.outcome import GATE_GONE, WAY_GONE, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.runtime.comeback import Comeback

_PIECE = 65536


class Ways:
    """See the head of the file.

    `gate` is a descriptor whose end of file means that the gate is gone, None where there is none; what comes on it
    goes to `heard`, which says why the task must end, or ''. `gone` is what is said then, '' where the task has nothing
    to lose by it. `way` is readable once something between is gone, -1 where nothing is. `tell` says a line to who is
    there.
    """

    def __init__(
        self,
        gate: int | None,
        heard: Callable[[bytes], str] | None = None,
        gone: str = GATE_GONE,
        way: int = -1,
        comeback: Comeback | None = None,
    ) -> None:
        self.tell: Callable[[str], None] = say
        self._gate = -1 if gate is None else gate
        self._heard = heard
        self._gone = gone
        self._way = way
        self._comeback = comeback

    def watched(self) -> tuple[int, ...]:
        """Return the descriptors to wait for."""
        comeback = self._comeback.fileno() if self._comeback is not None else -1
        return tuple(fd for fd in (self._gate, self._way, comeback) if fd >= 0)

    def look(self, ready: Mapping[int, int]) -> str:
        """Take what came; return why the task must end, '' where it need not."""
        why = WAY_GONE if self._way in ready else ""
        if self._gate >= 0 and self._gate in ready:
            why = self._hear_gate() or why
        elif self._comeback is not None and self._comeback.fileno() in ready:
            why = self._hear_comeback(self._comeback) or why
        if why:
            self._way = -1  # it is said once
        return why

    def close(self) -> None:
        """The task has ended: nobody comes back."""
        if self._comeback is not None:
            self._comeback.close()

    def _hear_gate(self) -> str:
        try:
            data = os.read(self._gate, _PIECE)
        except BlockingIOError:
            return ""
        except OSError:
            data = b""
        comeback = self._comeback
        if not data:
            self._gate = -1
            if comeback is None:
                return self._gone
            self.tell(comeback.begin())
            return ""
        why = self._heard(data) if self._heard is not None else ""
        return "" if comeback is not None and comeback.may_return() else why

    def _hear_comeback(self, comeback: Comeback) -> str:
        said, gate, why = comeback.hear()
        for line in said:
            self.tell(line)
        if gate >= 0:
            self._gate = gate
        return why
