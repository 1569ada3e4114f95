"""Who comes to a gate that listens where others could come, too: only whose socket was announced (GAT-2, HLD-2).

In the hold `landlock` the gate listens on the machine's own 127.0.0.1, where every process of every user could
connect, and the user of a task is not the task's alone. But each connection of the task is made by its watcher, which
says here which socket it is about to connect, by the number that the kernel gives a socket for good (SO_COOKIE), and
connects only then. So the message is in our queue before the connection can be in the listener's, and nothing is
waited for. Whose an accepted connection is, the kernel says (identity.py), with that number: it cannot be guessed
right, taken over with a port, or be given twice, and it is good for one connection.

Messages, one packet each: `h` and a number (8 bytes, as the kernel has it), or `t`, a port and an address: the task
tried to connect there and was refused (JRN-3). Bounded: the newest numbers count.
"""

from __future__ import annotations

import _socket

from tidegate.gate.direct import DirectAttempts
from tidegate.gate.reactor import LEVEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask
    from tidegate.model.reason import Reason
    from tidegate.wire.sock_diag import Owner

HERE, TRIED = b"h", b"t"
MOST = 1024  # announced and not yet here
BATCH = 256  # messages in one turn
_LARGEST = 64


class Announced:
    """The watcher's messages, and the mark of the gate's port. Owns its descriptor."""

    __slots__ = ("_direct", "_fd", "_gate", "_numbers", "_port", "_sock")

    def __init__(self, gate: Gate, fd: int, task: GateTask, port: int) -> None:
        """Take over one end of a pair of sockets that keep messages apart; `port` is protected from now on (ADR-1).

        Raises:
            OSError: when `fd` is no socket, or the port is another gate's; it is still the caller's then.
        """
        self._gate = gate
        self._fd = fd
        self._direct = DirectAttempts(gate, task)
        self._numbers: dict[int, None] = {}
        self._port = port
        sock = _socket.socket(fileno=fd)
        try:
            sock.setblocking(False)
            gate.marks.hold(port)
        except OSError:
            sock.detach()
            raise
        self._sock: _socket.socket | None = sock
        gate.reactor.watch(fd, self, LEVEL)

    def ready(self, _fd: int, _mask: int) -> None:
        """Messages are waiting; what this turn does not take is told of again."""
        for _ in range(BATCH):
            if not self._take():
                return

    def _take(self) -> bool:
        sock = self._sock
        if sock is None:
            return False
        try:
            data = sock.recv(_LARGEST)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._let_go()  # the watcher is gone, and nobody will be announced
            return False
        if data[:1] == HERE and len(data) == 9:
            self._numbers[int.from_bytes(data[1:], "little")] = None
            if len(self._numbers) > MOST:
                del self._numbers[next(iter(self._numbers))]
        elif data[:1] == TRIED and len(data) in (7, 19):
            self._direct.record("tcp", data[3:], int.from_bytes(data[1:3], "big"))
        return True

    def knows(self, owner: Owner) -> bool:
        """Whether the socket of this owner was announced. That is used up by it."""
        while owner.cookie not in self._numbers and self._take():
            pass
        return self._numbers.pop(owner.cookie, self) is None

    def cut(self, _reason: Reason) -> None:
        """The gate is ending: what is there is still taken."""
        self.ready(self._fd, 0)
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug with one message: the next ones are read."""

    def close(self) -> None:
        """Close it, and write what was counted; nobody is known any more. Later calls do nothing."""
        self._let_go()
        self._numbers.clear()
        port, self._port = self._port, 0
        if port:
            self._gate.marks.release(port)
            self._direct.close()

    def _let_go(self) -> None:
        sock, self._sock = self._sock, None
        if sock is not None:
            self._gate.reactor.forget(self._fd)
            sock.close()
