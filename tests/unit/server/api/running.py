"""The application behind real doors, on a loop in a thread: what the tests of server/api talk to over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import msgspec

from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.server.api.api import Api, open_api
from tidegate.server.api.app import make_app
from tidegate.server.api.auth import Auth
from tidegate.server.api.listener import UNIX_DOOR, Listener, bind_tcp, tcp_door
from tidegate.server.api.operation import ANYONE, OWNER, Call, Operation
from tidegate.server.api.outside import bind_outside
from tidegate.server.peers import refusal
from tidegate.server.reach import reach_out
from tidegate.server.serve import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tidegate.server.api.static import StaticFile
    from tidegate.state.store import Token


class Tokens:
    """Tokens in memory: what Auth needs of a store."""

    def __init__(self) -> None:
        self.kept: list[Token] = []
        self.touched: list[tuple[int, float]] = []

    def tokens(self) -> tuple[Token, ...]:
        return tuple(self.kept)

    def add_token(self, token: Token) -> Token:
        if any(kept.name == token.name and kept.revoked is None for kept in self.kept):
            raise ValueError(token.name)
        self.kept.append(token.replace(id=len(self.kept) + 1))
        return self.kept[-1]

    def touch_token(self, id: int, at: float) -> None:  # noqa: A002
        self.touched.append((id, at))

    def revoke_token(self, id: int, at: float) -> bool:  # noqa: A002
        self.kept[id - 1] = self.kept[id - 1].replace(revoked=at)
        return True


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A body of a test."""

    colour: str
    size: int = 1


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A query of a test."""

    limit: int = 5


class Echo(msgspec.Struct):
    """What the operations of a test say."""

    by: str
    limit: int
    colour: str


async def echo(call: Call) -> Echo:
    """Say what came."""
    limit = call.query.limit if isinstance(call.query, Query) else 0
    return Echo(call.caller.by, limit, call.body.colour if isinstance(call.body, Body) else "")


async def broken(_call: Call) -> Echo:
    """Be a bug."""
    raise ZeroDivisionError("a secret of the server")


OPERATIONS = [
    Operation(method="GET", path="/api/things", summary="Look", do=echo, query=Query, answer=Echo),
    Operation(
        method="POST", path="/api/things", summary="Make", do=echo, body=Body, answer=Echo, role=OWNER, status=201
    ),
    Operation(method="GET", path="/api/things/{id}", summary="One", do=echo, answer=Echo),
    Operation(method="DELETE", path="/api/things/{id}", summary="No more", do=echo, answer=Echo, role=OWNER),
    Operation(method="GET", path="/api/open", summary="Anyone", do=echo, answer=Echo, role=ANYONE),
    Operation(method="GET", path="/api/broken", summary="A bug", do=broken, answer=Echo),
    Operation(method="GET", path="/api/here", summary="Here", do=echo, answer=Echo, role=OWNER, only_unix=True),
]


class Answer(msgspec.Struct):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A context manager: something is served within it, on a loop in a thread. Asks it over its real sockets."""

    def __init__(self) -> None:
        self.path = ""
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    async def _start(self) -> None:
        raise NotImplementedError

    async def _stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        self.on_loop(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.on_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()

    def on_loop(self, coroutine: Any) -> Any:
        """Run a coroutine on the server's loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection over loopback."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(
        self, method: str, path: str, body: bytes | None = None, *, token: str = "", unix: bool = False, **headers: str
    ) -> Answer:
        """Make one request; `headers` with `_` for `-`."""
        connection = http.client.HTTPConnection("localhost", timeout=60) if unix else self.connection()
        if unix:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(20)
            connection.sock.connect(self.path)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Send bytes over loopback and return all that comes until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as sock:
            found = b""
            # A server that refuses early closes while there is still something on its way.
            with suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(data)
            with suppress(ConnectionResetError):
                while chunk := sock.recv(65536):
                    found += chunk
            return found


class Running(Served):
    """A context manager: the application is served within it."""

    def __init__(
        self,
        folder: Path,
        operations: Sequence[Operation] = (),
        files: Mapping[str, StaticFile] | None = None,
        *,
        prepare: Callable[[Auth], Sequence[Operation]] | None = None,
    ) -> None:
        super().__init__()
        self.store = Tokens()
        secrets = (f"secret-{number}-" + os.urandom(16).hex() for number in range(1000))
        self.auth = Auth(self.store, wall=lambda: 1000.0, clock=lambda: 0.0, secret=lambda: next(secrets))
        self.path = str(folder / "api.sock")
        self._operations = operations
        self._prepare = prepare
        self._files = files or {}
        self._listeners: list[Listener] = []

    async def _stop(self) -> None:
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.stop()

    async def _start(self) -> None:
        operations = list(self._operations) + (list(self._prepare(self.auth)) if self._prepare else [])
        app = make_app(operations or OPERATIONS, self._files, self.auth)
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(self.path)
        unix.listen()
        unix.setblocking(False)
        tcp = bind_tcp("127.0.0.1", 0)
        self.port = tcp.getsockname()[1]
        self._listeners = [
            Listener(app, UNIX_DOOR, [unix], refusal=refusal),
            Listener(app, tcp_door("http", ("127.0.0.1", "localhost"), self.port), [tcp]),
        ]
        for listener in self._listeners:
            await listener.start()

    def token(self, role: Any) -> str:
        """Return the secret of a new token."""
        return self.auth.create(f"{role.value} {len(self.store.kept)}", role, None)[1]


class Whole(Served):
    """A whole server: gate thread, questions, store, action log and API, with a state folder of its own."""

    server: Server
    api: Api

    def __init__(self, folder: Path, *, listen: str = "") -> None:
        super().__init__()
        self.state = str(folder / "state" / "tidegate")
        self.folder = str(folder / "project")
        os.makedirs(self.folder, exist_ok=True)
        self._environ = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        self._listen = listen
        self.warnings: list[str] = []

    async def _start(self) -> None:
        outside = bind_outside(self._listen)
        self.server = Server(self.state, environ=self._environ, warn=self.warnings.append)
        await self.server.start()
        self.api = await open_api(self.server, port=0, outside=outside)
        reach_out(self.server, {}, notify=True, target=None, url=self.api.url, warn=self.warnings.append)
        self.path = os.path.join(self.state, "run", "api.sock")
        self.port = self.api.port

    async def _stop(self) -> None:
        await self.api.stop()
        await self.server.stop()

    def get(self, path: str) -> Any:
        """Return the answer to a GET over the unix socket."""
        answer = self.ask("GET", path, unix=True)
        assert answer.status == 200, answer
        return answer.json

    def send(self, method: str, path: str, body: object = None) -> Answer:
        """Send JSON over the unix socket."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content_Type": "application/json"} if data is not None else {}
        return self.ask(method, path, data, unix=True, **headers)

    def task(self, **more: Any) -> dict[str, Any]:
        """Create a task."""
        answer = self.send("POST", "/api/tasks", {"folder": self.folder, **more})
        assert answer.status == 201, answer
        found: dict[str, Any] = answer.json
        return found

    def open_question(self, task: str, host: str = "ask.test", port: int = 443) -> list[Decision]:
        """Let a connection of a task ask; the list gets the decision that it is released with."""
        released: list[Decision] = []
        decision = Decision(
            Verdict.ASK,
            Destination(canonical_host(host), port),
            Phase.RUNTIME,
            Reason.NO_APPROVER,
            None,
            "no-rule",
            "test",
        )
        self.server.presence.seen()
        asked = self.on_loop(self.server.gate.call(lambda: self.server.desk.ask(task, decision, released.append)))
        assert asked is not None
        return released
