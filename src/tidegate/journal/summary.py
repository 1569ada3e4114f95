"""What a person reads after a command: one `net:` line for each host:port, verdict and rule (JRN-1).

The gate's process keeps the counts and hands them over as plain rows when the task ends; the front renders them.
When the gate was killed the rows are read back from the log instead. Kinds are bounded: a task that tries a million
hosts gets `KINDS` lines and one that counts the rest.
"""

from __future__ import annotations

from tidegate.model.host import bracketed
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.event import Event

KINDS = 200
_MAX_HOST = 256

Row = tuple[str, int, str, str, str, str, str, str, str, str, int, int, int]
"""host, port, verdict, how, reason, rule, name, source, fix, phase, count, bytes up, bytes down: marshal carries it."""

FIELDS = (
    "host", "port", "verdict", "how", "reason", "rule", "name", "source", "fix", "phase", "count", "bytes_up",
    "bytes_down",
)  # fmt: skip
_KIND = FIELDS.index("count")  # what stands before it says what kind of connection it is
_SENTENCES = {reason.word: reason.sentence for reason in Reason}
_QUIET_ENDS = frozenset((Reason.ALLOWED.word, Reason.IDLE_TIMEOUT.word, Reason.CLIENT_GONE.word, Reason.STOPPING.word))
_REFUSED = How.REFUSED.value
_ALLOWED = Verdict.ALLOW.value
_ASK = Verdict.ASK.value
_GONE = Reason.CLIENT_GONE.word
_UNDONE = frozenset((_GONE, Reason.STOPPING.word))
_INSTALL = Phase.INSTALL.value  # said where it is not the usual one


class _Count:
    """One kind of connection: its first event stands for all."""

    __slots__ = ("count", "down", "event", "up")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.count = self.up = self.down = 0


class Summary:
    """Counts events by what a person tells apart. `more` counts those past the bound of kinds."""

    def __init__(self) -> None:
        self._counts: dict[tuple[object, ...], _Count] = {}
        self.more = 0

    def add(self, event: Event) -> None:
        """Count one event."""
        key = (
            event.host, event.port, event.verdict, event.how, event.reason, event.rule, event.name, event.source,
            event.phase,
        )  # fmt: skip
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= KINDS:
                self.more += event.count
                return
            self._counts[key] = count = _Count(event)
        count.count += event.count
        count.up += event.bytes_up
        count.down += event.bytes_down

    def rows(self) -> list[Row]:
        """Return the counts as plain rows, in the order in which each kind first began."""
        # Events come at the end of connections, and people remember beginnings.
        counts = sorted(self._counts.values(), key=lambda count: count.event.at)
        return [row_of(count.event, count.count, count.up, count.down) for count in counts]


def row_of(event: Event, count: int, up: int, down: int) -> Row:
    """Return the row for `count` connections like `event`."""
    return (
        event.host,
        event.port,
        event.verdict.value,
        event.how.value,
        event.reason.word,
        event.rule,
        event.name,
        event.source,
        event.fix,
        event.phase.value,
        count,
        up,
        down,
    )


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return rows with those of one kind added up, in the order in which each kind first stands."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        kind = tuple(row[:_KIND])
        before = found.get(kind, (*kind, 0, 0, 0))
        sums = (int(had) + int(has) for had, has in zip(before[_KIND:], row[_KIND:], strict=True))
        found[kind] = (*kind, *sums)  # type: ignore[assignment]
    return list(found.values())


def is_refusal(verdict: str, how: str, reason: str) -> bool:
    """Whether the gate kept a connection from its destination.

    It did not where an allowed client went away, or its task ended, before it was connected: a client that tries a
    name's addresses side by side (RFC 8305) drops all but the first that answers. Nor where one went away while a
    person was asked: its next try joins the question.
    """
    if how != _REFUSED:
        return False
    return not (verdict == _ALLOWED and reason in _UNDONE) and not (verdict == _ASK and reason == _GONE)


def printable(text: str) -> str:
    """Return `text` with everything outside printable ASCII escaped, at most 256 characters (ASK-6)."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= _MAX_HOST else text[:_MAX_HOST] + "…"


def net_lines(rows: Iterable[Row], more: int = 0) -> list[str]:
    """Return the `net:` lines of the rows, and a last one with what would let the refused ones through."""
    lines: list[str] = []
    merged: dict[tuple[str, int, str, str, str], int] = {}
    fixes: list[str] = []
    for host, port, verdict, how, reason, _rule, name, _source, fix, phase, count, _up, _down in rows:
        where = bracketed(host)
        place = f"{printable(where)}:{port}" if port else printable(where) or "a request without a destination"
        words = _words(verdict, how, reason)
        key = (place, port, words, name, f" · {phase}" if phase == _INSTALL else "")
        merged[key] = merged.get(key, 0) + count
        if fix and fix not in fixes and is_refusal(verdict, how, reason):
            fixes.append(fix)
    for (place, _port, words, name, phase), count in merged.items():
        times = f" ×{count}" if count > 1 else ""
        lines.append(f"net: {place} · {words} ({printable(name)}){phase}{times}")
    if more:
        lines.append(f"net: and {more} more connections to other destinations; tidegate events lists what was recorded")
    if fixes:
        shown = " ".join(printable(fix) for fix in fixes[:8])
        lines.append(
            f"net: to let {'it' if len(fixes) == 1 else 'them'} through: {shown}" + (" …" if fixes[8:] else "")
        )
    return lines


def _words(verdict: str, how: str, reason: str) -> str:
    if how == _REFUSED:
        if not is_refusal(verdict, how, reason):
            asked = " while a person was asked" if verdict == _ASK else ""
            return f"not connected, {_SENTENCES[reason]}{asked}"
        return f"refused, {_SENTENCES.get(reason, reason)}"
    return how if reason in _QUIET_ENDS else f"{how}, {_SENTENCES.get(reason, reason)}"
