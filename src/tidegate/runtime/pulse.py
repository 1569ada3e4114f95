"""Whether a server's gate goes on: a number in a file that it counts up, and that fronts look at (HLD-7).

    <state>/run/pulse    eight bytes, mapped by the server and by the fronts of commands in containers

A server that was stopped (SIGSTOP), or whose gate hangs, counts no more. No message is sent, so a thousand fronts cost
it nothing. Each server makes the file anew: who looks at the one before sees that it stands still.
"""

from __future__ import annotations

import mmap
import os

from tidegate.runtime.state import RUN_FOLDER

NAME = "pulse"
TICK = 0.25  # seconds between counts
_SIZE = 8


class Pulse:
    """The server's. `beat` on the gate's thread.

    Raises:
        OSError: when the file cannot be made.
    """

    def __init__(self, state: str) -> None:
        path = os.path.join(state, RUN_FOLDER, NAME)
        if os.path.lexists(path):
            os.unlink(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(fd, _SIZE)
            self._map = mmap.mmap(fd, _SIZE)
        finally:
            os.close(fd)
        self._path = path
        self._count = 0

    def beat(self) -> None:
        """Count."""
        self._count += 1
        self._map[:] = self._count.to_bytes(_SIZE, "little")

    def close(self) -> None:
        """Take the file away."""
        self._map.close()
        if os.path.lexists(self._path):
            os.unlink(self._path)


class Watched:
    """A front's look at it. The times are seconds of any monotonic clock."""

    def __init__(self, state: str) -> None:
        self._map: mmap.mmap | None = None
        self._last = b""
        self._since: float | None = None
        try:
            fd = os.open(os.path.join(state, RUN_FOLDER, NAME), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return  # a server that ends just now: that is heard of otherwise
        try:
            self._map = mmap.mmap(fd, _SIZE, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            self._map = None
        finally:
            os.close(fd)

    def silence(self, now: float) -> float:
        """Return for how many seconds it has stood still; 0 where there is none."""
        if self._map is None:
            return 0.0
        seen = self._map[:]
        if seen != self._last or self._since is None:
            self._last, self._since = seen, now
        return now - self._since

    def close(self) -> None:
        """Look no more."""
        if self._map is not None:
            self._map.close()
            self._map = None
