"""The ways to a syslog receiver: /dev/log, UDP, TCP and TLS; and the sink that uses one of them.

Syslog confirms nothing. On a stream a batch counts as received when the receiver's kernel has acknowledged all of its
bytes (SIOCOUTQ, tcp(7)) and the connection is still open `SETTLED` later; what the receiver's program had not read by
then and loses is lost. A datagram to this machine counts when the kernel took it; one over UDP to elsewhere may be
lost without a word.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import select
import socket
import termios
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome
from tidegate.journal.sinks.syslog import DATAGRAM, framed, message

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from tidegate.journal.sinks.record import Record

SECONDS: Final = 10.0  # for a connection, for each write, and for the acknowledgement of all
SETTLED: Final = 0.3
_PAUSE = 0.005
_CLOSED: Final = "it closed the connection"


class Wire(Protocol):
    """One transport. `longest` is of a message, 0 for any; `put` raises OSError where it does not arrive.

    `took` is what is known of a message that `put` sent.
    """

    longest: int
    took: str

    def put(self, messages: list[bytes]) -> None:
        """Send all of them."""

    def abort(self) -> None:
        """End what is on its way. From any thread."""

    def close(self) -> None:
        """Let go of what is open."""


class SyslogSink:
    """See the head of the file. `hostname` is what messages say they are from."""

    def __init__(self, wire: Wire, hostname: str) -> None:
        self._wire = wire
        self._hostname = hostname

    def send(self, batch: Sequence[Record]) -> Outcome:
        """Send a batch."""
        try:
            self._wire.put([message(record, self._hostname, self._wire.longest) for record in batch])
        except OSError as error:
            self._wire.close()
            return Outcome(LATER, error.strerror or str(error) or type(error).__name__)
        return Outcome(TAKEN, self._wire.took)

    def abort(self) -> None:
        """End what is on its way."""
        self._wire.abort()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()


class Datagrams:
    """One message a datagram, to a path (unix(7)) or to a host and port (RFC 5426)."""

    longest = DATAGRAM

    def __init__(self, path: str = "", host: str = "", port: int = 0) -> None:
        self._path = path
        self.took = "the kernel took it" if path else "it was sent; over UDP nothing says whether it arrived"
        self._host = host
        self._port = port
        self._sock: socket.socket | None = None

    def put(self, messages: list[bytes]) -> None:
        """Send each, and see whether the kernel has been told that nobody is there."""
        sock = self._sock = self._sock or self._connected()
        for text in messages:
            sock.send(text)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))

    def _connected(self) -> socket.socket:
        if self._path:
            family, address = socket.AF_UNIX, self._path
            sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        else:
            # socket.create_connection is for streams; the house resolves no names here itself: the kernel's UDP socket
            # is connected by name, in the first family that has one.
            return _udp(self._host, self._port)
        try:
            sock.settimeout(SECONDS)
            sock.connect(address)
        except BaseException:
            sock.close()
            raise
        return sock

    def abort(self) -> None:
        """A datagram is never on its way for long."""

    def close(self) -> None:
        """Close the socket."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None


def _udp(host: str, port: int) -> socket.socket:
    failure: OSError | None = None
    for family in (socket.AF_INET6, socket.AF_INET) if ":" in host else (socket.AF_INET, socket.AF_INET6):
        sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            sock.settimeout(SECONDS)
            sock.connect((host, port))
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))


class Stream:
    """A connection over TCP, under TLS where there is a context. It is kept between batches."""

    longest = 0
    took = "its kernel has acknowledged it; syslog itself confirms nothing"

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        self._host = host
        self._port = port
        self._context = context
        self._raw: socket.socket | None = None
        self._sock: socket.socket | None = None

    def put(self, messages: list[bytes]) -> None:
        """Send all, and wait until the other side's kernel has them."""
        sock = self._open()
        sock.sendall(b"".join(framed(text) for text in messages))
        self._acknowledged(sock)

    def _open(self) -> socket.socket:
        if self._sock is not None and not _ended(self._sock, tls=self._context is not None):
            return self._sock
        self.close()
        raw = self._raw = socket.create_connection((self._host, self._port), SECONDS)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._sock = raw
        if self._context is not None:
            self._sock = self._context.wrap_socket(raw, server_hostname=self._host)
        return self._sock

    def _acknowledged(self, sock: socket.socket) -> None:
        end = monotonic() + SECONDS
        waiting = array.array("i", [0])
        while True:
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, waiting)
            if not waiting[0]:
                break
            if monotonic() > end:
                raise TimeoutError(errno.ETIMEDOUT, "it does not acknowledge what it is sent")
            self._look(sock, _PAUSE)  # what it has ended it never acknowledges
        end = monotonic() + SETTLED
        left = SETTLED
        while left > 0:
            self._look(sock, left)
            left = end - monotonic()

    def _look(self, sock: socket.socket, seconds: float) -> None:
        if self._readable(sock, seconds) and (why := _ended(sock, tls=self._context is not None)):
            raise ConnectionResetError(errno.ECONNRESET, why)

    @staticmethod
    def _readable(sock: socket.socket, seconds: float) -> bool:
        look = select.poll()  # not select: a server with a thousand tasks has descriptors above 1023
        look.register(sock, select.POLLIN)
        return bool(look.poll(seconds * 1000))

    def abort(self) -> None:
        """End what is on its way."""
        sock = self._sock or self._raw
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        for sock in (self._sock, self._raw):
            if sock is not None:
                sock.close()
        self._sock = self._raw = None


def _ended(sock: socket.socket, *, tls: bool) -> str:
    """Return how the other side has ended it, '' where it has not.

    What it says is read and not looked at: syslog has no answers. Under TLS 1.3 a certificate of ours that it does not
    take comes as an alert, after the handshake.
    """
    sock.settimeout(0)
    try:
        for _ in range(64):
            if not sock.recv(4096):
                return _CLOSED
    except OSError as error:
        import ssl

        if isinstance(error, ssl.SSLWantReadError if tls else BlockingIOError):
            return ""
        return error.strerror or _CLOSED
    finally:
        with suppress(OSError):
            sock.settimeout(SECONDS)
    return ""
