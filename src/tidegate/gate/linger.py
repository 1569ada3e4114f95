"""The last thing a client is told, and how its connection is closed so that it can read it (GAT-7, B37, B47).

Rules of the file: after its answer a client is neither read as a request again nor closed at once, because a reset
would eat the answer. What it still sends is thrown away until it closes, bounded in bytes and time. Many clients read
an answer only when their whole upload is sent (Python's requests, and so twine), so that may be much.
"""

from __future__ import annotations

from _socket import SHUT_WR

from tidegate.gate.reactor import HUP, IN
from tidegate.model.verdict import Verdict
from tidegate.wire.refusal import refusal_response, refuse_decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.reactor import Timer
    from tidegate.model.decision import Decision
    from tidegate.model.reason import Reason

ROUNDS = 16  # reads in one turn before others get theirs
_BUFFER = bytearray(1 << 16)
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # struct linger {1, 0}: close(2) sends RST
LINGER_SECONDS = 2.0  # without a byte, for the client to read its answer
PAUSES = 5  # times as long for one that has sent something: an upload may stand still for a while
LINGER_LONGEST = 60.0  # seconds in which it may send on: an upload that was refused half-way
LINGER_BYTES = 1 << 31  # likewise


def refusal_line(decision: Decision, reason: Reason, tried: tuple[str, ...] = ()) -> str:
    """Return the one line for a destination that was allowed and not reached, or asked for and not answered."""
    line = decision.replace(reason=reason).sentence()
    return f"{line} (tried {', '.join(tried)})" if tried else line


def render(
    decision: Decision, reason: Reason, tried: tuple[str, ...], *, body: bool = True, json: bool = False
) -> bytes:
    """Return the HTTP answer of a refusal or a failure."""
    if decision.reason is reason and not tried:
        return refuse_decision(decision, body=body, json=json)
    fix = decision.fix if decision.verdict is not Verdict.ALLOW else ""
    return refusal_response(reason, refusal_line(decision, reason, tried), fix=fix, body=body, json=json)


class Linger:
    """A client that has its last answer: what it still sends is thrown away until it closes, for a moment (B37)."""

    __slots__ = ("_deadline", "_fd", "_gate", "_left", "_listener", "_looked", "_quiet", "_sock", "_until")

    def __init__(self, gate: Gate, listener: Door, sock: socket, *, watched: bool) -> None:
        self._gate = gate
        self._listener = listener
        self._sock = sock
        self._fd = sock.fileno()
        self._left = self._looked = LINGER_BYTES
        self._quiet = 0  # looks without a byte
        self._until = gate.reactor.now + LINGER_LONGEST
        self._deadline: Timer | None = None
        try:
            sock.shutdown(SHUT_WR)
        except OSError:
            self.close()
            return
        self._deadline = gate.reactor.after(LINGER_SECONDS, self._look, self)
        if watched:
            gate.reactor.table[self._fd] = self
            gate.reactor.again(self, self._fd, HUP)
        else:
            gate.reactor.watch(self._fd, self)

    def ready(self, _fd: int, _mask: int) -> None:
        """Read and forget."""
        for _ in range(ROUNDS):
            try:
                count = self._sock.recv_into(_BUFFER)
            except BlockingIOError:
                return
            except OSError:
                count = 0
            self._left -= count
            if not count or self._left <= 0:
                self.close()
                return
        self._gate.reactor.again(self, self._fd, IN)

    def _look(self) -> None:
        reactor = self._gate.reactor
        self._quiet = self._quiet + 1 if self._left == self._looked else 0
        self._looked = self._left
        if self._quiet >= (1 if self._left == LINGER_BYTES else PAUSES) or reactor.now >= self._until:
            self.close()
        else:
            self._deadline = reactor.after(LINGER_SECONDS, self._look, self)

    def cut(self, _reason: Reason) -> None:
        """The gate is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug."""
        self.close()

    def close(self) -> None:
        """Close it, whatever it still wants to say."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        self._gate.reactor.table.pop(fd, None)
        if self._deadline is not None:
            self._deadline.cancel()
        self._sock.close()
        self._listener.left(fd)
