"""The application: a request in, checks in their order, an operation, an answer out.

The order: where it was addressed and whence it comes (guard), which path and method, who asks (auth), whether that
role may, query and body, and only then the operation. Whoever has no token learns nothing but that one is needed.
Every answer has the headers of guard.py; every error has the form of errors.py; a bug is told to the server's standard
error and answered 500. A client that stops reading is cut after `SEND_SECONDS`.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router

from tidegate.model.errors import TidegateError, told_of_bug
from tidegate.server.api import operation as roles
from tidegate.server.api.auth import Caller, Role
from tidegate.server.api.errors import ApiError, from_tidegate
from tidegate.server.api.guard import HEADERS, NO_STORE, SAFE_METHODS, check_addressed, check_framing, check_source
from tidegate.server.api.operation import Call, Operation, respond
from tidegate.server.api.reading import decode, parse_query, read_body
from tidegate.server.api.requests import Nothing
from tidegate.server.background import in_thread, start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tidegate.server.api.auth import Auth
    from tidegate.server.api.listener import Door
    from tidegate.server.api.static import StaticFile

SEND_SECONDS: Final = 30.0
NOBODY: Final = Caller(Role.VIEWER, "nobody")
BY_SOCKET: Final = "the command line"


def make_app(operations: Sequence[Operation], files: Mapping[str, StaticFile], auth: Auth) -> ASGIApp:
    """Return the application: the operations, and the portal's files for every other path."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    routes = [Route(path, _Path(methods, auth)) for path, methods in by_path.items()]
    return _Outside(Router(routes, redirect_slashes=False, default=_Files(files)))


class _Outside:
    """What is around every request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _dress(message, scope["path"])
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await send(message)
            except TimeoutError:
                scope["state"]["abort"]()
                raise ClientDisconnect from None

        try:
            request = Request(scope)
            door: Door = scope["state"]["door"]
            check_framing(request.headers)
            check_addressed(request.headers, door.hosts)
            check_source(scope["method"], scope["path"], request.headers, door.origins)
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            return
        except ApiError as error:
            failure = error
        except TidegateError as error:
            failure = from_tidegate(error)
        except Exception as error:  # noqa: BLE001  the one place where a bug becomes an answer
            # Where it was, and not what it says: that may quote a token of a request, or what a process was given.
            sys.stderr.writelines((*traceback.format_tb(error.__traceback__), f"{told_of_bug(error)}\n"))
            failure = ApiError(500, "the server made a mistake; its own output says which")
        else:
            return
        if started:
            scope["state"]["abort"]()
            return
        answer = Response(failure.body(), failure.status, failure.headers, media_type="application/json")
        try:
            await answer(scope, receive, sending)
        except ClientDisconnect:
            return


def _dress(message: Message, path: str) -> None:
    headers = MutableHeaders(raw=message["headers"])
    for name, value in HEADERS.items():
        headers[name] = value
    headers["Date"] = formatdate(usegmt=True)
    if path.startswith("/api") or "cache-control" not in headers:
        headers["Cache-Control"] = NO_STORE
    message["headers"] = headers.raw


class _Path:
    """All operations of one path."""

    def __init__(self, methods: Mapping[str, Operation], auth: Auth) -> None:
        self._methods = methods
        self._auth = auth
        allowed = [*methods, "HEAD"] if "GET" in methods else [*methods]
        self._allow = ", ".join(sorted(allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        method = "GET" if request.method == "HEAD" else request.method
        operation = self._methods.get(method)
        if operation is None:
            raise ApiError(405, f"{request.method[:20]!r} is not for this path", headers={"Allow": self._allow})
        caller = self._caller(request, operation)
        query = parse_query(scope["query_string"], operation.query)
        call = Call(request, caller, request.path_params, query, await _body(request, operation))
        answer = respond(await operation.do(call), operation.status)
        await answer(scope, receive, send)

    def _caller(self, request: Request, operation: Operation) -> Caller:
        state = request.scope["state"]
        door: Door = state["door"]
        if state["refused"]:
            raise ApiError(403, state["refused"], code="not-this-user")
        if door.is_unix:
            return Caller(Role.OWNER, BY_SOCKET)
        if operation.role == roles.ANYONE:
            return NOBODY
        caller = self._auth.check(request.headers)
        if self._auth.used(caller.token):
            start(in_thread(self._auth.keep_use, caller.token), "keep the use of a token")
        if operation.only_unix:
            raise ApiError(403, "this is for the unix socket only", fix="run tidegate on the server's machine")
        if operation.role == roles.OWNER and not caller.is_owner:
            raise ApiError(403, "a viewer may look and not change anything", fix="use an owner's token")
        return caller


async def _body(request: Request, operation: Operation) -> object:
    if operation.body is None:
        if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
            raise ApiError(400, "this takes no body", headers={"Connection": "close"})
        return None
    headers = request.headers
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if operation.body is Nothing and empty and "content-type" not in headers:
        return Nothing()
    return decode(await read_body(headers, request.stream(), operation.limit), operation.body)


class _Files:
    """The portal's files; whatever else is asked for is not there."""

    def __init__(self, files: Mapping[str, StaticFile]) -> None:
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._files.get(scope["path"])
        if found is None:
            raise ApiError(404, f"there is no {scope['path'][:100]!r} here", fix="see /api/openapi.json")
        if scope["method"] not in SAFE_METHODS:
            raise ApiError(405, f"{scope['method'][:20]!r} is not for this path", headers={"Allow": "GET, HEAD"})
        await found.respond(Request(scope))(scope, receive, send)
