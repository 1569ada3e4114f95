"""Short ways to write lines of a task's record, and contacts as they are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.journal.events import event, refused
from tidegate.journal.line import line_of
from tidegate.model.contact import Contact
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-11-29T00:00:00.125Z"


def line(**changes: Any) -> bytes:
    """Return the line of a connection that passed, with changes."""
    return line_of(event(**changes))


def no(**changes: Any) -> bytes:
    """Return the line of a refusal, with changes."""
    return line_of(refused(**changes))


def written(path: Path, *lines: bytes) -> str:
    """Write a record and return its path."""
    path.write_bytes(b"".join(lines))
    return str(path)


def contact(host: str = "a.test", port: int = 443, **changes: Any) -> Contact:
    """Return a connection that passed, with changes."""
    base: dict[str, Any] = {
        "at": AT,
        "phase": Phase.RUNTIME,
        "how": How.TUNNELED,
        "reason": Reason.ALLOWED.word,
        "name": "no-rule",
        "source": "profile audit",
    }
    return Contact(host=host, port=port, **(base | changes))


def refusal(host: str = "b.test", port: int = 443, reason: Reason = Reason.NO_RULE, **changes: Any) -> Contact:
    """Return a refusal, with changes."""
    return contact(host, port, how=How.REFUSED, reason=reason.word, **changes)
