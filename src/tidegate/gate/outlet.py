"""A socket that is written to, and the bytes it has not taken yet.

Rules of the file: whoever writes stops when `send` says that bytes wait, and goes on when `flush` says that none do.
So what waits is one read at most, and a reader that never reads costs one buffer (GAT-5).

A whole small message may be posted: it goes out in this turn with those of others, before anything else that is sent
here. Whoever closes the socket or hands it on settles first. Where a message that was posted does not go, its bytes
wait, and the handler is called as when the socket takes bytes again: `flush` then says what is wrong.
"""

from __future__ import annotations

from tidegate.gate.reactor import OUT, READ_WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.reactor import Reactor


POSTED = 1 << 14  # bytes of a message that is small


class Outlet:
    """The writing side of one watched socket."""

    __slots__ = ("_armed", "_pending", "_posted", "_reactor", "blocked", "sent", "sock")

    def __init__(self, reactor: Reactor, sock: socket) -> None:
        self.sock = sock
        self.sent = 0
        self._reactor = reactor
        self.blocked = False  # bytes wait
        self._pending = b""
        self._posted = b""
        self._armed = False

    @property
    def waiting(self) -> int:
        """How many bytes wait."""
        return len(self._pending)

    def send(self, data: bytes | memoryview) -> bool:
        """Write; False when part of it has to wait.

        Raises:
            OSError: when the other side is gone.
        """
        if self._posted:
            self.settle()
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
        self._wait(data[count:])
        return False

    def _wait(self, data: bytes | memoryview) -> None:
        self._pending = bytes(data)
        self.blocked = True
        if not self._armed:
            self._armed = True
            self._reactor.rewatch(self.sock.fileno(), READ_WRITE)

    def post(self, data: bytes) -> None:
        """Write a whole message, in this turn and with what others write; see the rules of the file.

        Raises:
            OSError: when the other side is gone, where that shows at once.
        """
        reactor = self._reactor
        if not reactor.crowded or self._posted or self._pending or len(data) > POSTED:
            Outlet.send(self, data)
            return
        self.sent += len(data)
        self._posted = data
        reactor.together(self)

    def settle(self) -> None:
        """Write what was posted."""
        data, self._posted = self._posted, b""
        if not data:
            return
        try:
            count = self.sock.send(data)
        except BlockingIOError:
            count = 0
        except OSError:
            self._pending = data
            self.blocked = True
            fd = self.sock.fileno()
            handler = self._reactor.table.get(fd)
            if handler is not None:
                self._reactor.again(handler, fd, OUT)
            return
        if count < len(data):
            self._wait(data[count:])

    def finish(self) -> None:
        """Say what has to be said before the end of the connection; nothing more on a plain socket.

        Raises:
            OSError: when the other side is gone.
        """
        self.settle()

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
            self.blocked = bool(self._pending)
        return not self.blocked
