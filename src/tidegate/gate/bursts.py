"""Bursts of the same: told of at once, and then as a count, at most once in `WINDOW` seconds (JRN-3).

Rules of the file: none is lost, what came meanwhile is the next call's count. Kinds are bounded, since whoever makes
them may be hostile: past `KINDS` the oldest is told of and forgotten. On the gate's thread only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from tidegate.gate.reactor import Reactor

WINDOW = 5.0  # seconds (JRN-3)
KINDS = 256


class Bursts:
    """`tell` is called with a kind and how many of it there were."""

    __slots__ = ("_counts", "_reactor", "_tell")

    def __init__(self, reactor: Reactor, tell: Callable[[Any, int], None]) -> None:
        self._reactor = reactor
        self._tell = tell
        self._counts: dict[Hashable, int] = {}

    def take(self, kind: Hashable) -> None:
        """Take one more of a kind."""
        count = self._counts.get(kind)
        if count is not None:
            self._counts[kind] = count + 1
            return
        if len(self._counts) >= KINDS:
            oldest = next(iter(self._counts))
            self._tell_of(oldest, self._counts.pop(oldest))
        self._counts[kind] = 0
        self._tell(kind, 1)
        self._reactor.after(WINDOW, lambda: self._look(kind))

    def close(self) -> None:
        """Tell of the counts that wait."""
        while self._counts:
            self._tell_of(*self._counts.popitem())

    def _look(self, kind: Hashable) -> None:
        count = self._counts.pop(kind, 0)
        if count:
            self._counts[kind] = 0
            self._tell(kind, count)
            self._reactor.after(WINDOW, lambda: self._look(kind))

    def _tell_of(self, kind: Hashable, count: int) -> None:
        if count:
            self._tell(kind, count)
