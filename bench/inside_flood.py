"""What runs inside two holds for measures/flood.py: `probe` measures, `flood` gets in its way.

    probe HOST:PORT     for each line "SECONDS" on standard input: opens tunnels one after the other for so long, and
                        prints {"p50", "p95", "count"} in microseconds
    flood               for each line "KIND SECONDS": does that as fast as it can for so long, and prints how often

Kinds: `off` sleeps; `spin` only computes, which is what any neighbour on the machine costs; `refused` asks the proxy
for what no rule names, `literal` connects to an address outside, which arrives by capture, 64 at once both; `names`
looks up ever new names; `udp` sends datagrams to an address outside. Only the standard library: the task sees no more.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 64
OUTSIDE = "203.0.113.9"  # RFC 5737: for documentation, and no rule of the bench names it


def _proxy() -> tuple[str, int]:
    parts = urlsplit(os.environ["HTTP_PROXY"])
    return parts.hostname or "", parts.port or 0


def _connect(where: str) -> bytes:
    with socket.create_connection(_proxy(), timeout=30) as sock:
        sock.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode("ascii"))
        return sock.recv(4096)


def _probe(where: str) -> None:
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        took = []
        while (began := time.perf_counter()) < end:
            if b" 200 " not in _connect(where)[:20]:
                sys.exit("not let through")
            took.append((time.perf_counter() - began) * 1e6)
        took.sort()
        found = {"p50": took[len(took) // 2], "p95": took[int(len(took) * 0.95)], "count": len(took)}
        print(json.dumps(found), flush=True)


def _refused() -> int:
    return _at_once(_proxy(), f"CONNECT {OUTSIDE}:443 HTTP/1.1\r\nHost: {OUTSIDE}:443\r\n\r\n".encode("ascii"))


def _literal() -> int:
    return _at_once((OUTSIDE, 443), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def _at_once(where: tuple[str, int], said: bytes) -> int:
    """Connect `AT_ONCE` times, say that on each, read what each answers, which is a refusal; return how many."""
    socks = [socket.socket() for _ in range(AT_ONCE)]
    for act in (
        lambda sock: sock.connect(where),
        lambda sock: sock.sendall(said),
        lambda sock: sock.recv(4096),
    ):
        for sock in socks:
            sock.settimeout(30)
            try:
                act(sock)
            except OSError:
                continue  # refused, which is the point
    for sock in socks:
        sock.close()
    return AT_ONCE


_number = 0


def _names() -> int:
    global _number  # noqa: PLW0603  one counter of one program
    _number += 1
    with suppress(OSError):  # no name of these is let through
        socket.getaddrinfo(f"n{_number}.flood.test", 443)  # noqa: TID251  a program in a task, not ours
    return 1


def _udp() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, suppress(OSError):  # it fails at once
        sock.sendto(b"x" * 64, (OUTSIDE, 9999))
    return 1


def _spin() -> int:
    for _ in range(1000):
        pass
    return 1


def _off() -> int:
    time.sleep(0.05)
    return 1


KINDS: dict[str, Callable[[], int]] = {
    "off": _off, "spin": _spin, "refused": _refused, "literal": _literal, "names": _names, "udp": _udp,
}  # fmt: skip


def _flood() -> None:
    for line in sys.stdin:
        kind, seconds = line.split()
        once, count = KINDS[kind], 0
        end = time.perf_counter() + float(seconds)
        while time.perf_counter() < end:
            count += once()
        print(count, flush=True)


if __name__ == "__main__":
    _probe(sys.argv[2]) if sys.argv[1] == "probe" else _flood()
