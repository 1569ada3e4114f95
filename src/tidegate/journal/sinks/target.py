"""Where something is posted: an address that was checked once, and one POST to it.

Rules of the file: TLS is verified; plain `http` is for this machine's loopback, unless the operator says otherwise. No
redirect is followed, no proxy of the environment is used (one that a person names is, proxy.py), and what an answer may
say is bounded in bytes and in time: a receiver that drips a byte every few seconds is cut off as one that says nothing.
"""

from __future__ import annotations

import errno
import http.client
import re
import socket
import threading
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tidegate.journal.sinks.client_tls import tls_context
from tidegate.model.errors import StartError
from tidegate.model.value import Value

if TYPE_CHECKING:
    from tidegate.journal.sinks.proxy import Proxy

SECONDS: Final = 10.0  # for each connection, and for each read of its answer
WHOLE_SECONDS: Final = 30.0  # for one message from the first packet to the last byte of its answer
LOOPBACK: Final = frozenset(("127.0.0.1", "::1", "localhost"))
_LONGEST_WAIT = 3600.0  # seconds that a receiver may ask for
_NO_HTTP: Final = "what it answers is not HTTP"
_TUNNEL = re.compile(r"(Tunnel connection failed: [0-9]+).*", re.DOTALL)
_DIGITS = re.compile(r"[0-9]{1,9}")


class Reply(Value):
    """What a receiver answered: `wait` is what `Retry-After` asks for in seconds, None where it does not."""

    status: int
    wait: float | None = None
    body: bytes = b""


class Target:
    """Where to post, and the key that goes with it. `name` is how a person gave the address.

    `why` says why it cannot be read by others on its way, `clear` that it may. `ca`, `cert` and `cert_key` are as in
    `tls_context`.

    Raises:
        StartError: from the constructor, for an address that cannot be used.
    """

    def __init__(
        self,
        url: str,
        key: bytes,
        *,
        name: str = "--webhook",
        why: str = "what it is sent can answer questions",
        clear: bool = False,
        ca: str = "",
        cert: str = "",
        cert_key: bytes = b"",
        proxy: Proxy | None = None,
    ) -> None:
        try:
            parts = urlsplit(url)
            self.port = parts.port
        except ValueError:
            raise StartError(f"{name} is not a URL", fix=f"{name} https://HOST/PATH") from None
        self.host = parts.hostname or ""
        self.secure = parts.scheme == "https"
        if "@" in parts.netloc:
            raise StartError(f"{name} has a user or a password in it, which others can read", fix="https://HOST/PATH")
        if parts.scheme not in ("http", "https") or not self.host or parts.fragment:
            raise StartError(f"{name} {url!r} is not a plain URL", fix=f"{name} https://HOST/PATH")
        if not self.secure and (self.host not in LOOPBACK or proxy is not None) and not clear:
            raise StartError(
                f"{name} {url!r}: {why}, and http is read by others",
                fix="use https, or a receiver on this machine's loopback",
            )
        if not url.isascii() or not url.isprintable() or " " in url:
            raise StartError(f"{name} has characters that a URL cannot have", fix="write them as %XX")
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.key = key
        self.url = url
        if (cert or cert_key) and not self.secure:
            raise StartError(f"{name}: a certificate is shown under TLS only", fix="https, or leave it out")
        if proxy is not None and ":" in self.host:
            raise StartError(f"{name}: through a proxy a receiver has a name, or an IPv4 address", fix="name it")
        self._context = tls_context(ca, cert, cert_key) if self.secure else None
        self._proxy = proxy
        self._open: set[_Way] = set()

    def post(self, body: bytes, headers: dict[str, str], *, path: str = "", keep: int = 0) -> Reply:
        """Send it and return the answer, of its body at most `keep` bytes. Blocks. `path` is in place of its own.

        Raises:
            OSError, http.client.HTTPException: when it does not arrive.
        """
        return self.ask("POST", path or self.path, body, headers, keep=keep)

    def ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str], *, keep: int) -> Reply:
        """Make one request; otherwise as `post`."""
        connection = self._connection()
        if self._proxy is not None and self._context is None:
            path = f"http://{self._authority(80)}{path}"
            headers = headers | self._proxy.headers
        way = _Way(connection)
        done = threading.Event()
        self._open.add(way)
        threading.Thread(target=_cut_off, args=(way, done), name="post", daemon=True).start()
        try:
            self._connect(connection)
            way.sock = connection.sock
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            reply = Reply(answer.status, _wait(answer), answer.read(keep) if keep else b"")
        except http.client.RemoteDisconnected:
            raise
        except (http.client.BadStatusLine, http.client.UnknownProtocol):
            # It quotes what came, which may be what was sent: a path that is a secret, a key.
            raise OSError(errno.EPROTO, _NO_HTTP) from None
        finally:
            done.set()
            self._open.discard(way)
            connection.close()
        if way.was_shut:  # to the library a head that ends in its middle is a head
            raise TimeoutError(errno.ETIMEDOUT, "its answer did not end")
        return reply

    def _connection(self) -> http.client.HTTPConnection:
        proxy = self._proxy
        host, port = (self.host, self.port) if proxy is None else (proxy.host, proxy.port)
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=SECONDS)
        connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=self._context)
        if proxy is not None:
            # Python before 3.12 asks in HTTP/1.0 and without it, which some proxies do not take.
            headers = proxy.headers | {"Host": self._authority(0)}
            connection.set_tunnel(self.host, self.port or 443, headers)
        return connection

    def _authority(self, default: int) -> str:
        """Return host and port as one writes them, the port left out where it is the default."""
        port = self.port or (443 if self.secure else 80)
        return self.host if port == default else f"{self.host}:{port}"

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except (OSError, http.client.BadStatusLine) as error:
            if self._proxy is None:
                raise
            if not isinstance(error, OSError):
                raise OSError(errno.EPROTO, f"through the proxy {self._proxy.place}: {_NO_HTTP}") from None
            # What a proxy says beside its status may repeat what it was sent.
            why = _TUNNEL.sub(r"\1", error.strerror or str(error) or type(error).__name__)
            raise OSError(error.errno, f"through the proxy {self._proxy.place}: {why}") from None

    def abort(self) -> None:
        """End what is on its way. From any thread."""
        for way in list(self._open):
            way.shut()


class _Way:
    """A message on its way.

    A connection lets go of its socket with the head of the last answer on it, while the body is still to come: `sock`
    is what that is read from.
    """

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.sock: socket.socket | None = None
        self.was_shut = False

    def shut(self) -> None:
        """Wake whoever waits for it. From any thread."""
        self.was_shut = True
        sock = self.sock or self.connection.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # under TLS too


def _cut_off(way: _Way, done: threading.Event) -> None:
    left = WHOLE_SECONDS
    while not done.wait(left):
        way.shut()
        left = 1.0  # it may have been about to connect


def _wait(answer: http.client.HTTPResponse) -> float | None:
    """Return what Retry-After asks for (RFC 9110, 10.2.3); a date counts from the answer's own."""
    text = (answer.getheader("Retry-After") or "").strip()
    if _DIGITS.fullmatch(text):
        return min(float(text), _LONGEST_WAIT)
    try:
        wanted, now = parsedate_to_datetime(text), parsedate_to_datetime(answer.getheader("Date") or "")
        return min(max((wanted - now).total_seconds(), 0.0), _LONGEST_WAIT)
    except (TypeError, ValueError):
        return None
