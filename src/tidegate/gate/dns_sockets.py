"""The sockets of a task's resolver: datagrams and streams of its namespace, served by the gate's loop.

Rules of the file:

* Bounded: a few datagrams a turn, so that a flood of look-ups is no more than one busy connection; few streams at once,
  each with one query's bytes, and none for longer than `IDLE` without a query.
* What a task asks for beyond its share (names.py) is read later; until then it waits in the socket.
* A datagram whose answer cannot be sent is forgotten, as on any network.
* A socket on the wildcard address answers from the address it was asked at (ip(7), IP_PKTINFO): a client that asked
  8.8.8.8 takes no answer from elsewhere.

Sources: udp(7), RFC 7766 for streams. What it does not do: it reads no messages (names.py does).
"""

from __future__ import annotations

import _socket
from _socket import AF_INET6, AF_UNIX, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOCK_DGRAM, SOCK_STREAM, TCP_NODELAY

from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import ENDED, IN, LEVEL, OUT
from tidegate.gate.record import Entry
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.wire.dns import MAX_QUERY, framed, read_frame
from tidegate.wire.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.names import Names
    from tidegate.gate.task import GateTask

BATCH = 2  # datagrams, queries of one stream or new streams in one turn: a flood takes its turn with the others
STREAMS = 32  # at once on one listener; a resolver needs one
IDLE = 10.0  # seconds without a whole query
REST = 0.01  # seconds without reading from a task that has asked for more than its share
PAUSE = 0.1  # seconds without accepting, where descriptors ran out
_IP_PKTINFO = 8  # linux/in.h
_IPV6_RECVPKTINFO = 49  # linux/in6.h
_IPV6_PKTINFO = 50
_IPV6_FREEBIND = 78
_ANCILLARY = 64  # bytes: struct in6_pktinfo with its header


def adopt(fd: int, kind: int) -> _socket.socket:
    """Take over a descriptor that must be a socket of this kind (SOCK_STREAM or SOCK_DGRAM).

    Raises:
        OSError: when it is not; it is still the caller's then.
    """
    sock = _socket.socket(fileno=fd)
    if sock.type != kind:
        sock.detach()
        raise OSError(22, "the descriptor is a socket of another kind")
    sock.setblocking(False)
    return sock


class Datagrams:
    """One UDP socket. Owns its descriptor."""

    __slots__ = ("_fd", "_gate", "_names", "_sock", "_wild")

    def __init__(self, gate: Gate, fd: int, names: Names) -> None:
        """Take over a bound UDP socket.

        Raises:
            OSError: when `fd` is none; it is still the caller's then.
        """
        sock = adopt(fd, SOCK_DGRAM)
        six = sock.family == AF_INET6
        address = str(sock.getsockname()[0])
        self._wild = address in {"0.0.0.0", "::"}  # noqa: S104 - it was bound by the hold, inside the task's namespace
        if self._wild and six:
            sock.setsockopt(IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
            sock.setsockopt(
                IPPROTO_IPV6, _IPV6_FREEBIND, 1
            )  # a route may make an address local that `lo` does not have
        elif self._wild:
            sock.setsockopt(IPPROTO_IP, _IP_PKTINFO, 1)
        self._gate = gate
        self._fd = fd
        self._names = names
        self._sock: _socket.socket | None = sock
        gate.reactor.watch(fd, self, LEVEL)

    def ready(self, _fd: int, _mask: int) -> None:
        """Queries are waiting; what this turn does not take is told of again."""
        sock = self._sock
        if sock is None:
            return
        names = self._names
        answer = names.answer
        for _ in range(BATCH):
            if not names.may_answer():
                self._gate.reactor.forget(self._fd)
                self._gate.reactor.after(REST, self._resume, self)
                return
            try:
                if self._wild:
                    data, ancillary, _, peer = sock.recvmsg(MAX_QUERY + 1, _ANCILLARY)
                else:
                    data, peer = sock.recvfrom(MAX_QUERY + 1)
                    ancillary = []
            except OSError:  # nothing there (any more), or an error of an earlier answer
                return
            reply = answer(data, stream=False)
            if not reply:
                continue
            try:
                if ancillary:
                    sock.sendmsg((reply,), [_source(*ancillary[0])], 0, peer)
                else:
                    sock.sendto(reply, peer)
            except OSError:
                continue  # no room, or nobody there: the client asks again

    def _resume(self) -> None:
        if self._sock is not None:
            self._gate.reactor.watch(self._fd, self, LEVEL)

    def cut(self, _reason: Reason) -> None:
        """The gate is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug with one query: it has no answer, and the next ones have."""

    def close(self) -> None:
        """Close the socket."""
        sock, self._sock = self._sock, None
        if sock is not None:
            self._gate.reactor.forget(self._fd)
            sock.close()


def _source(level: int, kind: int, data: bytes) -> tuple[int, int, bytes]:
    # Where the query arrived is where the answer leaves from; the interface is the kernel's choice.
    if level == IPPROTO_IPV6:
        return level, _IPV6_PKTINFO, data[:16] + bytes(4)
    return level, kind, bytes(4) + data[8:12] + bytes(4)


class Streams:
    """One listening TCP socket of the resolver. Owns its descriptor and its streams."""

    __slots__ = ("_fd", "_gate", "_names", "_sock", "_task", "open")

    def __init__(self, gate: Gate, fd: int, task: GateTask, names: Names) -> None:
        """Take over a listening TCP socket, or a relay's unix socket.

        Raises:
            OSError: when `fd` is none; it is still the caller's then.
        """
        sock = adopt(fd, SOCK_STREAM)
        if sock.family != AF_UNIX:  # else a relay's
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # accepted sockets inherit it
        self._gate = gate
        self._fd = fd
        self._task = task
        self._names = names
        self._sock: _socket.socket | None = sock
        self.open: set[_Stream] = set()
        gate.reactor.watch(fd, self, LEVEL)

    def ready(self, _fd: int, _mask: int) -> None:
        """Clients are waiting."""
        for _ in range(BATCH):
            if self._sock is None:
                return
            try:
                fd = self._sock._accept()[0]  # type: ignore[attr-defined]  # noqa: SLF001 - see listener.py
            except BlockingIOError:
                return
            except OSError:  # a client that gave up, or no descriptor left: not at full speed
                self._gate.reactor.forget(self._fd)
                self._gate.reactor.after(PAUSE, self._resume, self)
                return
            sock = _socket.socket(self._sock.family, SOCK_STREAM, 0, fd)
            if len(self.open) >= STREAMS:
                Entry(self._gate, self._task, None, "DNS").write(How.REFUSED, Reason.TOO_MANY_CONNECTIONS)
                sock.close()
                continue
            sock.setblocking(False)
            self.open.add(_Stream(self, self._gate, sock, self._names))

    def _resume(self) -> None:
        if self._sock is not None:
            self._gate.reactor.watch(self._fd, self, LEVEL)

    def cut(self, _reason: Reason) -> None:
        """The gate is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug while accepting."""
        self.close()

    def close(self) -> None:
        """Close the socket and its streams."""
        sock, self._sock = self._sock, None
        if sock is not None:
            self._gate.reactor.forget(self._fd)
            sock.close()
        for stream in list(self.open):
            stream.close()


class _Stream:
    """One client: queries one after the other, each answered before the next is looked at."""

    __slots__ = ("_buffer", "_deadline", "_fd", "_gate", "_listener", "_names", "_out", "_resting", "_sock")

    def __init__(self, listener: Streams, gate: Gate, sock: _socket.socket, names: Names) -> None:
        self._listener = listener
        self._gate = gate
        self._names = names
        self._sock = sock
        self._fd = sock.fileno()
        self._buffer = b""
        self._resting = False
        self._out = Outlet(gate.reactor, sock)
        self._deadline = gate.reactor.after(IDLE, self.close, self)
        gate.reactor.watch(self._fd, self)

    def ready(self, fd: int, mask: int) -> None:
        """Bytes arrived, or the client takes some again."""
        try:
            if mask & OUT and not self._out.flush():
                return
            for _ in range(BATCH):
                if self._out.blocked or self._resting:
                    return
                if not self._next():
                    data = self._sock.recv(MAX_QUERY + 2 - len(self._buffer))
                    if not data:
                        self.close()
                        return
                    self._buffer += data
        except BlockingIOError:
            return
        except (OSError, WireError):
            self.close()
            return
        if not self._resting:
            self._gate.reactor.again(self, fd, IN | ENDED)

    def _resume(self) -> None:
        if self._fd >= 0:
            self._resting = False
            self.ready(self._fd, IN)

    def _next(self) -> bool:
        # Answer one whole query; False when there is none.
        found = read_frame(self._buffer)
        if found is None:
            return False
        if not self._names.may_answer():
            self._resting = True
            self._gate.reactor.after(REST, self._resume, self)
            return True
        message, used = found
        self._buffer = self._buffer[used:]
        self._deadline.cancel()
        self._deadline = self._gate.reactor.after(IDLE, self.close, self)
        reply = self._names.answer(message, stream=True)
        if reply:
            self._out.send(framed(reply))
        return True

    def cut(self, _reason: Reason) -> None:
        """The gate is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug: this client asks somewhere else, that is: again."""
        self.close()

    def close(self) -> None:
        """Close it; later calls do nothing."""
        if self._fd < 0:
            return
        self._deadline.cancel()
        self._gate.reactor.table.pop(self._fd, None)
        self._fd = -1
        self._sock.close()
        self._listener.open.discard(self)
