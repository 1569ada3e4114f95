"""Connections that are one too many: each is told so, in a way that its client can hear (SRV-6, B37).

Whoever closes a connection with something unread resets it, and a reset eats the answer. So a request's head is waited
for, for a moment, the answer follows it, and what still comes is thrown away until the client closes: an upload too,
since many clients read an answer only when all of theirs is sent.

Rules of the file: no process is made for any of this, and it is bounded: in connections, the oldest leaving first, in
bytes, and in seconds. The loop that polls is the keeper's.
"""

from __future__ import annotations

import select
from contextlib import suppress
from socket import SHUT_WR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

MOST = 64  # connections
HEAD_SECONDS = 1.0  # for the head of a request that is refused anyway
SECONDS = 5.0  # until the client has to have closed
MOST_BYTES = 8 << 20  # twice the largest input of a tool
ANSWER = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
_END = b"\r\n\r\n"
_PIECE = 1 << 16


class Refusals:
    """Those that are being refused. Clocks are monotonic seconds, and come in."""

    def __init__(self, poll: select.poll) -> None:
        self._poll = poll
        self._open: dict[int, _Refused] = {}  # the oldest first

    def __contains__(self, fd: int) -> bool:
        return fd in self._open

    def add(self, sock: socket, now: float) -> None:
        """Refuse a connection; owns the socket."""
        while len(self._open) >= MOST:
            self._end(next(iter(self._open)))
        sock.setblocking(False)
        self._open[sock.fileno()] = _Refused(sock, now)
        self._poll.register(sock, select.POLLIN)

    def hear(self, fd: int) -> None:
        """There is something to read."""
        if not self._open[fd].hear():
            self._end(fd)

    def wait(self, now: float) -> int | None:
        """Look at the clock; return milliseconds until that is due again, None for never."""
        for fd, one in list(self._open.items()):
            if now >= one.until:
                self._end(fd)
            elif now >= one.answers:
                one.answer()
        due = [one.until if one.answered else one.answers for one in self._open.values()]
        return int(max(0.0, min(due) - now) * 1000) + 1 if due else None

    def close(self) -> None:
        """Let go of all of them; for a process that goes on without. The descriptors alone: others have them too."""
        for one in self._open.values():
            one.sock.close()
        self._open.clear()

    def _end(self, fd: int) -> None:
        one = self._open.pop(fd)
        self._poll.unregister(fd)
        one.answer()
        one.sock.close()


class _Refused:
    """One of them. `answers` is when it is answered at the latest, `until` when it is closed."""

    def __init__(self, sock: socket, now: float) -> None:
        self.sock = sock
        self.answers = now + HEAD_SECONDS
        self.until = now + SECONDS
        self.answered = False
        self._left = MOST_BYTES
        self._tail = b""

    def hear(self) -> bool:
        """Read once; False at the end."""
        try:
            data = self.sock.recv(_PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._left -= len(data)
        if not self.answered:
            self._tail += data
            if _END in self._tail:
                self.answer()
            self._tail = self._tail[-len(_END) + 1 :]
        return bool(data) and self._left > 0

    def answer(self) -> None:
        """Say it, once. Nothing was said before, so there is room for it."""
        if not self.answered:
            self.answered = True
            with suppress(OSError):
                self.sock.send(ANSWER)
                self.sock.shutdown(SHUT_WR)
