"""The doors of the API: HTTP/1.1 over a unix socket, over loopback, and over TLS where the owner asked for it.

uvicorn's h11 protocol moves the bytes, on sockets that are bound here and on the server's own loop: uvicorn's `Server`
would wake ten times a second for each of them. Rules of the file:

* Each connection says through which door it came, and over the unix socket whether its peer may come in (peer
  credentials, unix(7)), in the request's scope: `scope["state"]`.
* A request's head comes within `HEAD_SECONDS` and in 64 KiB. Connections are bounded for each door by itself, so that
  nobody on loopback can keep the owner's socket busy.
* No header of a request changes who or where its sender is (no X-Forwarded-For).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any, Final

import h11
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from tidegate.server.api.errors import ApiError
from tidegate.server.api.guard import HEADERS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp

HEAD_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 30
MAX_HEAD: Final = 64 * 1024
MAX_CONNECTIONS: Final = 256
REFUSED_CONNECTIONS: Final = 32  # more than those that are told so (503); what is beyond is closed without a word
BACKLOG: Final = 128
STOP_SECONDS: Final = 0.5
# Turns of the loop in which what was accepted in the last moment becomes a connection, is aborted, and is closed. A
# server that is closed before that takes none of them, and would leave their sockets open (Python 3.11).
LAST_TURNS: Final = 5


class Door(msgspec.Struct, frozen=True):
    """Where a connection came in. `hosts` are the Host headers it answers for, `origins` the pages that may ask.

    `origin` is where it listens, '' for no page can.
    """

    kind: str
    hosts: frozenset[str]
    origins: frozenset[str]
    origin: str = ""

    @property
    def is_unix(self) -> bool:
        """Whether callers are known by their credentials."""
        return self.kind == "unix"


UNIX_DOOR: Final = Door("unix", frozenset(("localhost",)), frozenset())


def tcp_door(scheme: str, names: Sequence[str], port: int) -> Door:
    """Return the door of a TCP listener that answers to these names (IPv6 literals in brackets), its address first."""
    kind = "loopback" if scheme == "http" else "outside"
    hosts = frozenset(f"{name.lower()}:{port}" for name in names)
    origin = f"{scheme}://{names[0].lower()}:{port}"
    return Door(kind, hosts, frozenset(f"{scheme}://{host}" for host in hosts), origin)


class _Connection(H11Protocol):
    """One connection: uvicorn's, with a deadline for heads, our form of a 400, and what the scope says of it."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener.config, listener.state, {})
        self._listener = listener
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        super().connection_made(transport)
        listener = self._listener
        if listener.stopping or len(listener.state.connections) > MAX_CONNECTIONS + REFUSED_CONNECTIONS:
            transport.abort()  # it was accepted in the last moment; or descriptors would run out, for tasks too
            return
        sock = transport.get_extra_info("socket")
        refused = listener.refusal(sock) if listener.refusal is not None else ""
        self.app_state = {"door": listener.door, "refused": refused, "abort": transport.abort}
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        self._wait_for_head()
        super().data_received(data)
        if self._busy():
            self._forget_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)
        self._listener.closed()

    def send_400_response(self, msg: str) -> None:
        body = ApiError(400, msg.rstrip(".")).body()
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        headers += [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        try:
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # the answer to an earlier request had begun
        self.transport.close()

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        if self._deadline is None and not self._busy():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Listener:
    """One door with its sockets. `refusal` says of a unix peer why it may not come in, '' where it may."""

    def __init__(
        self,
        app: ASGIApp,
        door: Door,
        sockets: Sequence[socket.socket],
        *,
        refusal: Callable[[socket.socket], str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        _quiet()
        self.door = door
        self.refusal = refusal
        self.state = ServerState()
        self.config = Config(
            app,
            http=H11Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            h11_max_incomplete_event_size=MAX_HEAD,
        )
        self.config.load()
        self._sockets = sockets
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._empty = asyncio.Event()
        self.stopping = False

    def closed(self) -> None:
        """Hear that a connection has gone."""
        if not self.state.connections:
            self._empty.set()

    async def start(self) -> None:
        """Accept connections from now on."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            options: dict[str, Any] = {"ssl": self._tls, "backlog": BACKLOG}
            if self._tls is not None:
                options["ssl_handshake_timeout"] = HEAD_SECONDS
            server = await loop.create_server(lambda: _Connection(self), sock=sock, **options)
            self._servers.append(server)

    async def stop(self) -> None:
        """Accept nothing more, let answers on their way out go for `STOP_SECONDS`, then close what is left."""
        self.stopping = True
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            if sock.fileno() >= 0:
                loop.remove_reader(sock)
        for _ in range(LAST_TURNS):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        self._empty.clear()
        for connection in list(self.state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                if self.state.connections:
                    await self._empty.wait()
        except TimeoutError:
            for task in list(self.state.tasks):
                task.cancel()
            for connection in list(self.state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)


def bind_tcp(address: str, port: int) -> socket.socket:
    """Return a listening socket on an address (a literal without brackets).

    Raises:
        OSError: when it cannot be bound.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def _quiet() -> None:
    """Keep uvicorn's remarks about bad requests off the terminal: whoever sent them has been answered."""
    log = logging.getLogger("uvicorn")
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.NullHandler())
