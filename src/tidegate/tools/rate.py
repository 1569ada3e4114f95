"""How often something may happen in a minute. Pure: the clock comes in."""

from __future__ import annotations

from collections import deque

MINUTE = 60.0


class Rate:
    """At most `most` in any minute."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._at: deque[float] = deque()

    def allows(self, now: float) -> bool:
        """Count one more; False where that would be too many in the minute before `now`, and counts nothing."""
        while self._at and self._at[0] <= now - MINUTE:
            self._at.popleft()
        if len(self._at) >= self._most:
            return False
        self._at.append(now)
        return True
