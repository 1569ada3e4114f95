"""How busy the machine is with other things, and a short wait for it to be less so.

A figure taken while someone else uses the processors says little, and says it unfairly: a proxy with many threads gets
more of a contended machine than one with a single thread. So each sample waits for a quiet moment, a bounded time, and
the share of the processors that others used meanwhile is kept and shown.
"""

from __future__ import annotations

import os
import time

from bench import processes

QUIET = 0.15  # of all processors
_LOOK = 0.15  # seconds


def _busy_and_all() -> tuple[float, float]:
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(field) for field in stat.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    return float(sum(fields) - idle), float(sum(fields))


class Others:
    """Measures what processes outside this one's tree use, from its making until `share` is asked for."""

    def __init__(self) -> None:
        self._busy, self._all = _busy_and_all()
        self._ours = self._own()

    @staticmethod
    def _own() -> float:
        return processes.cpu_seconds(processes.tree_of(os.getpid())) * os.sysconf("SC_CLK_TCK")

    def share(self) -> float:
        """Return the share of all processors that others used, from 0 to 1."""
        busy, every = _busy_and_all()
        ours = self._own() - self._ours
        return min(1.0, max(0.0, busy - self._busy - ours) / max(1.0, every - self._all))


def wait_for_quiet(limit: float) -> None:
    """Return once others use less than QUIET of the processors, or after `limit` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        others = Others()
        time.sleep(_LOOK)
        if others.share() < QUIET:
            return
