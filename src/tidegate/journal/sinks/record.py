"""What a sink is given: a line of the action log, how severe it is, and which of them a sink wants.

A record's `raw` is the line as it stands in the log, so its hash is the one that the next line names. Gaps, a log that
was begun anew and tests are records of tidegate's own in between; they have no seal. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.chain import GENESIS
from tidegate.journal.line import timestamp
from tidegate.journal.sinks.kinds import check_kind
from tidegate.model.errors import UsageError
from tidegate.model.value import Value

if TYPE_CHECKING:
    from tidegate.journal.chain import SealedLine

SEVERITIES: Final = {"critical": 2, "error": 3, "warning": 4, "notice": 5, "info": 6}
"""By name, as RFC 5424 numbers them (6.2.1): the smaller, the worse."""

GAP: Final = "sink.gap"
ANEW: Final = "sink.log-anew"
TEST: Final = "sink.test"
_KINDS: Final = {
    "journal.broken": 2, "journal.cut": 2, "hold.table-lost": 2,
    "journal.lost": 3, "journal.torn": 3, GAP: 3, ANEW: 3, "server.stalled": 3, "way.silent": 3,
    "hold.unavailable": 3,
    "net.blocked": 4, "egress.refused": 4, "open.network": 4, "peer.refused": 4,
    "server.started": 6, "server.stopped": 6,
}  # fmt: skip
_FAMILIES: Final = {"question": 5, "rule": 5, "settings": 5, "token": 5, "sink": 5, "secret": 5}
_MOST_KINDS = 50
_ID_DIGITS = 16  # of the hash: what tells two logs apart that count alike


class Position(Value):
    """How far a sink has come: the number and hash of the last line that was confirmed; hash '' where it is unknown."""

    seq: int = 0
    hash: str = GENESIS


class Record(Value, hot=True):
    """One line: its number, its hash, its bytes without the newline, and what they say. `first` is above 0 in a gap."""

    seq: int
    hash: str
    raw: bytes
    kind: str
    task: str
    at: str
    fields: dict[str, Any]
    first: int = 0

    @property
    def severity(self) -> int:
        """Return its severity, as RFC 5424 numbers them."""
        return _KINDS.get(self.kind) or _FAMILIES.get(self.kind.partition(".")[0], 6)

    @property
    def id(self) -> str:
        """Return what is the same each time that this record is sent, and never that of another."""
        if self.kind == GAP:
            return f"gap-{self.first}-{self.seq}"
        if self.kind == ANEW:
            return f"anew-{self.fields['before']}-{self.seq}"
        if self.kind == TEST:
            return f"test-{self.at}"
        return f"{self.seq}-{self.hash[:_ID_DIGITS]}"


def record_of(line: SealedLine, raw: bytes) -> Record | None:
    """Return a sealed line as a record, None for what is none of this log's."""
    fields = line.fields
    if fields is None or not line.seq:
        return None
    kind, task, at = (str(fields.get(name, "")) for name in ("type", "task", "at"))
    return Record(line.seq, line.hash, raw, kind, task, at, fields)


def gap(first: int, last: int, now: float) -> Record:
    """Return the record that says that these lines are gone: no file had them any more when they were looked for."""
    return _own(last, "", GAP, now, first, {"first": first, "last": last, "count": last - first + 1})


def anew(before: int, at: Position, now: float) -> Record:
    """Return the record that says that the log is not what was followed up to `before`.

    What follows comes behind `at`, which is the newest known line that is still in it, or its beginning.
    """
    return _own(at.seq, at.hash, ANEW, now, 0, {"before": before})


def trial(sink: str, now: float) -> Record:
    """Return the record by which a person tries a sink: it is no line of the log, and says so; its number is 0."""
    return _own(0, "", TEST, now, 0, {"sink": sink, "note": "a test of this sink, and no line of the log"})


def _own(seq: int, hash_: str, kind: str, now: float, first: int, more: dict[str, Any]) -> Record:
    at = timestamp(now)
    fields = {"seq": seq, "at": at, "type": kind, "task": "", **more}
    raw = json.dumps(fields, separators=(",", ":")).encode("ascii")
    return Record(seq, hash_, raw, kind, "", at, fields, first)


class Wanted(Value):
    """Which records a sink gets: of these types (all, where there is none; `net.*` is a family), at least so severe.

    What tidegate says of the log itself (`sink.gap`) is always wanted.
    """

    kinds: tuple[str, ...] = ()
    least: str = "info"

    def __call__(self, record: Record) -> bool:
        """Whether it is wanted."""
        if record.kind in (GAP, ANEW):
            return True
        if record.severity > SEVERITIES[self.least]:
            return False
        return not self.kinds or any(_is(record.kind, kind) for kind in self.kinds)


def wanted(kinds: list[str], least: str) -> Wanted:
    """Return a filter.

    Raises:
        UsageError: for a type or a severity that cannot be.
    """
    if least not in SEVERITIES:
        raise UsageError(f"min {ascii(least)[:40]} is no severity", fix=f"one of {', '.join(SEVERITIES)}")
    if len(kinds) > _MOST_KINDS:
        raise UsageError(f"{len(kinds)} types are too many", fix=f"at most {_MOST_KINDS}")
    for kind in kinds:
        check_kind(kind)
    return Wanted(tuple(kinds), least)


def _is(kind: str, pattern: str) -> bool:
    return kind.startswith(pattern[:-1]) if pattern.endswith(".*") else kind == pattern
