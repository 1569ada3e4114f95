"""The process that is the internet: its own network namespace, the DNS server and every origin of a test.

Run as `python -m tests.lab.internet CONTROL_FD`. Requests and answers are JSON with a length in front, over a unix
socket that carries listening sockets too (SCM_RIGHTS): out, for a test that wants to serve by itself, and in, for
an origin that is to listen on the machine. It ends when the control socket does.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
import sys
import threading
from typing import Any

import trustme

from tests.lab import dns, links, namespaces, proxies
from tests.lab.origins import KINDS, Origin

_IP_FREEBIND, _IPV6_FREEBIND = 15, 78  # linux/in.h, linux/in6.h: bind within a prefix that is local as a whole


def listen(address: str, port: int, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """Return a bound (and for TCP listening) socket in this namespace."""
    six = ":" in address
    sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if six:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen(4096)
    return sock


class Internet:
    """Answers the requests of one control socket."""

    def __init__(self) -> None:
        self.table = dns.Table()
        self.origins: dict[int, Origin] = {}
        self.authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.next = 1

    def do_configure(self, _fds: list[int], *, ipv6: bool) -> dict[str, Any]:
        """Lay the links and start the DNS server."""
        links.lay_internet(ipv6=ipv6)
        address = links.INTERNET4
        dns.Server(self.table, listen(address, 53, socket.SOCK_DGRAM), listen(address, 53))
        return {"ca": self.authority.cert_pem.bytes().decode()}

    def do_dns_set(self, _fds: list[int], *, name: str, steps: list[dict[str, Any]]) -> None:
        """Write a name's answers."""
        self.table.set(name, steps)

    def do_dns_queries(self, _fds: list[int]) -> list[tuple[str, str]]:
        """Return what was asked so far."""
        return list(self.table.queries)

    def do_open(
        self,
        fds: list[int],
        *,
        kind: str,
        address: str,
        port: int,
        options: dict[str, Any],
        tls: list[str] | None = None,
    ) -> dict[str, Any]:
        """Start an origin; on the socket that came along, where one did."""
        if fds:
            listener = socket.socket(fileno=fds.pop())
        else:
            listener = listen(address, port, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
        makers = {"http-proxy": proxies.http_proxy, "socks5-proxy": proxies.socks5_proxy}
        handler = makers[kind](self.table) if kind in makers else KINDS.get(kind, KINDS["canary"])
        origin = Origin(listener, handler, options, self._context(tls, options) if tls else None)
        number, self.next = self.next, self.next + 1
        self.origins[number] = origin
        return {"id": number, "port": origin.port}

    def _context(self, names: list[str], options: dict[str, Any]) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority = trustme.CA() if options.get("untrusted") else self.authority
        authority.issue_cert(*names).configure_cert(context)
        context.set_alpn_protocols(options.get("alpn", ["http/1.1"]))
        return context

    def do_stats(self, _fds: list[int], *, number: int) -> dict[str, Any]:
        """Return an origin's record."""
        return self.origins[number].stats()

    def do_drop(self, _fds: list[int], *, number: int, reset: bool) -> None:
        """Cut an origin's open connections."""
        self.origins[number].drop(with_reset=reset)

    def do_close(self, _fds: list[int], *, number: int) -> None:
        """End an origin."""
        self.origins.pop(number).close()

    def do_clear(self, _fds: list[int]) -> None:
        """End every origin and forget every name."""
        for origin in self.origins.values():
            origin.close()
        self.origins.clear()
        self.table.clear()

    def do_listener(self, fds: list[int], *, address: str, port: int, udp: bool) -> None:
        """Hand out a socket of this namespace."""
        fds.append(listen(address, port, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM).detach())


def main(control_fd: int) -> None:
    """Serve until the control socket ends."""
    namespaces.die_with_parent()
    namespaces.unshare(namespaces.CLONE_NEWNET)
    links.enable_ipv6()
    namespaces.loopback_up()
    threading.stack_size(256 * 1024)
    control = socket.socket(fileno=control_fd)
    internet = Internet()
    control.sendall(b"ready")
    while True:
        head, fds, _, _ = socket.recv_fds(control, 4, 4)
        if len(head) < 4:
            return
        (size,) = struct.unpack(">I", head)
        request = json.loads(control.recv(size, socket.MSG_WAITALL))
        try:
            answer: object = {"ok": getattr(internet, f"do_{request.pop('do')}")(fds, **request)}
        except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
            answer = {"error": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", None)}
        data = json.dumps(answer).encode()
        if fds:
            socket.send_fds(control, [struct.pack(">I", len(data))], fds)
            for fd in fds:
                os.close(fd)
        else:
            control.sendall(struct.pack(">I", len(data)))
        control.sendall(data)


if __name__ == "__main__":
    main(int(sys.argv[1]))
