"""Who answers in the small internet of world.py: a resolver, an origin that is allowed, and canaries everywhere else.

All of them write down what they hear. The origin answers every HTTP head with 200 and keeps the connection.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct

from tidegate.doctor.escapes.world import RESOLVER

GOOD, GOOD6, OTHER = "1.2.3.4", "2600:beef::4", "1.2.3.5"
PORTS = (22, 25, 53, 80, 443, 853, 2375, 5432, 6379, 8080)
"""Where a canary stands at every address: TCP and UDP."""

A, CNAME, AAAA = 1, 5, 28
# What each name leads to. More than one list: one for each time it is asked, the last for ever.
NAMES: dict[str, dict[int, list[list[str]]]] = {
    "good.test": {A: [[GOOD]], AAAA: [[GOOD6]]},
    "other.test": {A: [[OTHER]]},
    "private.wild.test": {A: [["10.0.0.1"]]},
    "loopback.wild.test": {A: [["127.0.0.1"]], AAAA: [["::1"]]},
    "own.wild.test": {A: [["203.0.113.77"]]},
    "metadata.wild.test": {A: [["169.254.169.254"]]},
    "unspecified.wild.test": {A: [["0.0.0.0"]]},
    "mixed.wild.test": {A: [[GOOD, "10.0.0.1"]]},
    "families.wild.test": {A: [[GOOD]], AAAA: [["::1"]]},
    "mapped.wild.test": {AAAA: [["::ffff:127.0.0.1"]]},
    "compatible.wild.test": {AAAA: [["::127.0.0.1"]]},
    "nat64.wild.test": {AAAA: [["64:ff9b::7f00:1"]]},
    "sixtofour.wild.test": {AAAA: [["2002:7f00:1::1"]]},
    "rebinding.wild.test": {A: [[GOOD], ["127.0.0.1"]]},
}
ALIASES = {"alias.wild.test": "alias.other.test", "alias.other.test": "loopback.wild.test"}
_MOST = 1 << 16
_NO_SUCH_NAME = 3
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Lab:
    """The sockets, and what they heard: (where, what)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self._turns: dict[tuple[str, int], int] = {}
        self._selector = selectors.DefaultSelector()
        for address in (RESOLVER, "127.0.0.1"):
            self._serve(socket.AF_INET, socket.SOCK_DGRAM, address, 53, self._resolve)
        for port in PORTS:
            for family, everywhere in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                self._serve(family, socket.SOCK_STREAM, everywhere, port, self._accept)
                self._serve(family, socket.SOCK_DGRAM, everywhere, port, self._hear)

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._selector.fileno()

    def turn(self) -> None:
        """Serve whoever has come."""
        for key, _ in self._selector.select(0):
            key.data(key.fileobj)

    def _serve(self, family: int, kind: int, address: str, port: int, serve: object) -> None:
        wire = socket.socket(family, kind)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            wire.bind((address, port))
        except OSError:
            wire.close()  # there is no IPv6, or one of the machine's own is there
            return
        wire.setblocking(False)
        if kind == socket.SOCK_STREAM:
            wire.listen(64)
        self._selector.register(wire, selectors.EVENT_READ, serve)

    def _accept(self, server: socket.socket) -> None:
        wire, _ = server.accept()
        wire.setblocking(False)
        self.heard.append((_name(wire), ""))
        self._selector.register(wire, selectors.EVENT_READ, self._talk)

    def _talk(self, wire: socket.socket) -> None:
        try:
            data = wire.recv(_MOST)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(wire)
            wire.close()
            return
        self._note(wire, data)
        if data.endswith(b"\r\n\r\n"):
            with contextlib.suppress(OSError):
                wire.send(_ANSWER)

    def _hear(self, wire: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._note(wire, wire.recv(_MOST))

    def _note(self, wire: socket.socket, data: bytes) -> None:
        self.heard.append((_name(wire), data.decode("ascii", "backslashreplace")))

    def _resolve(self, wire: socket.socket) -> None:
        with contextlib.suppress(OSError, IndexError, struct.error):
            query, peer = wire.recvfrom(_MOST)
            name, kind, end = _question(query)
            self.asked.append(name)
            wire.sendto(self._answer(query[:end], name, kind), peer)

    def _answer(self, query: bytes, name: str, kind: int) -> bytes:
        records = []
        while name in ALIASES:
            records.append(_record(name, CNAME, _wire_name(ALIASES[name])))
            name = ALIASES[name]
        known = NAMES.get(name)
        turns = known.get(kind, []) if known else []
        if turns:
            at = self._turns.setdefault((name, kind), 0)
            self._turns[name, kind] = at + 1
            family = socket.AF_INET if kind == A else socket.AF_INET6
            addresses = turns[min(at, len(turns) - 1)]
            records += [_record(name, kind, socket.inet_pton(family, address)) for address in addresses]
        flags = 0x8180 | (0 if known else _NO_SUCH_NAME)
        return query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + query[12:] + b"".join(records)


def _question(query: bytes) -> tuple[str, int, int]:
    labels = []
    at = 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "backslashreplace").lower())
        at += 1 + query[at]
    (kind,) = struct.unpack_from(">H", query, at + 1)
    return ".".join(labels), kind, at + 5


def _wire_name(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in name.split(".")) + b"\0"


def _record(name: str, kind: int, data: bytes) -> bytes:
    return _wire_name(name) + struct.pack(">HHIH", kind, 1, 0, len(data)) + data


def _name(wire: socket.socket) -> str:
    kind = "tcp" if wire.type == socket.SOCK_STREAM else "udp"
    address, port = wire.getsockname()[:2]
    return f"{kind} {address} port {port}"
