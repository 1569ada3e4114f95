"""Whether somebody is there who could answer a question (ASK-4).

A page or program of an owner that streams events or asks for the questions counts as seen, then and for
`SEEN_SECONDS` after. Viewers do not count: they cannot answer. Thread-safe: one float is set and read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SEEN_SECONDS: Final = 30.0


class Presence:
    """When an owner was last seen. `clock` is monotonic, in seconds."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = float("-inf")

    def seen(self) -> None:
        """Note that an owner looks now."""
        self._until = self._clock() + SEEN_SECONDS

    def present(self, _task: str) -> bool:
        """Whether somebody could answer for this task; each owner sees all tasks."""
        return self._clock() < self._until
