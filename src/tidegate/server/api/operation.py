"""One operation of the API as a value: the table of them makes the routes and the OpenAPI document alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from tidegate.server.api.auth import Caller
from tidegate.server.api.errors import ApiError
from tidegate.server.api.reading import SMALL_BODY
from tidegate.server.api.requests import NoQuery
from tidegate.server.api.writing import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from tidegate.server.api.context import Context

OWNER: Final = "owner"
VIEWER: Final = "viewer"
ANYONE: Final = "anyone"
"""Who may: an owner, a viewer too, or whoever reaches the listener (the operation checks by itself)."""


class Call(msgspec.Struct, frozen=True):
    """One request, read and checked."""

    request: Request
    caller: Caller
    path: Mapping[str, str]
    query: Any
    body: Any

    def number(self, name: str) -> int:
        """Return a number of the path.

        Raises:
            ApiError: 404 where it is none.
        """
        text = self.path[name]
        if not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise ApiError(404, f"there is no number {text[:40]!r} here")
        return int(text)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What is done for one method of one path. `errors` are the statuses beside those every operation may answer."""

    method: str
    path: str
    summary: str
    do: Callable[[Call], Awaitable[msgspec.Struct | Response | Mapping[str, Any]]]
    role: str = VIEWER
    query: type[msgspec.Struct] = NoQuery
    body: type[msgspec.Struct] | None = None
    limit: int = SMALL_BODY
    answer: type[msgspec.Struct] | str
    status: int = 200
    errors: tuple[int, ...] = ()
    only_unix: bool = False


class Operations(ABC):
    """A part of the API over one server's context. The head of its file says what it is for and what it is not."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @abstractmethod
    def operations(self) -> list[Operation]:
        """Return them, in the order of the document."""


def respond(value: msgspec.Struct | Response | Mapping[str, Any], status: int) -> Response:
    """Return what an operation gave as an answer."""
    if isinstance(value, Response):
        return value
    return Response(to_json(value), status, media_type="application/json")
