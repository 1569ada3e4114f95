"""The types of line that the action log has: what a sink can be told to send (JRN-6).

A closed set, since a type that is written wrong would leave everything out in silence. A test holds it to the source
and to docs/action-log.md. What an older version kept is not looked at again. Pure.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from tidegate.model.errors import UsageError

KINDS: Final = frozenset((
    "egress.refused", "exec.ended", "exec.started", "hold.table-lost", "hold.unavailable", "journal.broken",
    "journal.cut", "journal.lost", "journal.torn", "net.blocked", "open.network", "peer.refused", "question.answered",
    "question.ended", "question.expired", "question.opened", "rule.forgotten", "rule.remembered", "secret.forgotten",
    "secret.given", "secret.set", "secret.used", "server.stalled", "server.started", "server.stopped",
    "settings.changed", "sink.gap", "sink.log-anew", "sink.removed", "sink.set", "sink.test", "task.changed",
    "task.created", "task.ended", "task.phase", "token.created", "token.revoked", "tool.called", "way.back",
    "way.silent",
))  # fmt: skip
FAMILIES: Final = frozenset(f"{kind.partition('.')[0]}.*" for kind in KINDS)


def check_kind(kind: str) -> None:
    """See whether a line can be of this type, or of this family (`task.*`).

    Raises:
        UsageError: when not, with the nearest that there is.
    """
    if kind in KINDS or kind in FAMILIES:
        return
    near = get_close_matches(kind[:80], sorted(KINDS | FAMILIES), 1, 0.6)
    fix = f"did you mean {near[0]}?" if near else "such as net.blocked, or task.*; docs/action-log.md lists them"
    raise UsageError(f"{ascii(kind)[:80]} is no type of the log", fix=fix)
