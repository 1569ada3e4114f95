"""The command line's side of the API: HTTP over the server's unix socket.

Rules of the file: the socket is in the state folder, so its owner is this user or there is none; no server is one
clear line and exit 78 (HLD-16). What the server refuses is the house's own error again. Answers are bounded. Only the
standard library is used, so that commands start without the server's packages.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote, urlencode

from tidegate.model.errors import StartError, TidegateError, UsageError
from tidegate.runtime.state import state_folder, unix_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOCKET_NAME: Final = "api.sock"
SECONDS: Final = 60.0
STREAM_SECONDS: Final = 30.0  # three heartbeats of the server
MAX_ANSWER: Final = 64 * 1024 * 1024
MAX_EVENT: Final = 1024 * 1024


class ApiClient:
    """Asks the server of this user, one request a connection."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or os.path.join(state_folder(os.environ), "run", SOCKET_NAME)

    def get(self, path: str, **query: str | int | bool | None) -> Any:
        """Return what is at `path`; parameters that are None are left out.

        Raises:
            StartError: when no server runs.
            TidegateError: what the server says where it refuses.
        """
        given = {name: _text(value) for name, value in query.items() if value is not None}
        return self.ask("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a body to `path`; raises as `get`."""
        return self.ask("POST", path, body)

    def delete(self, path: str) -> Any:
        """Remove what is at `path`; raises as `get`."""
        return self.ask("DELETE", path)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Make one request and return its answer; raises as `get`."""
        with _Connection(self.path, SECONDS) as connection:
            try:
                headers = {} if body is None else {"Content-Type": "application/json"}
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read(MAX_ANSWER + 1)
            except (OSError, http.client.HTTPException) as error:
                raise TidegateError(f"the server ended while it was asked: {_why(error)}") from None
        if len(text) > MAX_ANSWER:
            raise TidegateError(f"the server's answer is larger than {MAX_ANSWER} bytes", fix="ask for less")
        return _value(answer.status, text)

    def events(self, last_id: str | None = None) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield id, kind and data of each event as it comes, until the server ends or is silent for too long.

        Raises:
            StartError: when no server runs.
            TidegateError: what the server says where it refuses.
        """
        with _Connection(self.path, STREAM_SECONDS) as connection:
            try:
                headers = {} if last_id is None else {"Last-Event-ID": last_id}
                connection.request("GET", "/api/events", None, headers)
                answer = connection.getresponse()
                if answer.status != http.client.OK:
                    _value(answer.status, answer.read(MAX_ANSWER))
                yield from _events(answer)
            except (OSError, http.client.HTTPException):
                return


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.settimeout(self.timeout)
        try:
            with unix_address(self._path) as address:
                sock.connect(address)
        except OSError as error:
            sock.close()
            if isinstance(error, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
                raise StartError("no server runs here", fix="tidegate serve starts one", code="no-server") from None
            raise StartError(f"the server's socket {self._path!r} cannot be used: {_why(error)}") from None
        self.sock = sock

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def segment(text: str) -> str:
    """Return text as one segment of a path."""
    return quote(text, safe="")


def _text(value: str | int | bool) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _why(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _value(status: int, text: bytes) -> Any:
    try:
        value = json.loads(text)
        if status < http.client.BAD_REQUEST:
            return value
        failure = value["error"]
        what, fix, code = (str(failure[key]) for key in ("what", "fix", "code"))
    except (ValueError, KeyError, TypeError):
        raise TidegateError(f"the server answered {status} with something that is not its API's") from None
    kind = UsageError if status == http.client.BAD_REQUEST else TidegateError  # what was given is wrong: exit 2
    raise kind(what, fix=fix, code=code)


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, dict[str, Any]]]:
    fields: dict[str, str] = {}
    while raw := answer.readline(MAX_EVENT):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"])
        fields = {}
