"""Listening sockets: accept in batches, count, and never spin.

Rules of the file:

* One listener is one exec of one task; who connects to it is that task (GAT-2). Nothing in a request says so. Where
  others can reach the socket too, the kernel is asked whose a connection is (identity.py).
* The connection beyond the limit is dropped and recorded (GAT-6).
* Without descriptors left the listener pauses; the queue of the kernel keeps the clients for a while.
* Options that accepted sockets inherit (TCP_NODELAY, keepalive) are set once, here.
* A listening unix socket, which a relay carries connections to (holds/container/relay/), is one as well: it has none
  of these options, and what is at its other end is found dead by the relay.
* TCP_DEFER_ACCEPT: on a proxy port the client speaks first, so a connection is worth accepting when it has (tcp(7)).
"""

from __future__ import annotations

import _socket
from _socket import (
    AF_UNIX,
    IPPROTO_TCP,
    SO_ACCEPTCONN,
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
from tidegate.gate.door import Door
from tidegate.gate.reactor import LEVEL
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask

    Identify: TypeAlias = Callable[[_socket.socket, Any], bool]

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
    """Let the kernel find out when the other side of an idle connection is no more; of a unix socket it knows."""
    if sock.family == AF_UNIX:
        return
    sock.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        sock.setsockopt(IPPROTO_TCP, option, value)


def _check_listens(sock: _socket.socket) -> None:
    # Options of TCP tell by failing; a unix socket has none.
    if sock.type != SOCK_STREAM or not sock.getsockopt(SOL_SOCKET, SO_ACCEPTCONN):
        raise OSError(EOPNOTSUPP, "no listening socket")


class Listener(Door):
    """One listening socket. Owns its descriptor.

    `client` is what an accepted connection becomes; `defer` says that its client speaks first; `batch` is how many are
    accepted in one turn. `identify`, where others than the task can connect, takes an accepted socket with its peer's
    name and returns whether it is let in; one that is not it has refused itself (identity.py).
    """

    client: type[Client] = Client
    defer = True
    batch = BATCH
    __slots__ = ("_accept", "_family", "_paused", "_sock", "fd", "identify")

    def __init__(self, gate: Gate, fd: int, task: GateTask, identify: Identify | None = None) -> None:
        """Take over a listening socket, TCP or unix.

        Raises:
            OSError: when `fd` is no such socket; it is still the caller's then.
        """
        sock = _socket.socket(fileno=fd)
        try:
            sock.setblocking(False)
            if sock.family != AF_UNIX:
                sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
                if self.defer:
                    sock.setsockopt(IPPROTO_TCP, TCP_DEFER_ACCEPT, 1)
            else:
                _check_listens(sock)
            keep_alive(sock)
        except OSError:
            sock.detach()
            raise
        super().__init__(gate, task)
        self.identify = identify
        self.fd = fd
        self._sock: _socket.socket | None = sock
        self._accept = sock._accept  # type: ignore[attr-defined]  # noqa: SLF001 - what socket.accept is made of, without its wrapper
        self._family = sock.family
        self._paused = False
        gate.reactor.watch(fd, self, LEVEL)
        gate.listeners.add(self)

    def port(self) -> int:
        """The TCP port of this network namespace at which it listens."""
        return int(self._sock.getsockname()[1]) if self._sock is not None else 0

    def ready(self, _fd: int, _mask: int) -> None:
        """Clients are waiting."""
        accept, gate, family, make, identify = self._accept, self.gate, self._family, self.client, self.identify
        for _ in range(self.batch):
            try:
                fd, peer = accept()
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
            if identify is not None and not identify(sock, peer):
                continue
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
