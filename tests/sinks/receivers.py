"""Receivers of sinks, as real servers on loopback: they keep what they took, and fail as they are told to.

A fault is what happens to one message: `429`, `500` and the like are answered; `slow` takes it and drips its answer, a
byte at a time, for ever; `reset` takes the message and resets the
connection without an answer; `lost` resets it and takes nothing. `poison` are numbers of records that are refused.
"""

from __future__ import annotations

import http.server
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tidegate.journal.chain import line_hash

if TYPE_CHECKING:
    from collections.abc import Callable

_RST = struct.pack("ii", 1, 0)
_SEQ = re.compile(rb'\[tidegate@32473 seq="(\d+)" id="([^"]+)"')


def until(condition: Callable[[], Any], what: Callable[[], object] = lambda: "it did not happen") -> Any:
    """Wait until something is so, and return it."""
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, what()
        time.sleep(0.01)
    return found


class Receiver:
    """What all of them have: `ids` are those of the records that were taken, in their order, with repetitions."""

    kind = ""
    key = b"0123456789abcdef0123456789abcdef"

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.faults: deque[str] = deque()
        self.poison: set[int] = set()
        self.port = 0
        self.lock = threading.Lock()
        self._kept: socket.socket | None = None

    def keep(self) -> None:
        """Let nobody else have the TCP port while this one is down: bound, and not listening, it refuses."""
        if self._kept is None:
            self._kept = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._kept.bind(("127.0.0.1", self.port))
            self.port = self._kept.getsockname()[1]

    def __del__(self) -> None:
        if self._kept is not None:
            self._kept.close()

    @property
    def seqs(self) -> list[int]:
        """The numbers of the log's lines that were taken."""
        return [int(one.partition("-")[0]) for one in self.ids if one[0].isdigit()]

    @property
    def url(self) -> str:
        raise NotImplementedError

    def up(self) -> None:
        """Listen, at the same place as before."""
        raise NotImplementedError

    def down(self) -> None:
        """Listen no longer."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()


class Web(Receiver):
    """What speaks HTTP, or HTTPS with a context. `got` are all requests: method, path, headers, body."""

    scheme = "http"
    path = "/hook"

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.got: list[tuple[str, str, dict[str, str], bytes]] = []
        self.largest = 1 << 30
        self.gate = threading.Event()  # a request waits for it
        self.gate.set()
        self._tls = tls
        self._server: http.server.ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"{self.prefix}{'https' if self._tls else 'http'}://localhost:{self.port}{self.path}"

    prefix = ""

    def up(self) -> None:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.got.append((self.command, self.path, dict(self.headers), body))
                outer.gate.wait(60)
                fault = outer.faults.popleft() if outer.faults else ""
                if fault in ("reset", "lost"):
                    if fault == "reset":
                        outer.take(self.command, self.path, body)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
                    self.close_connection = True
                    return
                if fault == "slow":
                    outer.take(self.command, self.path, body)
                    self.drip()
                    return
                if fault:
                    answer, text = int(fault), b"{}"
                elif len(body) > outer.largest:
                    answer, text = 413, b""
                else:
                    answer, text = outer.take(self.command, self.path, body)
                self.send_response(answer)
                if answer == 429:
                    self.send_header("Retry-After", "1")
                if 300 <= answer < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def drip(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "100000")
                self.end_headers()
                self.close_connection = True
                with suppress(OSError):
                    while True:
                        self.wfile.write(b" ")
                        time.sleep(0.02)

            do_GET = do_POST  # noqa: N815  a name of http.server's

            def log_message(self, *_: object) -> None:
                return

        self.keep()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._server = server
        threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True).start()

    def down(self) -> None:
        if self._server is not None:
            self.gate.set()
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Take a request; return status and body of the answer."""
        raise NotImplementedError


class Hook(Web):
    """A webhook's side."""

    kind = "webhook"

    def take(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        assert (method, path) == ("POST", self.path), path

        lines = body.splitlines()
        found = [(json.loads(line), line) for line in lines]
        if any(fields["seq"] in self.poison and fields["type"] != "sink.gap" for fields, _ in found):
            return 400, b""
        for fields, line in found:
            gap = fields["type"] == "sink.gap"
            self.ids.append(
                f"gap-{fields['first']}-{fields['last']}" if gap else f"{fields['seq']}-{line_hash(line)[:16]}"
            )
        return 204, b""


class Bulk(Web):
    """An index of Elasticsearch: what is created twice is there once."""

    kind = "elasticsearch"
    prefix = "elasticsearch+"
    path = "/audit"
    key = b"aWQ6a2V5"

    def take(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        assert (method, path.partition("?")[0]) == ("POST", "/audit/_bulk"), path
        lines = [json.loads(line) for line in body.split(b"\n") if line]
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            name = action["create"]["_id"]
            assert "@timestamp" in source
            item: dict[str, Any] = {"_id": name, "status": 201}
            if source["seq"] in self.poison and source["type"] != "sink.gap":
                item = {"_id": name, "status": 400, "error": {"type": "document_parsing_exception", "reason": "no"}}
            elif name in self.ids:
                item = {"_id": name, "status": 409, "error": {"type": "version_conflict_engine_exception"}}
            else:
                self.ids.append(name)
            items.append({"create": item})
        return 200, json.dumps({"errors": any(one["create"]["status"] > 299 for one in items), "items": items}).encode()


class Otlp(Web):
    """An OpenTelemetry collector."""

    kind = "otlp"
    prefix = "otlp+"
    path = ""

    def take(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        assert (method, path) == ("POST", "/v1/logs"), path
        records = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
        found = []
        for record in records:
            values = {one["key"]: one["value"] for one in record["attributes"]}
            name = values["log.record.uid"]["stringValue"]
            if int(values["tidegate.seq"]["intValue"]) in self.poison and not name.startswith("gap"):
                return 400, b"{}"
            found.append(name)
        self.ids += found
        return 200, b"{}"


class Jira(Web):
    """An issue tracker, of the cloud's kind or one's own: comments by issue."""

    kind = "jira"
    prefix = "jira+"
    path = ""
    key = b"bot@example.test:token"
    _place: ClassVar = re.compile(r"/rest/api/[23]/issue/([A-Z0-9_-]+)/comment(\?.*)?")

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.comments: dict[str, list[Any]] = {}

    def take(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if method == "GET" and re.fullmatch("/rest/api/[23]/myself", path):
            self.ids.append("myself")
            return 200, b"{}"
        found = self._place.fullmatch(path)
        assert found, path
        issue = found[1]
        if issue.startswith("NONE-"):
            return 404, b"{}"
        if method == "GET":
            there = self.comments.get(issue, [])
            return 200, json.dumps({"comments": [{"body": one} for one in there]}).encode()
        text = json.loads(body)["body"]
        seq, mark = re.findall(r"tidegate (\d+)-([0-9a-f]{16})", json.dumps(text))[-1]
        if int(seq) in self.poison:
            return 400, b"{}"
        self.comments.setdefault(issue, []).append(text)
        self.ids.append(f"{seq}-{mark}")
        return 201, b"{}"


class Syslog(Receiver):
    """What takes syslog over a stream or as datagrams; `messages` are whole ones."""

    kind = "syslog"

    def __init__(self, way: str, tls: ssl.SSLContext | None = None, path: str = "") -> None:
        super().__init__()
        self.way = way
        self.messages: list[bytes] = []
        self.path = path
        self._tls = tls
        self._sock: socket.socket | None = None
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"syslog://{self.path}" if self.way == "unix" else f"syslog+{self.way}://localhost:{self.port}"

    def up(self) -> None:
        family = socket.AF_UNIX if self.way == "unix" else socket.AF_INET
        stream = self.way in ("tcp", "tls")
        if stream:
            self.keep()
        sock = self._sock = socket.socket(family, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
        if self.way == "unix":
            sock.bind(self.path)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", self.port))
            self.port = sock.getsockname()[1]
        if stream:
            sock.listen()
        threading.Thread(target=self._accept if stream else self._datagrams, args=(sock,), daemon=True).start()

    def down(self) -> None:
        sock, self._sock = self._sock, None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
            if self.way == "udp":
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wake:  # recv is not woken by close
                    wake.sendto(b"", ("127.0.0.1", self.port))
        if self.way == "unix":
            import os

            with suppress(FileNotFoundError):
                os.unlink(self.path)
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def _accept(self, sock: socket.socket) -> None:
        while True:
            try:
                one, _ = sock.accept()
            except OSError:
                return
            self._open.append(one)
            threading.Thread(target=self._stream, args=(one,), daemon=True).start()

    def _stream(self, raw: socket.socket) -> None:
        try:
            one = self._tls.wrap_socket(raw, server_side=True) if self._tls else raw
            self._open.append(one)
            with one, one.makefile("rb") as file:
                while True:
                    length = b""
                    while (digit := file.read(1)).isdigit():
                        length += digit
                    if digit != b" ":
                        return
                    message = file.read(int(length))
                    with self.lock:
                        if self.faults:
                            if self.faults.popleft() == "reset":
                                self._took(message)
                            socket.socket.setsockopt(one, socket.SOL_SOCKET, socket.SO_LINGER, _RST)
                            return
                        self._took(message)
        except (OSError, ValueError):
            return

    def _datagrams(self, sock: socket.socket) -> None:
        while True:
            try:
                message = sock.recv(1 << 16)
            except OSError:
                return
            if not message:
                return
            with self.lock:
                self._took(message)

    def _took(self, message: bytes) -> None:
        self.messages.append(message)
        found = _SEQ.search(message)
        assert found, message
        self.ids.append(found[2].decode())
