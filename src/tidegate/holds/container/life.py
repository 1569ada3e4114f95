"""The owner's end of a relay's own connection: it beats, and the relay gives back what comes (relay/, HLD-7).

So a relay that was stopped, or anything else of the way, is told from one that has nothing to do. Nothing here waits;
the times come in as seconds of any monotonic clock.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tidegate.holds.container.relay.words import OPEN, SHUT

if TYPE_CHECKING:
    import socket

BEAT: Final = 0.5  # seconds between beats
SILENT: Final = 1.25  # seconds without an answer after which the way is silent
_PIECE: Final = 4096


class Life:
    """See the head of the file. The socket is the channel's."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._word = OPEN
        self._next = 0.0
        self._waits_since: float | None = None

    def fileno(self) -> int:
        """Return what is readable when an answer is there, or the end."""
        return self._sock.fileno()

    def beat(self, now: float) -> float:
        """Send what is due; return the seconds until the next is."""
        if now >= self._next:
            self._next = now + BEAT
            if self._waits_since is None:
                self._waits_since = now
            with suppress(OSError):  # full, or gone: both are heard of
                self._sock.send(self._word)
        return self._next - now

    def hear(self) -> bool:
        """Take an answer; False where the other end is gone."""
        try:
            data = self._sock.recv(_PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._waits_since = None
        return bool(data)

    def silence(self, now: float) -> float:
        """Return for how many seconds there has been no answer to what was sent."""
        return 0.0 if self._waits_since is None else now - self._waits_since

    def shut(self, *, shut: bool) -> None:
        """Have nobody let in from the next beat on, which is now; or again."""
        self._word = SHUT if shut else OPEN
        self._next = 0.0
