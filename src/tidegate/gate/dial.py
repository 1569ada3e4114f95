"""The one place that dials: a race over checked addresses (RFC 8305).

Rules of the file:

* Only addresses handed in are tried, and all of them were admitted before. No name ever arrives here.
* The families alternate, in the order the resolver gave; the next attempt starts 250 ms after the last one, or at
  once when one fails (RFC 8305 sections 4 and 5). The first to connect wins and the others are closed.
* One address has `connect_seconds`, the whole race `total_seconds` (GAT-6).
* A connection is tried at once and asked for again at once: on loopback it is usually there.

Sources: RFC 8305; connect(2) for EINPROGRESS and EALREADY.
"""

from __future__ import annotations

import _socket
from _socket import AF_INET, AF_INET6, IPPROTO_TCP, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, TCP_NODELAY
from errno import (
    EALREADY,
    ECONNREFUSED,
    EINPROGRESS,
    EISCONN,
    EMFILE,
    ENFILE,
    ENOBUFS,
    ENOMEM,
    ETIMEDOUT,
    EWOULDBLOCK,
)  # fmt: skip

from tidegate.addresses.admission import address_text
from tidegate.gate.reactor import READ_WRITE
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.gate.reactor import Reactor, Timer
    from tidegate.model.limits import Limits

STAGGER = 0.25  # RFC 8305 section 8: Connection Attempt Delay, recommended value
MOST = 16  # addresses of one name that are tried at all
_KIND = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC
PENDING = (EINPROGRESS, EALREADY, EWOULDBLOCK)
CONNECTED = (0, EISCONN)
_EXHAUSTED = (EMFILE, ENFILE, ENOBUFS, ENOMEM)


class DialError(Exception):
    """No address could be reached. `tried` are their texts, in order."""

    def __init__(self, reason: Reason, tried: tuple[str, ...]) -> None:
        super().__init__(reason.sentence)
        self.reason = reason
        self.tried = tried


def reason_of(number: int) -> Reason:
    """Return the reason that an errno of connect(2) stands for."""
    if number == ECONNREFUSED:
        return Reason.UPSTREAM_REFUSED
    if number == ETIMEDOUT:
        return Reason.UPSTREAM_TIMEOUT
    if number in _EXHAUSTED:
        return Reason.OUT_OF_RESOURCES
    return Reason.UPSTREAM_UNREACHABLE


def why_broken(error: Exception) -> Reason:
    """Return the reason for a connection that broke: a bug of ours, unless the machine had nothing left for it."""
    exhausted = isinstance(error, OSError) and error.errno in _EXHAUSTED
    return Reason.OUT_OF_RESOURCES if exhausted else Reason.INTERNAL


def advance(sock: _socket.socket, target: tuple[str, int]) -> int:
    """Connect without waiting; the errno, which is in CONNECTED, in PENDING, or why not."""
    number = sock.connect_ex(target)
    return sock.connect_ex(target) if number == EINPROGRESS else number


def begin(packed: bytes, text: str, port: int) -> tuple[_socket.socket | None, int]:
    """Start a connection. Returns its socket and 0 (connected) or EINPROGRESS, else None and why not (an errno)."""
    try:
        sock = _socket.socket(AF_INET if len(packed) == 4 else AF_INET6, _KIND)
    except OSError as error:
        return None, error.errno or EMFILE
    try:
        sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        number = advance(sock, (text, port))
    except OSError as error:
        sock.close()
        return None, error.errno or ECONNREFUSED
    if number in CONNECTED:
        return sock, 0
    if number in PENDING:
        return sock, EINPROGRESS
    sock.close()
    return None, number


def alternate(addresses: Sequence[bytes]) -> list[bytes]:
    """Return the addresses with the two families taking turns, beginning with the family of the first."""
    first = [packed for packed in addresses if len(packed) == len(addresses[0])]
    second = [packed for packed in addresses if len(packed) != len(addresses[0])]
    mixed: list[bytes] = []
    for index in range(max(len(first), len(second))):
        mixed += first[index : index + 1] + second[index : index + 1]
    return mixed[:MOST]


class _Attempt:
    """One address being tried."""

    __slots__ = ("deadline", "dial", "sock", "target")

    def __init__(self, dial: Dial, sock: _socket.socket, target: tuple[str, int]) -> None:
        self.dial = dial
        self.sock = sock
        self.target = target
        reactor = dial.reactor
        self.deadline: Timer = reactor.after(dial.limits.connect_seconds, self.expired, self)
        reactor.watch(sock.fileno(), self, READ_WRITE)

    def ready(self, _fd: int, _mask: int) -> None:
        """The kernel may have an answer; ask for it, the mask is only a hint."""
        number = self.sock.connect_ex(self.target)
        if number in CONNECTED:
            self.dial.won(self)
        elif number not in PENDING:
            self.dial.lost(self, reason_of(number))

    def expired(self) -> None:
        """The address had its time."""
        self.dial.lost(self, Reason.UPSTREAM_TIMEOUT)

    def broken(self, _error: Exception) -> None:
        """A bug: this attempt is lost."""
        self.dial.lost(self, Reason.INTERNAL)

    def detach(self) -> _socket.socket:
        """Stop watching, and return the socket."""
        self.deadline.cancel()
        self.dial.reactor.forget(self.sock.fileno())
        return self.sock


class Dial:
    """One race. Calls `done` once: with a connected socket and its address, or with a DialError.

    `cancel` ends it without a call. `done` may be called before the constructor returns; check `finished`.
    `started` is an attempt that `begin` left pending.
    """

    __slots__ = (
        "_attempts",
        "_done",
        "_next",
        "_queue",
        "_reasons",
        "_total",
        "_tried",
        "finished",
        "limits",
        "port",
        "reactor",
    )

    def __init__(
        self,
        reactor: Reactor,
        addresses: Sequence[bytes],
        port: int,
        limits: Limits,
        done: Callable[[_socket.socket | None, str, DialError | None], None],
        started: tuple[_socket.socket, str] | None = None,
    ) -> None:
        self.reactor = reactor
        self.port = port
        self.limits = limits
        self.finished = False
        self._done = done
        self._queue = alternate(addresses) if addresses else []
        self._attempts: list[_Attempt] = []
        self._tried: list[str] = []
        self._reasons: list[Reason] = []
        self._next: Timer | None = None
        self._total: Timer | None = None
        if started is not None:
            sock, text = started
            self._tried.append(text)
            self._attempts.append(_Attempt(self, sock, (text, port)))
        else:
            self._start_next()
        if not self.finished:
            self._total = reactor.after(limits.total_seconds, self._out_of_time)

    def _start_next(self) -> None:
        self._next = None
        while self._queue:
            packed = self._queue.pop(0)
            text = address_text(packed)
            self._tried.append(text)
            sock, number = begin(packed, text, self.port)
            if sock is None:
                self._reasons.append(reason_of(number))
                continue
            if number == 0:
                self._finish(sock, text, None)
                return
            self._attempts.append(_Attempt(self, sock, (text, self.port)))
            if self._queue:
                self._next = self.reactor.after(STAGGER, self._start_next)
            return
        if not self._attempts:
            self._finish(None, "", DialError(_worst(self._reasons), tuple(self._tried)))

    def won(self, attempt: _Attempt) -> None:
        """The first attempt that connected."""
        self._attempts.remove(attempt)
        self._finish(attempt.detach(), attempt.target[0], None)

    def lost(self, attempt: _Attempt, reason: Reason) -> None:
        """One attempt failed; the next one need not wait."""
        if attempt not in self._attempts:
            return  # it broke after it had won, or after the race was over
        self._attempts.remove(attempt)
        attempt.detach().close()
        self._reasons.append(reason)
        if self._next is not None:
            self._next.cancel()
        if self._queue or not self._attempts:
            self._start_next()

    def _out_of_time(self) -> None:
        self._queue.clear()
        self._finish(None, "", DialError(Reason.UPSTREAM_TIMEOUT, tuple(self._tried)))

    def _finish(self, sock: _socket.socket | None, text: str, error: DialError | None) -> None:
        self.cancel()
        self._done(sock, text, error)

    def cancel(self) -> None:
        """End the race; nothing is called any more."""
        self.finished = True
        if self._next is not None:
            self._next.cancel()
        if self._total is not None:
            self._total.cancel()
        for attempt in self._attempts:
            attempt.detach().close()
        self._attempts.clear()


def _worst(reasons: list[Reason]) -> Reason:
    # What a person can act on comes first: someone answered "no", then silence, then no way there.
    for reason in (
        Reason.INTERNAL,
        Reason.OUT_OF_RESOURCES,
        Reason.UPSTREAM_REFUSED,
        Reason.UPSTREAM_TIMEOUT,
    ):
        if reason in reasons:
            return reason
    return Reason.UPSTREAM_UNREACHABLE
