"""The command line of the relay: one role for each process (see __init__.py)."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys

from tidegate.holds.container.relay.ends import connect_unix
from tidegate.holds.container.relay.far import Far, serve
from tidegate.holds.container.relay.rules import lay, prove
from tidegate.holds.container.relay.words import BY_CARRIER, CAPTURED, GATE, NAMES, PATIENCE, say
from tidegate.holds.container.relay.worker import keep


def check(folder: str) -> int:
    """Say whether a container can connect to a socket of the machine."""
    try:
        connect_unix(os.path.join(folder, NAMES[GATE])).close()
    except OSError as error:
        say(f"tidegate-relay 1 {errno.errorcode.get(error.errno or 0, 'EIO')}")
        return 1
    say("tidegate-relay 1 connected")
    return 0


def ask(port: int, request: str) -> int:
    """Say what is answered to a request, as the worker would see it."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
            sock.sendall(request.encode("ascii") + b"\r\n\r\n")
            while b"\n" not in answer and len(answer) < 1000:
                data = sock.recv(1000)
                if not data:
                    break
                answer += data
    except OSError as error:
        answer = (error.strerror or str(error)).encode()
    say(answer.partition(b"\r")[0][:200].decode("ascii", "replace"))
    return 0


def main(argv: list[str]) -> int:
    """Run one role; see the head of the file."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the first process of a container has to say that it may
    role, words = (argv or [""])[0], argv[1:]
    if role == "worker" and len(words) >= 3 and {CAPTURED, BY_CARRIER}.issuperset(words[3:]):
        how = {"captured": CAPTURED in words[3:], "framed": BY_CARRIER in words[3:]}
        return keep(words[0], int(words[1]), float(words[2]), **how)
    if role == "far" and len(words) == 4:
        host, _colon, port = words[1].rpartition(":")
        return serve(Far(words[0], host, int(port), words[2]), float(words[3]))
    if role == "check" and len(words) == 1:
        return check(words[0])
    if role == "ask" and len(words) == 2:
        return ask(int(words[0]), words[1])
    if role == "rules" and len(words) == 1:
        return lay(int(words[0]))
    if role == "prove" and len(words) == 2:
        return prove(words[0], words[1])
    say(
        "tidegate-relay 1: worker FOLDER PORT GRACE [captured] [by-carrier] | far FOLDER HOST:PORT KEYS GRACE"
        " | check FOLDER | ask PORT REQUEST | rules PORT | prove WORD TARGETS"
    )
    return 2
