"""A bounded pool of pipes through which `splice` moves bytes from socket to socket without copying them.

Rules of the file:

* A pipe in the pool is empty. One that cannot be emptied is closed, never pooled: its bytes belong to one tunnel.
* Pipe buffers and descriptors are bounded per user (pipe(7), pipe-user-pages-soft), so there are few and they are
  lent out for as long as a direction is busy. A tunnel that gets none copies through the shared buffer instead.

Sources: splice(2), pipe(7), fcntl(2) F_SETPIPE_SZ.
"""

from __future__ import annotations

import fcntl
import os

CAPACITY = 1 << 20  # the default of /proc/sys/fs/pipe-max-size; measured fastest on loopback
MOST = 32  # with 1 MiB each: half of what pipe-user-pages-soft gives a user


class Pipe:
    """Two ends, and how many bytes are inside."""

    __slots__ = ("filled", "read", "size", "write")

    def __init__(self) -> None:
        """Make a pipe that never blocks.

        Raises:
            OSError: when there are no descriptors or no memory left.
        """
        self.read, self.write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self.size = fcntl.fcntl(self.write, fcntl.F_SETPIPE_SZ, CAPACITY)
        except OSError:  # over this user's share: what the kernel gave will do
            self.size = 1 << 16
        self.filled = 0

    def close(self) -> None:
        """Give both descriptors back, with whatever is inside."""
        os.close(self.read)
        os.close(self.write)


class PipePool:
    """Lends pipes; `take` gives None when all are out."""

    __slots__ = ("_free", "_lent", "_most")

    def __init__(self, most: int = MOST) -> None:
        self._free: list[Pipe] = []
        self._lent = 0
        self._most = most

    def take(self) -> Pipe | None:
        """Return an empty pipe, or None where there is none to be had."""
        if self._free:
            self._lent += 1
            return self._free.pop()
        if self._lent >= self._most:
            return None
        try:
            pipe = Pipe()
        except OSError:
            return None
        self._lent += 1
        return pipe

    def give(self, pipe: Pipe) -> None:
        """Take a pipe back; one with bytes inside is closed."""
        self._lent -= 1
        if pipe.filled or len(self._free) >= 4:  # a few stay for the next busy tunnel; buffers are not kept for ever
            pipe.close()
        else:
            self._free.append(pipe)

    def close(self) -> None:
        """Close the pipes at home."""
        while self._free:
            self._free.pop().close()
