"""How a captured connection is refused: in its client's own protocol, or with a reset as from a closed port (GAT-9).

Rules of the file:

* The client has connected already, so a refusal cannot be an answer to its connect(). What its first bytes speak is
  looked at, not consumed, for at most `PATIENCE`, or `LONG_PATIENCE` on ports where the client is known to speak
  first: a JVM connects before it loads its TLS, which takes it half a second and more. TLS gets an alert, HTTP a 403,
  SSH a disconnect message, PostgreSQL and Redis an error. A PostgreSQL client that would like TLS is told that there
  is none: it then starts without, is refused before it has sent more than its user's name, and shows why.
* Where the server speaks first there is nothing to wait for: SSH is told so at once on its port, others are reset.
* Whatever cannot be told is reset: the nearest thing to "connection refused" that is left. So is TLS to a destination
  that was allowed and did not answer: no alert says that.
"""

from __future__ import annotations

from _socket import MSG_PEEK, SO_LINGER, SOL_SOCKET

from tidegate.gate.linger import refusal_line, render
from tidegate.wire.client_hello import refusal_alert
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.opening import clear_text_speaks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.reactor import Timer
    from tidegate.model.decision import Decision
    from tidegate.model.reason import Reason

PATIENCE = 0.25  # seconds; most clients that speak first have spoken long before, on a namespace's own loopback
LONG_PATIENCE = 10.0  # seconds; nothing waits for the end of it but a client that says nothing either
PEEK = 8192  # bytes: a request line as long as GAT-6 allows
SSH_PORT = 22
SERVER_FIRST = frozenset({21, 25, 110, 119, 143, 587, 3306, 5900})  # FTP, SMTP, POP3, NNTP, IMAP, MySQL, VNC
# HTTP, TLS from the first byte (https, smtps, ldaps, DNS, imaps, pop3s), and HTTP's usual others.
CLIENT_FIRST = frozenset({80, 443, 465, 636, 853, 993, 995, 8080, 8443})
_TLS_HANDSHAKE = 22
_WISHES = 2
_RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # struct linger {1, 0}: close(2) sends RST


def speaks(data: bytes) -> Speaks | None:
    """Return what a client speaks, None while its bytes do not tell."""
    if not data:
        return None
    return Speaks.TLS if data[0] == _TLS_HANDSHAKE else clear_text_speaks(data)


def reset(sock: socket) -> None:
    """Close a socket so that its peer sees a reset."""
    try:
        sock.setsockopt(SOL_SOCKET, SO_LINGER, _RESET)
    finally:
        sock.close()


class Parting:
    """One refused client, until it is told. Owns its socket."""

    __slots__ = (
        "_answered",
        "_deadline",
        "_decision",
        "_reason",
        "_sock",
        "_tried",
        "_watched",
        "fd",
        "gate",
        "listener",
    )

    def __init__(
        self,
        gate: Gate,
        listener: Door,
        sock: socket,
        decision: Decision,
        reason: Reason,
        tried: tuple[str, ...],
        *,
        watched: bool,
    ) -> None:
        self.gate = gate
        self.listener = listener
        self.fd = sock.fileno()
        self._sock: socket | None = sock
        self._decision = decision
        self._reason = reason
        self._tried = tried
        self._watched = watched
        self._deadline: Timer | None = None
        self._answered = 0
        port = decision.destination.port
        if port == SSH_PORT:
            self._say(self._message(Speaks.SSH, b""))
        elif port in SERVER_FIRST:
            self.close()
        elif not self._look():
            self._deadline = gate.reactor.after(
                LONG_PATIENCE if self._answered or port in CLIENT_FIRST else PATIENCE, self.close, self
            )
            if watched:
                gate.reactor.table[self.fd] = self
            else:
                self._watched = True
                gate.reactor.watch(self.fd, self)

    def ready(self, _fd: int, _mask: int) -> None:
        """Bytes arrived, or the client went away."""
        self._look()

    def _look(self) -> bool:
        # Whether it is over.
        sock = self._sock
        if sock is None:
            return True
        try:
            data = sock.recv(PEEK, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return True
        told = speaks(data)
        if told is None and len(data) < PEEK:
            return False
        if told is Speaks.OTHER and data[0] == 0 and self._without_encryption(sock, data):
            return self._look()
        self._say(self._message(told, data))
        return True

    def _without_encryption(self, sock: socket, data: bytes) -> bool:
        # Whether a wish for encryption was answered; a client has two, TLS and GSSAPI.
        from tidegate.wire.databases import ENCRYPTION_REQUEST, NO_ENCRYPTION, asks_for_encryption

        if self._answered == _WISHES or not asks_for_encryption(data):
            return False
        self._answered += 1
        try:
            sock.recv(ENCRYPTION_REQUEST)
            sock.send(NO_ENCRYPTION)
        except OSError:
            return False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = self.gate.reactor.after(LONG_PATIENCE, self.close, self)
        return True

    def _message(self, told: Speaks | None, data: bytes) -> bytes:
        if told is Speaks.TLS:
            return b"" if self._decision.allowed else refusal_alert(self._reason)
        if told is Speaks.HTTP:
            return render(self._decision, self._reason, self._tried, body=data[:5] != b"HEAD ")
        if told is Speaks.SSH:
            from tidegate.wire.ssh import ssh_disconnect

            return ssh_disconnect(refusal_line(self._decision, self._reason, self._tried), banner=True)
        if told is Speaks.OTHER:
            from tidegate.wire.databases import database_refusal

            return database_refusal(data, refusal_line(self._decision, self._reason, self._tried))
        return b""

    def _say(self, message: bytes) -> None:
        sock = self._sock
        if sock is None:
            return
        try:
            if message:
                sock.send(message)
        except OSError:
            message = b""
        if not message:
            self.close()
            return
        self._leave()
        self.gate.linger(self.listener, sock, watched=self._watched)

    def _leave(self) -> None:
        self._sock = None
        self.gate.reactor.table.pop(self.fd, None)
        if self._deadline is not None:
            self._deadline.cancel()

    def cut(self, _reason: Reason) -> None:
        """The gate or the task is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug: this connection ends, and only it."""
        self.close()

    def close(self) -> None:
        """Reset it; later calls do nothing."""
        sock = self._sock
        if sock is not None:
            self._leave()
            reset(sock)
            self.listener.left(self.fd)
