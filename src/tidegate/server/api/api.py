"""The API of a running server, put together: its parts, its operations, its doors.

`Api` is given bound sockets and serves them until `stop`. What it does not do: bind loopback or the unix socket, which
is for the server's place in the state folder (`open_api`).
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from tidegate.gate.marks import Marks
from tidegate.server.api.app import make_app
from tidegate.server.api.auth import Auth
from tidegate.server.api.codes import Codes
from tidegate.server.api.context import Context
from tidegate.server.api.general import General
from tidegate.server.api.listener import UNIX_DOOR, Listener, tcp_door
from tidegate.server.api.log import LogOperations
from tidegate.server.api.metrics import MetricsOperations
from tidegate.server.api.outside import certificate
from tidegate.server.api.questions import QuestionOperations
from tidegate.server.api.secrets import SecretOperations
from tidegate.server.api.sinks import SinkOperations
from tidegate.server.api.sse import Streams
from tidegate.server.api.static import load
from tidegate.server.api.tasks import TaskOperations
from tidegate.server.api.tokens import TokenOperations
from tidegate.server.api.tools import ToolOperations
from tidegate.server.peers import refusal
from tidegate.server.place import API_SOCKET

if TYPE_CHECKING:
    import socket

    from tidegate.server.api.operation import Operation, Operations
    from tidegate.server.api.outside import Outside
    from tidegate.server.serve import Server

_PARTS: tuple[type[Operations], ...] = (
    TaskOperations,
    QuestionOperations,
    LogOperations,
    TokenOperations,
    SecretOperations,
    ToolOperations,
    SinkOperations,
    MetricsOperations,
)
_SECRET_BYTES = 32  # 256 bits
PORTAL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "portal")


class Api:
    """See the head of the file. `tcp` is on loopback; None is a server that only this user's programs reach.

    Raises:
        StartError: where the certificate for `outside` cannot be made.
    """

    def __init__(
        self, server: Server, *, unix: socket.socket, tcp: socket.socket | None = None, outside: Outside | None = None
    ) -> None:
        self._server = server
        self.port = int(tcp.getsockname()[1]) if tcp is not None else 0
        self.url = f"http://127.0.0.1:{self.port}" if tcp is not None else ""
        self.phone_url = f"https://{outside.name}:{outside.port}" if outside is not None else ""
        now = dt.datetime.fromtimestamp(server.wall(), dt.UTC)
        shown = certificate(server.state, outside.address, now) if outside is not None else None
        self.fingerprint = shown.fingerprint if shown is not None else ""

        def secret() -> str:
            return secrets.token_urlsafe(_SECRET_BYTES)

        auth = Auth(server.store, wall=server.wall, clock=server.clock, secret=secret)
        self._streams = Streams(server.bus, auth.alive)
        context = Context(
            server=server,
            auth=auth,
            codes=Codes(clock=server.clock, secret=secret),
            streams=self._streams,
            portal_url=self.url,
            phone_url=self.phone_url,
            fingerprint=self.fingerprint,
        )
        app = make_app(operations_of(context), load(PORTAL), auth)
        self._marks = Marks()
        self._ports = [port for port in (self.port, outside.port if outside is not None else 0) if port]
        self._listeners = [Listener(app, UNIX_DOOR, [unix], refusal=refusal)]
        if tcp is not None:
            self._listeners.append(Listener(app, tcp_door("http", ("127.0.0.1", "localhost"), self.port), [tcp]))
        if outside is not None and shown is not None:
            door = tcp_door("https", (outside.name,), outside.port)
            self._listeners.append(Listener(app, door, [outside.socket], tls=shown.context))

    async def start(self) -> None:
        """Keep tasks away from the ports (ADR-1), those of other servers and of none too, and answer requests."""
        for port in self._ports:
            with suppress(OSError):  # somebody else has marked it: no task reaches it either
                self._marks.hold(port)
        self._server.protect(self._ports)
        for listener in self._listeners:
            await listener.start()

    async def stop(self) -> None:
        """End all streams and answer nothing more; done in less than a second."""
        self._streams.stop()
        for listener in self._listeners:
            await listener.stop()
        self._marks.close()


async def open_api(server: Server, *, port: int | None, outside: Outside | None = None) -> Api:
    """Bind the doors of a server that has started, and answer.

    `port` is loopback's: 0 is the one that the last server had, or any; None is no port at all.

    Raises:
        StartError: when a socket cannot be made, or a port that was asked for is taken.
    """
    tcp = None if port is None else server.place.listen_tcp(port)
    api = Api(server, unix=server.place.listen(API_SOCKET), tcp=tcp, outside=outside)
    await api.start()
    return api


def operations_of(context: Context) -> list[Operation]:
    """Return the table of all operations."""
    general = General(context)
    parts: list[Operations] = [general, *(part(context) for part in _PARTS)]
    operations = [operation for part in parts for operation in part.operations()]
    general.publish(operations)
    return operations
