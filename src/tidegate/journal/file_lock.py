"""A lock among processes: flock(2) on a file of its own, with a bounded wait.

The file is only ever locked, never replaced, so that whoever has it open holds the same one. A process that ends, or
is killed, lets go.
"""

from __future__ import annotations

import errno
import fcntl
import os
from time import monotonic, sleep

_PAUSE = 0.002  # seconds between tries: a line is written in less


class FileLock:
    """A lock on a path whose folder exists.

    Raises:
        OSError: from the constructor, when the file cannot be opened; from `take`, when another process holds it.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)

    def take(self, patience: float) -> None:
        """Hold it, after at most `patience` seconds. Not for two threads at once.

        Raises:
            OSError: EBUSY where others held it all the time, or what flock(2) says.
        """
        late = monotonic() + patience
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() >= late:
                    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY)) from None
                sleep(_PAUSE)
            else:
                return

    def give(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file, and of the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
