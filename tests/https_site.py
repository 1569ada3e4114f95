"""An HTTPS server for the client tests: pages from a table, and git repositories through `git http-backend`.

    with HttpsSite(lab.listener("1.2.3.4", 443), ["git.test"], folder) as site:
        site.pages["/simple/"] = ("text/html", b"...")
        site.takes["/api/"] = lambda site, method, path, body: b"{}"
        ... site.ca_file ... site.requests ... site.bodies

It runs in the test's process and has an authority of its own; without names it speaks plain HTTP. What it does not do:
check anything that a real registry would.
"""

from __future__ import annotations

import http.server
import os
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING, Self

import trustme

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path


class HttpsSite:
    """Serves on a listening socket until it is left.

    `pages` maps paths (without query) to content type and body; `takes` the beginnings of paths to what answers a PUT,
    POST or DELETE there, with JSON.
    """

    def __init__(self, listener: socket.socket, names: list[str], folder: Path) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.takes: dict[str, Callable[[HttpsSite, str, str, bytes], bytes]] = {}
        self.repositories: Path | None = None
        self.requests: list[str] = []
        self.heads: list[dict[str, str]] = []  # of all requests, names in lower case
        self.bodies: dict[str, bytes] = {}  # of requests that `takes` answered, by method and path
        self._listener = listener
        self._context: ssl.SSLContext | None = None
        if not names:
            return
        authority = trustme.CA()
        self.ca_file = str(folder / "site-ca.pem")
        authority.cert_pem.write_to_path(self.ca_file)
        os.chmod(self.ca_file, 0o644)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*names).configure_cert(self._context)

    def __enter__(self) -> Self:
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.requests.append(f"{self.command} {self.path}")
                site.heads.append({name.lower(): value for name, value in self.headers.items()})
                body = self._body()
                path, _, query = self.path.partition("?")
                take = next((one for begin, one in site.takes.items() if path.startswith(begin)), None)
                if take is not None and self.command not in {"GET", "HEAD"}:
                    site.bodies[f"{self.command} {path}"] = body
                    self._answer("200 OK", ["Content-Type: application/json"], take(site, self.command, path, body))
                elif path in site.pages:
                    kind, page = site.pages[path]
                    self._answer("200 OK", [f"Content-Type: {kind}"], page)
                elif site.repositories is not None and path.startswith("/git/"):
                    self._git(site.repositories, path.removeprefix("/git"), query, body)
                else:
                    self._answer("404 Not Found", [], b"")

            do_POST = do_HEAD = do_PUT = do_DELETE = do_GET  # noqa: N815  http.server's names

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline().partition(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass  # trailers
                return b"".join(parts)

            def _answer(self, status: str, headers: list[str], body: bytes) -> None:
                lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
                self.wfile.write("\r\n".join(lines).encode() + (b"" if self.command == "HEAD" else body))

            def _git(self, root: Path, path: str, query: str, body: bytes) -> None:
                done = subprocess.run(
                    ["git", "http-backend"],
                    input=body,
                    capture_output=True,
                    check=False,
                    env={
                        "PATH": os.environ["PATH"],
                        "HOME": str(root),
                        "GIT_PROJECT_ROOT": str(root),
                        "GIT_HTTP_EXPORT_ALL": "1",
                        "REMOTE_USER": "tester",  # lets a push in
                        "REQUEST_METHOD": self.command,
                        "PATH_INFO": path,
                        "QUERY_STRING": query,
                        "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                        "CONTENT_LENGTH": str(len(body)),
                        "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                        "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                    },
                )
                head, _, answer = done.stdout.partition(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                status = next((line[8:] for line in lines if line.startswith("Status: ")), "200 OK")
                ours = ("Status: ", "Content-Length: ")
                self._answer(status, [line for line in lines if not line.startswith(ours)], answer)

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            def finish_request(self, request: socket.socket, address: object) -> None:  # type: ignore[override]
                # The handshake belongs to the connection's own thread; a client that breaks it off is no error here.
                try:
                    if site._context is None:
                        self.RequestHandlerClass(request, address, self)  # type: ignore[arg-type]
                        return
                    with site._context.wrap_socket(request, server_side=True) as inner:
                        self.RequestHandlerClass(inner, address, self)  # type: ignore[arg-type]
                except OSError:
                    pass

        self._server = Server(("", 0), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = self._listener
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
