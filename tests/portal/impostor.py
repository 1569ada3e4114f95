"""Another program on the port where a server was: it takes whatever a page sends it, and answers as a test says."""

from __future__ import annotations

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[str, bytes], tuple[int, bytes]]


class Impostor:
    """Listens on 127.0.0.1 as a context manager. `heard` is every request: its line and headers, and its body."""

    def __init__(self, port: int, answer: Answer) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.answer = answer
        impostor = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:  # HTTP/1.0: no connection stays when it has gone
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                impostor.heard.append((f"{self.requestline}\n{self.headers}", body))
                status, content = impostor.answer(self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815 - the library's names

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def said(self) -> str:
        """Return all that it heard, as one text."""
        return "".join(head + body.decode("latin-1") for head, body in self.heard)

    def proofs(self) -> list[dict[str, Any]]:
        """Return what it was asked to prove."""
        return [json.loads(body) for head, body in self.heard if head.startswith("POST /api/proof ")]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def says(status: int, value: object) -> Answer:
    """Answer everything with this."""
    return lambda _path, _body: (status, json.dumps(value).encode())


def passes_on(port: int) -> Answer:
    """Pass everything on to the server where it listens now, as if it had been asked there, and back."""

    def answer(path: str, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"} if body else {})
        found = connection.getresponse()
        result = found.status, found.read()
        connection.close()
        return result

    return answer
