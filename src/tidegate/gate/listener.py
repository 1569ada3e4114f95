"""Listening sockets: accept in batches, count, and never spin.

Rules of the file:

* One listener is one exec of one task; who connects to it is that task (GAT-2). Nothing in a request says so.
* The connection beyond the limit is dropped and recorded (GAT-6).
* Without descriptors left the listener pauses; the queue of the kernel keeps the clients for a while.
* Options that accepted sockets inherit (TCP_NODELAY, keepalive) are set once, here.
* TCP_DEFER_ACCEPT: on a proxy port the client speaks first, so a connection is worth accepting when it has (tcp(7)).
"""

from __future__ import annotations

import _socket
from _socket import (
    IPPROTO_TCP,
    SO_KEEPALIVE,
    SOCK_STREAM,
    SOL_SOCKET,
    TCP_DEFER_ACCEPT,
    TCP_KEEPCNT,
    TCP_KEEPIDLE,
    TCP_KEEPINTVL,
    TCP_NODELAY,
)  # fmt: skip
from errno import (
    ECONNABORTED,
    EHOSTDOWN,
    EHOSTUNREACH,
    EINTR,
    EMFILE,
    ENETDOWN,
    ENETUNREACH,
    ENFILE,
    ENOBUFS,
    ENOMEM,
    ENONET,
    ENOPROTOOPT,
    EOPNOTSUPP,
    EPERM,
    EPROTO,
)  # fmt: skip

from tidegate.gate.connection import Client
from tidegate.gate.reactor import LEVEL
from tidegate.gate.record import Entry
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask

BATCH = 64  # accepts in one turn
PAUSE = 0.1  # seconds without accepting, where descriptors ran out
# A dead peer is found within 3 minutes. Below a minute: that is how long the kernel tracks a captured connection that
# one side has closed, where the hold could not tell it to do so for longer.
KEEPALIVE = ((TCP_KEEPIDLE, 45), (TCP_KEEPINTVL, 30), (TCP_KEEPCNT, 4))
_EXHAUSTED = (EMFILE, ENFILE, ENOBUFS, ENOMEM)
# A client that was gone before it was accepted, and network errors that accept(2) passes on.
_GAVE_UP = (
    ECONNABORTED, EINTR, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, EPERM,
)  # fmt: skip


def keep_alive(sock: _socket.socket) -> None:
    """Let the kernel find out when the other side of an idle connection is no more."""
    sock.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        sock.setsockopt(IPPROTO_TCP, option, value)


class Listener:
    """One listening socket. Owns its descriptor.

    `client` is what an accepted connection becomes; `defer` says that its client speaks first; `batch` is how many are
    accepted in one turn.
    """

    client: type[Client] = Client
    defer = True
    batch = BATCH
    __slots__ = ("_accept", "_family", "_paused", "_sock", "fd", "gate", "task")

    def __init__(self, gate: Gate, fd: int, task: GateTask) -> None:
        """Take over a listening TCP socket.

        Raises:
            OSError: when `fd` is no such socket; it is still the caller's then.
        """
        sock = _socket.socket(fileno=fd)
        try:
            sock.setblocking(False)
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            if self.defer:
                sock.setsockopt(IPPROTO_TCP, TCP_DEFER_ACCEPT, 1)
            keep_alive(sock)
        except OSError:
            sock.detach()
            raise
        self.gate = gate
        self.task = task
        self.fd = fd
        self._sock: _socket.socket | None = sock
        self._accept = sock._accept  # type: ignore[attr-defined]  # noqa: SLF001 - what socket.accept is made of, without its wrapper
        self._family = sock.family
        self._paused = False
        gate.reactor.watch(fd, self, LEVEL)
        gate.listeners.add(self)

    def ready(self, _fd: int, _mask: int) -> None:
        """Clients are waiting."""
        accept, gate, family, make = self._accept, self.gate, self._family, self.client
        for _ in range(self.batch):
            try:
                fd = accept()[0]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(Reason.OUT_OF_RESOURCES)
                    return
                if error.errno in _GAVE_UP:
                    continue
                if self._sock is not None:
                    self._pause(Reason.INTERNAL)  # whatever it is, it will be the same at once: never spin on it
                return
            sock = _socket.socket(family, SOCK_STREAM, 0, fd)
            sock.setblocking(False)
            if self.is_full():
                self.turn_away(sock)
                continue
            self.entered(fd)
            gate.connections += 1
            client = make(gate, self, sock)
            try:
                client.begin()
            except Exception as error:  # noqa: BLE001 - one broken connection must not end the listener of all
                gate.fault(error)
                client.broken(error)
            if self._sock is None:
                return

    def is_full(self) -> bool:
        """Whether the task may have no connection more."""
        task = self.task
        limit = task.policy.limits.connections
        return task.connections >= limit or (bool(task.family) and task.connections_of_all() >= limit)

    def turn_away(self, sock: _socket.socket) -> None:
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

    def _pause(self, reason: Reason) -> None:
        if not self._paused and self._sock is not None:
            self._paused = True
            self._record(reason)
            self.gate.reactor.forget(self.fd)
            self.gate.reactor.after(PAUSE, self._resume, self)

    def _resume(self) -> None:
        self._paused = False
        if self._sock is not None:
            self.gate.reactor.watch(self.fd, self, LEVEL)

    def cut(self, _reason: Reason) -> None:
        """The gate is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug while accepting: rest for a moment instead of meeting it at full speed."""
        self._pause(Reason.OUT_OF_RESOURCES)

    def close(self) -> None:
        """Close the socket; clients in its queue are reset by the kernel."""
        if self._sock is not None:
            if not self._paused:
                self.gate.reactor.forget(self.fd)
            self._sock.close()
            self._sock = None
            self.gate.listeners.discard(self)
