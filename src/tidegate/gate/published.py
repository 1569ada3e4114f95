"""Ports of this machine's loopback that lead to servers of a task (HLD-10): what listens, and what comes in.

Rules of the file:

* Inward only: who connects from this machine is joined to a connection made inside the task's namespace (inward.py).
  No destination is read from anywhere; nothing dials out.
* A published port is tidegate's own, so no task may reach it by any rule (ADR-1). Every gate
  asks marks.py before it dials this machine.
* The task's loopback is tried over IPv4 and then IPv6. Where nobody listens, the client is reset at once.
* Visitors are bounded on their own account: they take none of the task's connections out (GAT-6).
"""

from __future__ import annotations

import _socket
import posix
from _socket import AF_INET, AF_INET6, SO_REUSEADDR, SOCK_CLOEXEC, SOCK_STREAM, SOL_SOCKET, inet_pton
from errno import EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT

from tidegate.gate.dial import CONNECTED, PENDING, Dial, DialError, advance, reason_of, why_broken
from tidegate.gate.listener import Listener
from tidegate.gate.parting import reset
from tidegate.gate.record import Entry
from tidegate.gate.tunnel import Tunnel
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.errors import StartError
from tidegate.model.host import Host
from tidegate.model.publish import LOOPBACKS
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.gate.gate import Gate
    from tidegate.gate.inward import Inward
    from tidegate.gate.marks import Marks
    from tidegate.gate.task import GateTask
    from tidegate.model.publish import Publish

NAME = "command-line"  # what the journal has in the place of a rule's name
BACKLOG = 1024
VISITORS = 256  # at once on one listener, as many as a task has (GAT-6)
_METHOD = "TCP"


def bind(marks: Marks, published: Iterable[Publish]) -> list[tuple[int, Publish]]:
    """Take the ports of this machine: bound sockets as descriptors, and for each what it publishes.

    Nobody can connect until PublishedListener has one: while a task is being set up its ports are closed ones.

    Raises:
        StartError: where one cannot be had; nothing is left open then.
    """
    bound: list[tuple[int, Publish]] = []
    one = None
    try:
        for one in published:
            marks.hold(one.port)
            for address in one.addresses:
                sock = _bound(address, one.port, needed=one.named or address == LOOPBACKS[0])
                if sock is not None:
                    bound.append((sock.detach(), one))
    except OSError as error:
        for descriptor, _ in bound:
            posix.close(descriptor)
        assert one is not None, "only a port to be published can fail"
        raise _cannot(one, error) from error
    return bound


def _cannot(one: Publish, error: OSError) -> StartError:
    from os import strerror

    if error.errno == EADDRINUSE:
        what, fix = f"port {one.port} of this machine is taken", f"another, as in --publish {one.port + 1}:{one.inside}"
    else:
        what, fix = (
            f"port {one.port} of this machine cannot be listened on: {strerror(error.errno or 0)}",
            "name another port",
        )
    return StartError(f"--publish {one.text}: {what}", fix=fix, code="publish")


def _bound(address: str, port: int, *, needed: bool) -> _socket.socket | None:
    family = AF_INET6 if ":" in address else AF_INET
    sock = None
    try:
        sock = _socket.socket(family, SOCK_STREAM | SOCK_CLOEXEC)
        sock.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)  # what is in TIME_WAIT does not keep a task from starting again
        sock.bind((address, port))
    except OSError as error:
        if sock is not None:
            sock.close()
        if needed or error.errno not in (EADDRNOTAVAIL, EAFNOSUPPORT):
            raise
        return None  # no IPv6 here
    return sock


class _Inflow(Tunnel):
    """A tunnel whose client is outside: what the journal counts as up flows away from the task."""

    __slots__ = ()

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes away from the task, and to it."""
        return self.down.moved, self.up.moved


class Visitor:
    """One connection from this machine, until it is a tunnel into the task or reset."""

    __slots__ = ("_dial", "_entry", "fd", "gate", "listener", "sock")

    listener: PublishedListener

    def __init__(self, gate: Gate, listener: PublishedListener, sock: _socket.socket) -> None:
        self.gate = gate
        self.listener = listener
        self.sock = sock
        self.fd = sock.fileno()
        self._dial: Dial | None = None
        self._entry: Entry | None = Entry(gate, listener.task, listener.decision(), _METHOD)

    def begin(self) -> None:
        """Connect inside, over whichever loopback answers."""
        port = self.listener.publish.inside
        reason = Reason.UPSTREAM_REFUSED
        for address, family in ((LOOPBACKS[0], AF_INET), (LOOPBACKS[1], AF_INET6)):
            try:
                sock = self.listener.inward.socket(family)
                number = advance(sock, (address, port))
            except OSError as error:
                number = error.errno or EADDRNOTAVAIL
                sock = None
            if sock is not None:
                if number in CONNECTED:
                    self._join(sock, address)
                    return
                if number in PENDING:  # its queue is full
                    limits = self.listener.task.policy.limits
                    self._dial = Dial(self.gate.reactor, (), port, limits, self._dialled, (sock, address))
                    return
                sock.close()
            if family == AF_INET:
                reason = reason_of(number)
        self._reset(reason)

    def _dialled(self, sock: _socket.socket | None, address: str, error: DialError | None) -> None:
        self._dial = None
        if sock is not None:
            self._join(sock, address)
        else:
            self._reset(error.reason if error is not None else Reason.INTERNAL)

    def _join(self, sock: _socket.socket, address: str) -> None:
        entry, self._entry = self._entry, None
        assert entry is not None, "a visitor is joined once"
        entry.address = address
        tunnel = _Inflow(self.gate, self.listener, self.sock, sock, entry)
        tunnel.how = How.PUBLISHED
        reactor = self.gate.reactor
        reactor.watch(tunnel.upstream_fd, tunnel)
        reactor.watch(self.fd, tunnel)

    def _reset(self, reason: Reason) -> None:
        entry, self._entry = self._entry, None
        if entry is not None:
            entry.write(How.PUBLISHED, reason)
            if self._dial is not None:
                self._dial.cancel()
            reset(self.sock)
            self.listener.left(self.fd)

    def broken(self, error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        owner = self.gate.reactor.table.get(self.fd)
        if self._entry is None and owner is not None:
            owner.broken(error)
        else:
            self._reset(why_broken(error))


class PublishedListener(Listener):
    """A listening socket of this machine's loopback."""

    __slots__ = ("connections", "inward", "publish")

    client = Visitor  # type: ignore[assignment]
    defer = False  # the task's server may speak first

    def __init__(self, gate: Gate, fd: int, task: GateTask, publish: Publish, inward: Inward) -> None:
        """Take over a bound TCP socket of this machine, and listen.

        Raises:
            OSError: when it cannot listen; it is still the caller's then.
        """
        sock = _socket.socket(fileno=fd)
        try:
            sock.listen(BACKLOG)
        finally:
            sock.detach()
        self.publish = publish
        self.inward = inward
        self.connections = 0
        super().__init__(gate, fd, task)
        inward.users += 1

    def is_full(self) -> bool:
        """Whether there may be no visitor more."""
        return self.connections >= VISITORS

    def entered(self, fd: int) -> None:
        """One more visitor: not one of the task's own connections, but cut with them."""
        self.connections += 1
        self.task.clients.add(fd)

    def close(self) -> None:
        """Close the socket; visitors stay."""
        if self in self.gate.listeners:
            self.inward.leave()
        super().close()

    def left(self, fd: int) -> None:
        """One of them is gone."""
        self.connections -= 1
        self.task.clients.discard(fd)
        self.gate.connections -= 1

    def _record(self, reason: Reason) -> None:
        Entry(self.gate, self.task, self.decision(), _METHOD).write(How.PUBLISHED, reason)

    def decision(self) -> Decision:
        """What the journal says governs: the option on the command line."""
        publish = self.publish
        host = publish.host
        packed = None if host == "localhost" else inet_pton(AF_INET6 if ":" in host else AF_INET, host)
        destination = Destination(Host(host, packed), publish.port)
        source = f"--publish {publish.text}"
        return Decision(Verdict.ALLOW, destination, self.task.phase, Reason.ALLOWED, None, NAME, source)
