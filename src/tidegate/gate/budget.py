"""How much of one kind of work a task may ask for at once, and how much in the long run: a bucket that fills with time.

One gate serves many tasks on one thread, so whoever floods it must not be what the others wait for. Within the bucket
nothing is slowed down; past it the work is done at the bucket's rate, and what does not fit waits where it is, in the
kernel's queues. The clock comes in as an argument.
"""

from __future__ import annotations


class Budget:
    """`burst` pieces of work at once, `rate` a second in the long run."""

    __slots__ = ("_at", "_burst", "_credit", "_rate")

    def __init__(self, burst: int, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._credit = float(burst)
        self._at = now

    def allows(self, now: float) -> bool:
        """Whether there is something left for a piece of work at `now` (monotonic seconds)."""
        self._credit = min(self._burst, self._credit + (now - self._at) * self._rate)
        self._at = now
        return self._credit >= 1

    def spend(self) -> None:
        """Count one piece of work that is done."""
        self._credit -= 1
