"""What a connection comes in by: the task it belongs to, and that task's bound of connections (GAT-6).

A listening socket (listener.py) is one. Connections know their door only: nothing of the socket that they came by.
"""

from __future__ import annotations

from tidegate.gate.record import Entry
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask


class Door:
    """See the head of the file."""

    __slots__ = ("gate", "task")

    def __init__(self, gate: Gate, task: GateTask) -> None:
        self.gate = gate
        self.task = task

    def is_full(self) -> bool:
        """Whether the task may have no connection more."""
        task = self.task
        limit = task.policy.limits.connections
        return task.connections >= limit or (bool(task.family) and task.connections_of_all() >= limit)

    def turn_away(self, sock: socket) -> None:
        """Record and drop one connection more than the task may have; nothing of it was read."""
        self._record(Reason.TOO_MANY_CONNECTIONS)
        sock.close()

    def entered(self, fd: int) -> None:
        """One more client; `fd` is its socket."""
        self.task.connections += 1
        self.task.clients.add(fd)

    def left(self, fd: int) -> None:
        """One of the clients is gone; `fd` was its socket."""
        self.task.connections -= 1
        self.task.clients.discard(fd)
        self.gate.connections -= 1

    def _record(self, reason: Reason) -> None:
        Entry(self.gate, self.task, None, "").write(How.REFUSED, reason)

    def close(self) -> None:
        """Let nobody in any more."""
        raise NotImplementedError
