"""What relays, the listener (door.py) and who owns a task say to each other, and how long each waits."""

from __future__ import annotations

import select
import sys

GATE, LIFE, CAUGHT, LOOKUP, TOLD, OPEN, SHUT = b"G", b"L", b"C", b"D", b"T", b"+", b"-"
NAMES = {GATE: "gate.sock", LIFE: "life.sock", CAUGHT: "caught.sock", LOOKUP: "lookup.sock", TOLD: "told.sock"}
FRAMED = (GATE, CAUGHT)
"""What is led to a carrier in frames: what breaks off is reset, and does not merely end."""
BY_CARRIER = "by-carrier"  # the word that has it led so
CAPTURED = "captured"  # the word that has a worker's relay wait for who makes the rules
CERTIFICATE, AUTHORITY = "task.pem", "ca.pem"
READY = "tidegate-relay 1 ready"
SERVER_NAME = "gate.tidegate.internal"  # what the listener's certificate is for, whatever name it is reached by
ROOM = 1 << 16
PIECE = 1 << 14  # what one TLS record holds
MOST = 512  # connections at once; the gate takes half of that
PATIENCE = 10.0  # seconds to be connected
RULES = 60.0  # seconds for who makes the rules to come
LINGER = 5.0  # seconds for a side that still sends to read the last answer
AGAIN = 0.5  # seconds between tries for the owner, and between signs of life of who moves
STOPPED = 2.0  # seconds without such a sign after which it was stopped
PAUSE = 0.2  # seconds at least between such signs, and before another one moves
MOVED, FAILED, IDLE = 0, 1, 4
"""How who moves ends by itself: its owner has left, it could not begin, or who connected never said that it is one."""
SILENT = 5.0  # seconds without a beat of an owner that beats
ROUNDS = 16  # reads of one connection before the others have their turn
RESET = b"\1\0\0\0\0\0\0\0"  # struct linger: at once
IN = select.EPOLLIN
EDGES = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET  # each is told once: move what can be


class CutError(OSError):
    """The other side went away in the midst, or is not what it should be."""


def say(line: str) -> None:
    """Print a line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def alone() -> int:
    """Say that there is no owner any more; the exit status."""
    say("tidegate-relay 1 nobody is there any more")
    return 3
