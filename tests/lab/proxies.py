"""The lab's upstream proxies: an HTTP proxy (CONNECT and absolute-form) and a SOCKS5 proxy, with or without a password.

They stand in for a company's proxy that the gate goes out through (GAT-8). They resolve names in the lab's DNS table
without counting, so that a test can still say how many look-ups the gate made.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING

from tests.lab.origins import Connection, header, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.dns import Table


def _dial(table: Table, host: str, port: int) -> socket.socket:
    address = host if ":" in host or host.replace(".", "").isdigit() else table.address(host)
    if address is None:
        raise OSError("no such name in the lab")
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    sock.settimeout(10)
    sock.connect((address, port))
    sock.settimeout(None)
    return sock


def _pump(source: Callable[[], bytes], sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source():
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _join(conn: Connection, upstream: socket.socket) -> None:
    with upstream:
        back = threading.Thread(target=_pump, args=(lambda: upstream.recv(65536), conn.sock), daemon=True)
        back.start()
        _pump(conn.recv, upstream)
        back.join()


def http_proxy(table: Table) -> Callable[[Connection], None]:
    """Return a handler that is an HTTP proxy. Options: user, password, status (refuse every CONNECT with it)."""

    def serve(conn: Connection) -> None:
        head = conn.head()
        if not head:
            return
        user = conn.options.get("user")
        if user is not None:
            token = base64.b64encode(f"{user}:{conn.options.get('password', '')}".encode())
            if header(head, b"proxy-authorization") != b"Basic " + token:
                conn.send(reply(b"", "407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="lab"\r\n'))
                return
        if conn.options.get("status"):
            conn.send(reply(b"refused by the upstream\n", conn.options["status"]))
            return
        method, target, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
        else:
            authority = target.split("/", 3)[2]
            host, _, port = authority.rpartition(":") if authority.split("]")[-1].count(":") else (authority, "", "80")
        try:
            upstream = _dial(table, host.strip("[]"), int(port))
        except OSError:
            conn.send(reply(b"the upstream could not connect\n", "502 Bad Gateway"))
            return
        if method == "CONNECT":
            conn.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = "/" + target.split("/", 3)[3] if target.count("/") > 2 else "/"
            upstream.sendall(head.replace(target.encode("latin-1"), path.encode("latin-1"), 1))
        _join(conn, upstream)

    return serve


def socks5_proxy(table: Table) -> Callable[[Connection], None]:
    """Return a handler that is a SOCKS5 proxy (RFC 1928, 1929). Options: user, password, code (refuse with it)."""

    def serve(conn: Connection) -> None:
        greeting = conn.exactly(2)
        methods = conn.exactly(greeting[1])
        user = conn.options.get("user")
        want = 2 if user is not None else 0
        if want not in methods:
            conn.send(b"\x05\xff")
            return
        conn.send(bytes([5, want]))
        if want:
            name = conn.exactly(conn.exactly(2)[1])
            secret = conn.exactly(conn.exactly(1)[0])
            good = (name.decode(), secret.decode()) == (user, conn.options.get("password", ""))
            conn.send(b"\x01\x00" if good else b"\x01\x01")
            if not good:
                return
        _, _, _, kind = conn.exactly(4)
        if kind == 3:
            host = conn.exactly(conn.exactly(1)[0]).decode("latin-1")
        else:
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, conn.exactly(size))
        (port,) = struct.unpack(">H", conn.exactly(2))
        conn.origin.heads.append(f"{host}:{port}".encode("latin-1"))
        conn.origin.requests += 1
        code = conn.options.get("code", 0)
        upstream = None
        if not code:
            try:
                upstream = _dial(table, host, port)
            except OSError:
                code = 5
        conn.send(bytes([5, code, 0, 1, 0, 0, 0, 0, 0, 0]))
        if upstream is not None:
            _join(conn, upstream)

    return serve
