"""How much of a stretch of time this machine lost: for bounds of a second that a busy machine must not break."""

from __future__ import annotations

import threading
import time
from typing import Self

_TICK = 0.01  # seconds


class Stopwatch:
    """Seconds from entering until `seconds`, without those for which a thread that does nothing did not get to run."""

    def __init__(self) -> None:
        self._lost = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._began = 0.0

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._over.wait(_TICK):
            now = time.monotonic()
            self._lost += max(0.0, now - before - 2 * _TICK)
            before = now

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """What has passed so far."""
        return time.monotonic() - self._began - self._lost
