"""Equal refusals in a burst become one line with a count; none is lost (JRN-3, B40).

A client that retries a refused host in a loop must not fill a disk. The first `FIRST` refusals of a kind are lines
of their own; after that one line every `WINDOW` seconds carries the count. Kinds are bounded too: past `KINDS` open
folds the oldest is written out and forgotten. Only refusals fold: a connection that moved bytes is always a line.

Nor does it help to try ever new hosts: after `LINES` lines in a window, refusals of kinds not seen yet are counted
by their reason alone, in one line whose host is `*`. So a task cannot push its own record out by making it long.

Pure: the clock is the events' own, and `due` takes the time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.event import Event

FIRST = 5  # enough to see the rhythm of a retry loop in the log
WINDOW = 5.0  # seconds; the SPEC's own figure for repeated direct attempts (JRN-3)
LINES = (
    100  # in a window, before the rest is counted: with 256 MiB kept, a flood needs a good part of a day to fill them
)
OTHERS = "*"  # no host is called so
KINDS = 1024  # open folds of one task, about 1 KiB each at most

_Kind = tuple[str, int, object, str, str]


class _Burst:
    """What is known of one kind of refusal."""

    __slots__ = ("began", "event", "pending", "seen")

    def __init__(self, event: Event) -> None:
        self.began = event.at
        self.seen = 0
        self.pending = 0
        self.event = event


class Fold:
    """Takes refusals and gives back those that are to be written now."""

    def __init__(self) -> None:
        self._bursts: dict[_Kind, _Burst] = {}
        self._began = 0.0
        self._left = LINES

    @property
    def pending(self) -> bool:
        """Whether counts wait to be written."""
        return any(burst.pending for burst in self._bursts.values())

    def take(self, event: Event) -> list[Event]:
        """Return what is to be written now that `event` was refused."""
        if event.at - self._began >= WINDOW:
            self._began, self._left = event.at, LINES
        kind = (event.host, event.port, event.reason, event.rule, event.path)
        burst = self._bursts.get(kind)
        if burst is None and not self._left:
            kind = (OTHERS, 0, event.reason, "", "")
            event = event.replace(host=OTHERS, port=0, rule="", address="", fix="", detail="", path="")
            burst = self._bursts.get(kind)
        if burst is None:
            out = self._make_room()
            self._bursts[kind] = burst = _Burst(event)
        else:
            out = []
        if event.at - burst.began >= WINDOW:
            out += self._close(burst)
            burst.began, burst.seen = event.at, 0
        burst.seen += 1
        if burst.seen <= FIRST and self._left:
            self._left -= 1
            out.append(event)
        else:
            burst.pending += event.count
            burst.event = event
        return out

    def due(self, now: float) -> list[Event]:
        """Return the counts whose window has ended at `now`, and forget kinds that went quiet."""
        if not 0 <= now - self._began < WINDOW:  # a clock that was put back, too
            self._began, self._left = now, LINES
        out = []
        for kind in [kind for kind, burst in self._bursts.items() if now - burst.began >= WINDOW]:
            out += self._close(self._bursts.pop(kind))
        return out

    def rest(self) -> list[Event]:
        """Return every count that waits: the task or the gate ends."""
        out = []
        for burst in self._bursts.values():
            out += self._close(burst)
        self._bursts.clear()
        return out

    def _make_room(self) -> list[Event]:
        if len(self._bursts) < KINDS:
            return []
        return self._close(self._bursts.pop(next(iter(self._bursts))))

    @staticmethod
    def _close(burst: _Burst) -> list[Event]:
        if not burst.pending:
            return []
        folded = burst.event.replace(count=burst.pending)
        burst.pending = 0
        return [folded]
