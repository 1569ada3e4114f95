"""Deadlines of a task that is ending: how long it may take, and how long its last output may.

Pure: the time comes in as seconds of any monotonic clock. The front asks what is due and carries it out.
"""

from __future__ import annotations

from tidegate.model.closed import Closed

GRACE = 10.0  # seconds between being asked to end and killing; docker stop's
GATE_GRACE = 2.0  # the same where the gate is gone: the task can do nothing useful any more
SECOND_ASK = 1.0  # a second signal this much later is impatience; timeout(1) sends its one twice at once
HARD_KILL = 1.0  # seconds between killing the command and killing init
DRAIN = 10.0  # seconds that a reader of the last output may take nothing


class Due(Closed):
    """What is due."""

    KILL = "kill"  # SIGKILL to the command; init reports its end
    HARD_KILL = "hard-kill"  # SIGKILL to init: the kernel ends everything


class Grace:
    """The deadlines of one task."""

    def __init__(self) -> None:
        """Begin with none: a task may run for ever."""
        self.forced = False
        self._first_ask: float | None = None
        self._kill_at: float | None = None
        self._hard_kill_at: float | None = None
        self._drain_until: float | None = None

    def asked(self, now: float) -> None:
        """Somebody asked for the end: it comes after a while, and at once for the impatient and for last output."""
        if self._drain_until is not None:
            self._drain_until = now
        elif self._first_ask is None:
            self._first_ask = now
            self._kill_within(now + GRACE)
        elif now - self._first_ask >= SECOND_ASK:
            self._kill_within(now)

    def gate_lost(self, now: float) -> None:
        """The gate is gone."""
        self._kill_within(now + GATE_GRACE)

    def drain(self, now: float) -> None:
        """The command has ended; from now on the last output is waited for."""
        if self._drain_until is None:
            self._kill_at = self._hard_kill_at = None
            self._drain_until = now + DRAIN

    def moved(self, now: float) -> None:
        """Some output went out, so its reader is alive."""
        if self._drain_until is not None:
            self._drain_until = now + DRAIN

    def drained_enough(self, now: float) -> bool:
        """Whether the reader of the last output has had its time."""
        return self._drain_until is not None and now >= self._drain_until

    def due(self, now: float) -> Due | None:
        """Return what is due now, each once; HARD_KILL again and again should it not help."""
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._hard_kill_at = now + HARD_KILL
            self.forced = True
            return Due.KILL
        if self._hard_kill_at is not None and now >= self._hard_kill_at:
            self._hard_kill_at = now + HARD_KILL
            return Due.HARD_KILL
        return None

    def patience(self, now: float) -> float | None:
        """Return the seconds until something is due, None where nothing will be."""
        deadlines = [at for at in (self._kill_at, self._hard_kill_at, self._drain_until) if at is not None]
        return max(0.0, min(deadlines) - now) if deadlines else None

    def _kill_within(self, at: float) -> None:
        if not self.forced and (self._kill_at is None or at < self._kill_at):
            self._kill_at = at
