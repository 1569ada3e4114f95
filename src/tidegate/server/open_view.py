"""What tasks have open now, for those who look on: a reading, and from then on what changes (SRV-3).

    {"task": ID, "opened": [connection, ...], "moved": [[id, bytes up, bytes down], ...], "ended": [id, ...], "more": N}

Rules of the file:

* A task is looked at for `LEASE` seconds from each reading of it. Only then is anything compared, `EVERY` seconds
  apart; tasks that nobody looks at cost nothing, and neither do connections on their way.
* What comes after a reading is told as differences, each good by itself: `opened` has the whole connection, also where
  one that is known has changed, so that whoever hears it twice is not wrong.
* Bounded: so many tasks, so many connections of each, and the bus keeps but the latest of it.

Everything but `look` runs on the gate's thread.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tidegate.gate.open_now import open_now
from tidegate.server.shapes import open_shape

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tidegate.gate.gate import Gate
    from tidegate.gate.open_now import Glance
    from tidegate.server.gate_thread import GateThread
    from tidegate.server.living import Living

LEASE = 15.0  # seconds
EVERY = 0.25  # seconds between two comparisons
MOST_TASKS = 32  # looked at at once; who looked longest ago looks no more
MOST_OPEN = 512  # connections of one task that are shown at once
EVENT = "open"


class OpenView:
    """See the head of the file. `publish` tells the bus, from any thread."""

    def __init__(self, gate: GateThread, publish: Callable[[str, dict[str, Any]], None]) -> None:
        self._gate = gate
        self._publish = publish
        self._looks: dict[str, _Look] = {}  # by task; the newest last
        self._numbers = count(1)
        self._ticking = False

    async def look(self, task: Living) -> dict[str, Any]:
        """Return what a task has open now, and have what changes told for a while."""
        return await self._gate.call(lambda: self._read(task))

    def _read(self, task: Living) -> dict[str, Any]:
        look = self._looks.pop(task.id, None)
        fresh = look is None
        if look is None:
            look = _Look(task)
        self._looks[task.id] = look
        while len(self._looks) > MOST_TASKS:
            del self._looks[next(iter(self._looks))]
        gate = self._gate.gate
        look.until = gate.clock() + LEASE
        changes = look.again(gate, self._number)
        if changes is not None and not fresh:
            self._publish(EVENT, changes)  # those who look already are to be as far
        if not self._ticking:
            self._ticking = True
            gate.later(EVERY, self._tick)
        return {"open": [open_shape(one) for one in look.seen.values()], "more": look.more, "seconds": LEASE}

    def _number(self) -> int:
        return next(self._numbers)

    def _tick(self) -> None:
        gate = self._gate.gate
        now = gate.clock()
        for look in list(self._looks.values()):
            changes = look.again(gate, self._number)
            if changes is not None:
                self._publish(EVENT, changes)
            if look.until < now or look.over:
                del self._looks[look.task.id]
        self._ticking = bool(self._looks)
        if self._ticking:
            gate.later(EVERY, self._tick)


class _Look:
    """One task that is looked at, and what was seen of it last."""

    def __init__(self, task: Living) -> None:
        self.task = task
        self.until = 0.0
        self.seen: dict[int, Glance] = {}
        self.more = 0

    @property
    def over(self) -> bool:
        """Whether there is nothing more to see."""
        return self.task.ending and not self.seen

    def again(self, gate: Gate, number: Callable[[], int]) -> dict[str, Any] | None:
        """Look again; return what has changed, None where nothing has."""
        tasks = [one.gate_task for one in list(self.task.execs.values()) if one.gate_task is not None]
        glances, more = open_now(gate, tasks, MOST_OPEN, number)
        before, self.seen = self.seen, {one.entry.number: one for one in glances}
        opened, moved = [], []
        for id_, one in self.seen.items():
            old = before.pop(id_, None)
            if old is None or not one.is_as(old):
                opened.append(open_shape(one))
            elif (one.up, one.down) != (old.up, old.down):
                moved.append((id_, one.up, one.down))
        changed = bool(opened or moved or before or more != self.more)
        self.more = more
        if not changed:
            return None
        return {"task": self.task.id, "opened": opened, "moved": moved, "ended": list(before), "more": more}
