"""One connection of a task to its tools: HTTP/1.1 on a socket that the gate gave (SRV-6).

    GET  /        the tools: {"tools": [{name, description, inputSchema}]}
    GET  /NAME    one of them
    POST /NAME    run it with the JSON of the body; 200 and what it printed, else an error as JSON
    POST /mcp     the Model Context Protocol (mcp.py)

Rules of the file:

* Heads and bodies are read with the gate's own strict readers (wire/): what two could read differently is 400 and the
  end of the connection. Everything is bounded in bytes and time.
* Host is the gate's own name, whatever way led here; an Origin is refused unless it is that name, since no page of a
  browser has anything to call here (MCP, basic/transports, "Security Warning").
* An answer is never cached, and says what it is.

For a process with one thread, which may wait.
"""

from __future__ import annotations

import json
import select
import time
from socket import SHUT_WR

from tidegate.inspect.strict_json import UnclearError, read
from tidegate.model.destination import PortError, split_authority
from tidegate.model.host import HostError, canonical_host
from tidegate.model.limits import DEFAULT_LIMITS
from tidegate.model.reason import Reason
from tidegate.model.tools import NAME, PLACE, PORT
from tidegate.tools import mcp
from tidegate.tools.calls import MOST_PARTS, call
from tidegate.wire.authority import absolute_target
from tidegate.wire.body import make_body
from tidegate.wire.errors import WireError
from tidegate.wire.framing import Kind, request_framing
from tidegate.wire.headers import keeps_alive
from tidegate.wire.http1 import CONTINUE, head_end, parse_request_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket
    from typing import Any

    from tidegate.tools.calls import Called, Run
    from tidegate.tools.declaration import Tool
    from tidegate.wire.framing import Framing
    from tidegate.wire.http1 import RequestHead

HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
BETWEEN = 120.0  # seconds a client may be silent between two requests, as at the gate
SEND_SECONDS = 60.0
MCP_PATH = "mcp"
_ENVELOPE = 1 << 16  # bytes of a message around the input of a tool
_PIECE = 1 << 16
_JSON = "application/json"
_LAST_SECONDS = 5.0  # for a client to hear an answer that came before all of its body, and to close
_LAST_BYTES = 8 << 20
_PHRASES = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    406: "Not Acceptable", 408: "Request Timeout", 413: "Content Too Large", 415: "Unsupported Media Type",
    421: "Misdirected Request", 422: "Unprocessable Content", 429: "Too Many Requests", 414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported",
}  # fmt: skip
_STATUS = {
    "no-json": 400, "bad-input": 422, "busy": 503, "rate": 429, "failed": 502, "timeout": 504, "too-much-output": 502,
    "not-started": 500, "cancelled": 503, "lost": 502,
}  # fmt: skip


class EndError(Exception):
    """The connection is over, without another word."""


class Answer(Exception):  # noqa: N818 - it ends the reading of a request, and is no fault of ours
    """What a request is answered with before it is read to its end."""

    def __init__(self, status: int, message: str, allow: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.allow = allow


class Conversation:
    """All requests of one connection. `life` is a descriptor that ends when the task does."""

    def __init__(self, sock: socket, tools: Mapping[str, Tool], run: Run, life: int) -> None:
        self._sock = sock
        self._tools = tools
        self._run = run
        self._life = life
        self._buffer = b""

    def serve(self) -> None:
        """Answer until the client has said all, or says what cannot be read."""
        self._sock.setblocking(False)
        try:
            while self._one():
                pass
            self._linger()
        except (EndError, OSError, WireError):
            return

    def _one(self) -> bool:
        try:
            head = self._head()
            framing = request_framing(head)
            keep = keeps_alive(head)
        except WireError as error:
            status = error.reason.status or 400
            self._say(status, _error(error.reason.word, f"{error.reason.sentence}: {error.detail}"), close=True)
            return False
        try:
            path = _path(head)
            _check_origin(head)
            tool = self._route(head, path)
            body = self._body(head, framing, tool)
        except Answer as answer:
            # What is left of the body is not read as a request: the connection ends.
            last = not framing.empty or answer.status == 421
            refused, bare = _error("refused", str(answer)), head.method == "HEAD"
            self._say(answer.status, refused, close=last or not keep, bare=bare, allow=answer.allow)
            return keep and not last
        except WireError as error:
            self._say(400, _error(error.reason.word, f"{error.reason.sentence}: {error.detail}"), close=True)
            return False
        self._answer(head, path, tool, body, keep=keep)
        return keep

    # Reading.

    def _head(self) -> RequestHead:
        seen, until = 0, time.monotonic() + BETWEEN
        while True:
            if self._buffer:
                end = head_end(self._buffer, seen, DEFAULT_LIMITS)
                if end >= 0:
                    raw, self._buffer = self._buffer[:end], self._buffer[end:]
                    return parse_request_head(raw, DEFAULT_LIMITS)
                if not seen:
                    until = time.monotonic() + HEAD_SECONDS
                seen = len(self._buffer)
            self._buffer += self._receive(until)

    def _receive(self, until: float) -> bytes:
        """Return bytes that came.

        Raises:
            EndError: where none come any more.
            WireError: where they take too long.
        """
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.register(self._life, select.POLLRDHUP)
        while True:
            left = until - time.monotonic()
            ready = dict(poll.poll(max(0.0, left) * 1000 + 1)) if left > 0 else {}
            if self._life in ready:
                raise EndError
            if not ready and left <= 0:
                if not self._buffer:
                    raise EndError
                raise WireError(Reason.HEADER_TIMEOUT, "")
            if ready:
                data = self._sock.recv(_PIECE)
                if not data:
                    raise EndError
                return data

    def _route(self, head: RequestHead, path: str) -> Tool | None:
        """Return the tool that a request is about, None where it is about none in particular."""
        if path == MCP_PATH:
            if head.method != "POST":  # no stream is offered, and there is no session to end
                raise Answer(405, "this server offers no stream and keeps no session; POST a message", "POST")
            _check_mcp(head)
            return None
        if not path:
            if head.method not in {"GET", "HEAD"}:
                raise Answer(405, "GET the list here; POST to a tool's own path", "GET, HEAD")
            return None
        tool = self._tools.get(path)
        if tool is None:
            raise Answer(404, "there is no such tool here; GET / lists those that there are")
        if head.method not in {"GET", "HEAD", "POST"}:
            raise Answer(405, "GET describes this tool, POST runs it", "GET, HEAD, POST")
        return tool

    def _body(self, head: RequestHead, framing: Framing, tool: Tool | None) -> bytes:
        if framing.empty and head.method != "POST":
            return b""
        if head.method != "POST":
            raise Answer(400, f"a {head.method} request has no body here")
        kind = (head.get(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind != _JSON.encode():
            raise Answer(415, f"the body is JSON: send Content-Type: {_JSON}")
        if head.get(b"content-encoding") not in {None, b"identity"}:
            raise Answer(415, "the body is not decoded here: send it plain")
        most = (
            tool.max_input_bytes
            if tool is not None
            else _ENVELOPE + max((one.max_input_bytes for one in self._tools.values()), default=0)
        )
        if framing.kind is Kind.LENGTH and framing.length > most:
            raise Answer(413, f"the body may have {most} bytes")
        if head.version == (1, 1) and b"100-continue" in (one.lower() for one in head.values(b"expect")):
            self._send(CONTINUE)
        reader, parts, size = make_body(framing, decode=True), [], 0
        until = time.monotonic() + BODY_SECONDS
        while not reader.done:
            if not self._buffer:
                self._buffer = self._receive(until)
            used, spans = reader.feed(self._buffer)
            parts += [bytes(span) for span in spans]
            self._buffer = self._buffer[used:]
            size = sum(map(len, parts))
            if size > most:
                raise Answer(413, f"the body may have {most} bytes")
        return b"".join(parts)

    def _linger(self) -> None:
        """Throw away what the client still sends, so that no reset eats the answer (B37; refusing.py)."""
        self._sock.shutdown(SHUT_WR)
        self._buffer = b""
        until, left = time.monotonic() + _LAST_SECONDS, _LAST_BYTES
        while left > 0:
            left -= len(self._receive(until))

    # Answering.

    def _answer(self, head: RequestHead, path: str, tool: Tool | None, body: bytes, *, keep: bool) -> None:
        bare = head.method == "HEAD"
        if path == MCP_PATH:
            try:
                message = read(body, MOST_PARTS)
            except UnclearError as error:
                found = mcp.error_body(mcp.PARSE_ERROR, f"no JSON that every reader reads alike: {error}")
                self._say(400, found, close=not keep)
                return
            status, answer = mcp.answer(message, self._tools, self._run)
            self._say(status, answer, close=not keep)
        elif tool is None:
            self._say(200, {"tools": [mcp.listed(one) for one in self._tools.values()]}, close=not keep, bare=bare)
        elif head.method != "POST":
            self._say(200, mcp.listed(tool), close=not keep, bare=bare)
        else:
            self._say_called(call(tool, body, self._run), close=not keep)

    def _say_called(self, called: Called, *, close: bool) -> None:
        if called.ok:
            self._write(200, called.output, _kind_of(called.output), close=close)
            return
        found: dict[str, Any] = _error(called.word, called.message)
        if called.word == "failed":
            found["error"] |= {"status": called.status, "stderr": called.said}
        self._say(_STATUS[called.word], found, close=close)

    def _say(self, status: int, value: Any, *, close: bool, bare: bool = False, allow: str = "") -> None:
        body = b"" if value is None else json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self._write(status, body, _JSON if body else "", close=close, bare=bare, allow=allow)

    def _write(self, status: int, body: bytes, kind: str, *, close: bool, bare: bool = False, allow: str = "") -> None:
        lines = [f"HTTP/1.1 {status} {_PHRASES[status]}", f"Content-Length: {len(body)}", "Cache-Control: no-store"]
        if kind:
            lines += [f"Content-Type: {kind}", "X-Content-Type-Options: nosniff"]
        if allow:
            lines.append(f"Allow: {allow}")
        if status in {429, 503}:
            lines.append("Retry-After: 1")
        if close:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
        self._send(head if bare else head + body)

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        until = time.monotonic() + SEND_SECONDS
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        poll.register(self._life, select.POLLRDHUP)
        while view:
            try:
                view = view[self._sock.send(view) :]
            except BlockingIOError:
                ready = dict(poll.poll(max(0.0, until - time.monotonic()) * 1000))
                if not ready or self._life in ready:
                    raise EndError from None


def _error(word: str, message: str) -> dict[str, Any]:
    return {"error": {"code": word, "message": message}}


def _kind_of(output: bytes) -> str:
    try:
        json.loads(output)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return _JSON


def _path(head: RequestHead) -> str:
    """Return the path of a request without its first slash.

    Raises:
        Answer, WireError: where it names another host, or is no path.
    """
    target = head.target
    if target[:1] != b"/":
        destination, target = absolute_target(head)  # as a client may write to any server (RFC 9112 section 3.2.2)
        if destination != PLACE:
            raise Answer(421, f"this is {NAME}, and nothing else")
        return target[1:].decode("ascii")
    hosts = head.values(b"host")
    if len(hosts) != 1:
        raise WireError(Reason.BAD_REQUEST, "a request needs one Host header")
    try:
        name, port = split_authority(hosts[0])
        named = canonical_host(name).text
    except (HostError, PortError):
        raise WireError(Reason.BAD_HOST, "in the Host header") from None
    if named != NAME or port not in {None, str(PORT)}:
        raise Answer(421, f"this is {NAME}, and nothing else")
    return target[1:].decode("ascii")


def _check_origin(head: RequestHead) -> None:
    for origin in head.values(b"origin"):
        if origin.lower() not in {f"http://{NAME}".encode(), f"http://{NAME}:{PORT}".encode()}:
            raise Answer(403, "no page has anything to call here (Origin)")


def _check_mcp(head: RequestHead) -> None:
    version = head.get(b"mcp-protocol-version")
    wrong = mcp.version_fault(version.decode("latin-1") if version is not None else None)
    if wrong:
        raise Answer(400, wrong)
    accept = b",".join(head.values(b"accept")).lower()
    if accept and not any(kind in accept for kind in (b"application/json", b"application/*", b"*/*")):
        raise Answer(406, f"answers are {_JSON}")
