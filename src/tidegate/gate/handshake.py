"""What is said to an upstream proxy before the tunnel through it stands: CONNECT, or SOCKS5 (GAT-8, B38).

Rules of the file:

* Only a whole answer that grants the connection opens the tunnel: a 2xx head that ends in its blank line, or a SOCKS5
  reply of success. An answer that is cut short, too large, too slow or anything else is UPSTREAM_PROXY (502), and a
  407 is never passed to the task: it could do nothing about it.
* What follows the answer came from the destination and belongs to the client.

Loaded only where there is an upstream proxy.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.wire import socks5_client
from tidegate.wire.errors import WireError
from tidegate.wire.headers import connect_request
from tidegate.wire.http1 import parse_response_head, response_head_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

    from tidegate.gate.gate import Gate
    from tidegate.gate.reactor import Timer
    from tidegate.gate.upstream import Proxy
    from tidegate.model.host import Host
    from tidegate.model.limits import Limits

    Done = Callable[[socket | None, bytes, Reason | None], None]

READ = 1 << 14


class Handshake:
    """One handshake on one connected socket. Calls `done` once, with the socket and what came behind the answer, or
    with a reason; then the socket is closed. `cancel` closes it without a call.
    """  # noqa: D205 - one sentence does not fit one line

    __slots__ = (
        "_buffer",
        "_deadline",
        "_destination",
        "_done",
        "_fd",
        "_gate",
        "_host",
        "_limits",
        "_proxy",
        "_seen",
        "_sock",
        "_step",
    )

    def __init__(
        self, gate: Gate, sock: socket, proxy: Proxy, host: Host, destination: Destination, limits: Limits
    ) -> None:
        self._gate = gate
        self._sock = sock
        self._fd = sock.fileno()
        self._proxy = proxy
        self._host = host
        self._destination = destination
        self._limits = limits
        self._buffer = b""
        self._seen = 0
        self._step: Callable[[], bool] = self._read_connect if proxy.scheme == "http" else self._read_method
        self._done: Done | None = None
        self._deadline: Timer | None = None

    def start(self, done: Done) -> None:
        """Speak first."""
        self._done = done
        proxy = self._proxy
        if proxy.scheme == "http":
            hello = connect_request(Destination(self._host, self._destination.port), proxy.authorization)
        else:
            hello = socks5_client.greeting(bool(proxy.user))
        if self._send(hello):
            self._deadline = self._gate.reactor.after(self._limits.connect_seconds, self._too_slow, self)
            self._gate.reactor.watch(self._fd, self)

    def _send(self, data: bytes) -> bool:
        # A few hundred bytes on a fresh connection: what does not fit at once never will.
        try:
            if self._sock.send(data) == len(data):
                return True
        except OSError:
            pass
        self._finish(Reason.UPSTREAM_PROXY)
        return False

    def ready(self, _fd: int, _mask: int) -> None:
        """The proxy answers."""
        while self._done is not None:
            try:
                data = self._sock.recv(READ)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._finish(Reason.UPSTREAM_PROXY)
                return
            self._buffer += data
            try:
                while self._done is not None and self._step():
                    pass
            except WireError as error:
                reason = error.reason
                self._finish(Reason.UPSTREAM_PROXY if reason is Reason.UPSTREAM_RESPONSE else reason)

    # Each step says whether it is done and the next one may look at what is left.

    def _read_connect(self) -> bool:
        end = response_head_end(self._buffer, self._seen, self._limits)
        if end < 0:
            self._seen = len(self._buffer)
            return False
        head = parse_response_head(self._buffer[:end], self._limits)
        self._buffer, self._seen = self._buffer[end:], 0
        if head.status < 200 and head.status != 101:
            return True  # an interim answer; the real one follows
        self._finish(None if 200 <= head.status < 300 else Reason.UPSTREAM_PROXY)
        return False

    def _read_method(self) -> bool:
        answer = socks5_client.read_method(self._buffer)
        if answer is None:
            return False
        used, method = answer
        self._buffer = self._buffer[used:]
        if method == socks5_client.USER_PASSWORD:
            self._step = self._read_password_reply
            return self._send(socks5_client.password_request(self._proxy.user, self._proxy.password))
        self._step = self._read_reply
        return self._send(socks5_client.request(self._host, self._destination.port))

    def _read_password_reply(self) -> bool:
        used = socks5_client.read_password_reply(self._buffer)
        if not used:
            return False
        self._buffer = self._buffer[used:]
        self._step = self._read_reply
        return self._send(socks5_client.request(self._host, self._destination.port))

    def _read_reply(self) -> bool:
        used = socks5_client.read_reply(self._buffer)
        if used:
            self._buffer = self._buffer[used:]
            self._finish(None)
        return False

    def _too_slow(self) -> None:
        self._finish(Reason.UPSTREAM_PROXY)

    def _finish(self, reason: Reason | None) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        if self._deadline is not None:
            self._deadline.cancel()
            self._gate.reactor.forget(self._fd)
        if reason is None:
            done(self._sock, self._buffer, None)
        else:
            self._sock.close()
            done(None, b"", reason)

    def cancel(self) -> None:
        """Give up without a word."""
        if self._done is not None:
            self._done = None
            if self._deadline is not None:
                self._deadline.cancel()
                self._gate.reactor.forget(self._fd)
            self._sock.close()

    def cut(self, _reason: Reason) -> None:
        """The gate is ending; the client that waits cancels this."""

    def broken(self, _error: Exception) -> None:
        """A bug: the proxy is given up."""
        self._finish(Reason.INTERNAL)
