"""What the connections of a task are doing now, for those who look on.

Rules of the file:

* Nothing is kept for it: a look goes through the task's own sockets, and what nobody looks at costs nothing.
* A connection (or a request on a keep-alive connection) that was looked at has a number from then on, which nothing
  else ever has. At most so many are shown at once; those that are shown stay until they end.
"""

from __future__ import annotations

from tidegate.gate.states import Stage
from tidegate.gate.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tidegate.gate.gate import Gate
    from tidegate.gate.record import Entry
    from tidegate.gate.task import GateTask

WAITING, CONNECTING, OPEN = "waiting", "connecting", "open"
"""A person is asked; the name is looked up and the address tried; bytes may move."""


class Glance:
    """One connection at one moment. `up` and `down` are bytes away from the task and to it; `how` is '' until open."""

    __slots__ = ("decision", "down", "entry", "how", "state", "up")

    def __init__(self, handler: Any) -> None:
        entry: Entry = handler.entry
        self.entry = entry
        self.decision = entry.decision
        self.how = ""
        self.state = OPEN
        if isinstance(handler, Tunnel):
            self.up, self.down = handler.sizes
            self.how = handler.how.value
            if handler.judge is not None and handler.judge.waiting:
                self.state = WAITING
            return
        self.up, self.down = entry.up, entry.down
        way = getattr(handler, "way", None)
        if way is not None:
            self.state = WAITING if way.stage is Stage.ASKING else CONNECTING
        elif hasattr(handler, "how"):  # whatever reads HTTP
            self.how = handler.how.value

    def is_as(self, other: Glance) -> bool:
        """Whether nothing but bytes has moved since the other one, of the same connection."""
        return self.state == other.state and self.how == other.how and self.decision is other.decision


def open_now(gate: Gate, tasks: Iterable[GateTask], most: int, number: Callable[[], int]) -> tuple[list[Glance], int]:
    """Return the open connections of these commands, the oldest first, and how many more there are than `most`.

    `number` gives numbers to those that were never looked at. On the gate's thread.
    """
    known: list[Any] = []
    fresh: list[Any] = []
    for task in tasks:
        for handler in gate.handlers(task):
            entry: Entry | None = getattr(handler, "entry", None)
            if entry is not None and entry.gate is not None and entry.decision is not None:
                (known if entry.number else fresh).append(handler)
    fresh.sort(key=lambda handler: handler.entry.at)
    taken = fresh[: max(0, most - len(known))]
    for handler in taken:
        handler.entry.number = number()
    known += taken
    known.sort(key=lambda handler: handler.entry.number)
    return [Glance(handler) for handler in known], len(fresh) - len(taken)
