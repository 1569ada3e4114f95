"""A socket that is written to, and the bytes it has not taken yet.

Rules of the file: whoever writes stops when `send` says that bytes wait, and goes on when `flush` says that none do.
So what waits is one read at most, and a reader that never reads costs one buffer (GAT-5).
"""

from __future__ import annotations

from tidegate.gate.reactor import READ_WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.reactor import Reactor


class Outlet:
    """The writing side of one watched socket."""

    __slots__ = ("_armed", "_pending", "_reactor", "sent", "sock")

    def __init__(self, reactor: Reactor, sock: socket) -> None:
        self.sock = sock
        self.sent = 0
        self._reactor = reactor
        self._pending = b""
        self._armed = False

    @property
    def blocked(self) -> bool:
        """Whether bytes wait."""
        return bool(self._pending)

    @property
    def waiting(self) -> int:
        """How many bytes wait."""
        return len(self._pending)

    def send(self, data: bytes | memoryview) -> bool:
        """Write; False when part of it has to wait.

        Raises:
            OSError: when the other side is gone.
        """
        size = len(data)
        self.sent += size
        if self._pending:
            self._pending += bytes(data)
            return False
        try:
            count = self.sock.send(data)
        except BlockingIOError:
            count = 0
        if count == size:
            return True
        self._pending = bytes(data[count:])
        if not self._armed:
            self._armed = True
            self._reactor.rewatch(self.sock.fileno(), READ_WRITE)
        return False

    def finish(self) -> None:
        """Say what has to be said before the end of the connection; nothing on a plain socket.

        Raises:
            OSError: when the other side is gone.
        """

    def flush(self) -> bool:
        """Write what waits; True when nothing does any more.

        Raises:
            OSError: when the other side is gone.
        """
        if self._pending:
            try:
                count = self.sock.send(self._pending)
            except BlockingIOError:
                return False
            self._pending = self._pending[count:]
        return not self._pending
