"""Which hosts were reached and refused, and how often: what the portal's charts show (SRV-3).

A connection that was not made although nothing refused it (`is_refusal`: its client went away) is neither.

Counted as it happens, from the events that become lines of a journal, or from a journal that is read again. Bounded:
past `HOSTS` hosts the rest is counted as one, whose name is `*`, as no host is called.
"""

from __future__ import annotations

from tidegate.journal.summary import FIELDS, is_refusal
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tidegate.journal.summary import Row
    from tidegate.model.event import Event

HOSTS = 1000
OTHERS = "*"
_HOST, _PORT, _VERDICT, _HOW, _REASON, _COUNT, _UP, _DOWN = map(
    FIELDS.index, ("host", "port", "verdict", "how", "reason", "count", "bytes_up", "bytes_down")
)


class Reached:
    """The counts. On one thread."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], list[int]] = {}

    def add(self, event: Event) -> None:
        """Count one event."""
        refused = is_refusal(event.verdict.value, event.how.value, event.reason.word)
        if refused or event.how is not How.REFUSED:
            self._add(event.host, event.port, event.count, event.bytes_up + event.bytes_down, refused=refused)

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Count what a journal had."""
        for row in rows:
            fields: Any = row
            refused = is_refusal(fields[_VERDICT], fields[_HOW], fields[_REASON])
            if refused or fields[_HOW] != How.REFUSED.value:
                moved = fields[_UP] + fields[_DOWN]
                self._add(fields[_HOST], fields[_PORT], fields[_COUNT], moved, refused=refused)

    def rows(self, limit: int) -> dict[str, Any]:
        """Return the hosts with the most connections first, and how many others there are."""
        order = sorted(self._counts.items(), key=lambda one: (-one[1][0] - one[1][1], one[0]))
        names = ("host", "port", "reached", "refused", "bytes")
        hosts = [dict(zip(names, (*place, *counts), strict=True)) for place, counts in order[:limit]]
        return {"hosts": hosts, "more": max(0, len(order) - limit)}

    def _add(self, host: str, port: int, count: int, moved: int, *, refused: bool) -> None:
        counts = self._counts.get((host, port))
        if counts is None:
            place = (host, port) if len(self._counts) < HOSTS else (OTHERS, 0)
            counts = self._counts.setdefault(place, [0, 0, 0])
        counts[1 if refused else 0] += count
        counts[2] += moved
