"""The lab's DNS server: UDP and TCP, answers from a table that a test writes, and a list of what was asked.

RFC 1035 for the messages. Answers are A, AAAA and CNAME; what the table has not is NXDOMAIN; a name without the type
asked for has an empty answer.
What it does not do: recursion, EDNS, compression of anything but the question's name.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Any

_TYPES = {1: "A", 28: "AAAA", 5: "CNAME"}
_RCODES = {"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "REFUSED": 5}


class Table:
    """What each name answers. Thread-safe; one step of a sequence per name and type asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, list[dict[str, Any]]] = {}
        self._steps: dict[tuple[str, str], int] = {}
        self.queries: list[tuple[str, str]] = []

    def set(self, name: str, steps: list[dict[str, Any]]) -> None:
        """Write the answers of a name, or of every name under `*.name`; the last step repeats."""
        with self._lock:
            self._names[name.lower().rstrip(".")] = steps
            self._steps = {key: step for key, step in self._steps.items() if key[0] != name.lower()}

    def clear(self) -> None:
        """Forget all names and queries."""
        with self._lock:
            self._names.clear()
            self._steps.clear()
            self.queries.clear()

    def ask(self, name: str, kind: str, *, count: bool = True) -> dict[str, Any] | None:
        """Return the step that answers now, or None for a name that is not there."""
        with self._lock:
            if count:
                self.queries.append((name, kind))
            key = name
            steps = self._names.get(name)
            while steps is None and "." in key:
                key = key.split(".", 1)[1]
                steps = self._names.get(f"*.{key}")
            if not steps:
                return None
            at = self._steps.get((name, kind), 0)
            self._steps[name, kind] = at + 1
            return steps[min(at, len(steps) - 1)]

    def address(self, name: str) -> str | None:
        """Return the first address of a name, for the lab's own upstream proxies."""
        step = self.ask(name.lower().rstrip("."), "A", count=False) or {}
        return next(iter([*step.get("A", []), *step.get("AAAA", [])]), None)


def _read_question(message: bytes) -> tuple[str, int, int]:
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    (kind,) = struct.unpack_from(">H", message, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def _write_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def answer(table: Table, message: bytes, *, over_tcp: bool) -> bytes | None:
    """Answer one message from the table; None where the table says to drop it."""
    name, number, end = _read_question(message)
    kind = _TYPES.get(number, str(number))
    step = table.ask(name, kind)
    if step is not None and step.get("drop"):
        return None
    if step is not None and step.get("delay"):
        time.sleep(step["delay"])
    rcode, records, flags = 3, [], 0x8180
    if step is not None:
        rcode = _RCODES.get(step.get("rcode", "NOERROR"), 0)
        ttl = step.get("ttl", 0)
        owner = b"\xc0\x0c"
        alias = step.get("CNAME")
        if alias and rcode == 0:
            data = _write_name(alias)
            records.append(owner + struct.pack(">HHIH", 5, 1, ttl, len(data)) + data)
            owner = data
        if rcode == 0 and kind in ("A", "AAAA"):
            family = socket.AF_INET if kind == "A" else socket.AF_INET6
            for text in step.get(kind, []):
                data = socket.inet_pton(family, text)
                records.append(owner + struct.pack(">HHIH", number, 1, ttl, len(data)) + data)
        if step.get("truncate") and not over_tcp:
            records, flags = [], flags | 0x0200
    head = message[:2] + struct.pack(">HHHHH", flags | rcode, 1, len(records), 0, 0)
    return head + message[12:end] + b"".join(records)


class Server:
    """Serves one table on one address, port 53, until its process ends."""

    def __init__(self, table: Table, udp: socket.socket, tcp: socket.socket) -> None:
        self._table = table
        threading.Thread(target=self._udp, args=(udp,), daemon=True).start()
        threading.Thread(target=self._tcp, args=(tcp,), daemon=True).start()

    def _udp(self, sock: socket.socket) -> None:
        while True:
            message, peer = sock.recvfrom(4096)
            threading.Thread(target=self._udp_one, args=(sock, message, peer), daemon=True).start()

    def _udp_one(self, sock: socket.socket, message: bytes, peer: object) -> None:
        with contextlib.suppress(OSError, IndexError, struct.error):
            reply = answer(self._table, message, over_tcp=False)
            if reply is not None:
                sock.sendto(reply, peer)  # type: ignore[arg-type]

    def _tcp(self, sock: socket.socket) -> None:
        while True:
            peer, _ = sock.accept()
            threading.Thread(target=self._tcp_one, args=(peer,), daemon=True).start()

    def _tcp_one(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError, IndexError, struct.error), peer, peer.makefile("rb") as stream:
            while size := stream.read(2):
                reply = answer(self._table, stream.read(struct.unpack(">H", size)[0]), over_tcp=True)
                if reply is not None:
                    peer.sendall(struct.pack(">H", len(reply)) + reply)
