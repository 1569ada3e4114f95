"""A task's refusals as lines of the action log (JRN-3, JRN-4).

* `net.blocked` for each refusal, `host` being `name:port`; a burst of the same is folded into lines with a count,
  none lost.
  Look-ups that went around the gate come once for a task, as `DNS lookups (port 53)`.
* `egress.refused` once for each host of the task; past `HOSTS` of them one last, which says `suppressed`. They are
  refused all the same.

Pure: the clock is the events' own.
"""

from __future__ import annotations

from tidegate.journal.fold import Fold
from tidegate.journal.summary import is_refusal
from tidegate.model.host import bracketed
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.model.event import Event

HOSTS = 100  # JRN-4

Line = tuple[str, dict[str, "Any"]]
"""Type and fields, as ActionLog.append takes them."""


class RefusalLines:
    """Turns the events of one task into lines; what is no refusal gives none."""

    def __init__(self) -> None:
        self._fold = Fold()
        self._hosts: set[str] = set()
        self._suppressed = False

    def take(self, event: Event) -> list[Line]:
        """Return the lines to write now that this happened."""
        if not is_refusal(event.verdict.value, event.how.value, event.reason.word):
            return []
        lines = [_blocked(written) for written in self._fold.take(event)]
        if event.host and event.host not in self._hosts and not self._suppressed:
            fields: dict[str, Any] = {
                "host": event.host, "port": event.port, "phase": event.phase.value, "reason": event.reason.word,
            }  # fmt: skip
            if len(self._hosts) >= HOSTS:
                self._suppressed = fields["suppressed"] = True
            else:
                self._hosts.add(event.host)
            lines.append(("egress.refused", fields))
        return lines

    def due(self, now: float) -> list[Line]:
        """Return the counts whose time has come at `now` (Unix seconds)."""
        return [_blocked(event) for event in self._fold.due(now)]

    def rest(self) -> list[Line]:
        """Return every count that waits: the task ends."""
        return [_blocked(event) for event in self._fold.rest()]


def _blocked(event: Event) -> Line:
    host = f"{bracketed(event.host)}:{event.port}"
    if event.reason is Reason.DNS_AROUND:
        host = event.host  # all of a task's at once: no one place
    fields: dict[str, Any] = {
        "host": host, "phase": event.phase.value, "reason": event.reason.word, "rule": event.rule, "name": event.name,
    }  # fmt: skip
    if event.address:
        fields["address"] = event.address
    if event.path:
        fields["path"] = event.path
    if event.count != 1:
        fields["count"] = event.count
    return ("net.blocked", fields)
