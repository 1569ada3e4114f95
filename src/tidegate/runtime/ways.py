"""What a task's way out depends on, as its front watches it: the gate, and what leads there (HLD-7).

What was stopped and not ended (SIGSTOP) answers no more: a relay does not give back what it is sent, a server's pulse
stands still (server_sign.py). Then connections are reset until it goes on, and the record says so. A gate that is our
child is ended when it was stopped (front.py).

Rules of the file: nothing here waits. What is gone is a sentence by which the front ends the task; where the task may
come to the next server (comeback.py), the end of this one is none.
"""

from __future__ import annotations

import os
from _socket import SO_PEERCRED, SOL_SOCKET, socket
from struct import unpack

from tidegate.runtime.outcome import GATE_GONE, WAY_GONE, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.holds.container.life import Life
    from tidegate.runtime.comeback import Comeback
    from tidegate.runtime.server_sign import ServerSign

_PIECE = 65536
LOOK = 0.5  # seconds between looks
SILENT = 1.25  # seconds without an answer, after which it is said
LOST = 10.0  # seconds without an answer of a relay, after which the task has lost its way

RELAY_STOPPED = "tidegate: the way to the gate does not answer (its relay was stopped?); no network until it does"
RELAY_BACK = "tidegate: the way to the gate answers again"
SERVER_STOPPED = "tidegate: the server does not answer; the command has no network until it does"
SERVER_BACK = "tidegate: the server answers again"
NOT_SHUT = (
    "tidegate: the server does not answer, and the command could not be kept from waiting for it; it is being ended"
)


class Ways:
    """See the head of the file.

    `gate` is a descriptor whose end of file means that the gate is gone, None where there is none; what comes on it
    goes to `heard`, which says why the task must end, or ''. `gone` is what is said then, '' where the task has nothing
    to lose by it. `way` is readable once something between is gone, or `life` has an answer, -1 where nothing is.
    `server` is of the one whose gate it is, where one is. `tell` says a line to who is there, and `note` has the gate
    record an event.
    """

    def __init__(
        self,
        gate: int | None,
        heard: Callable[[bytes], str] | None = None,
        gone: str = GATE_GONE,
        way: int = -1,
        comeback: Comeback | None = None,
        life: Life | None = None,
        note: Callable[[str], None] | None = None,
        server: ServerSign | None = None,
    ) -> None:
        self.tell: Callable[[str], None] = say
        self._gate = -1 if gate is None else gate
        self._heard = heard
        self._gone = gone
        self._way = way
        self._comeback = comeback
        self._life = life
        self._server = server
        self._note = note if note is not None else _nowhere
        self._relay_silent = self._server_silent = False

    def watched(self) -> tuple[int, ...]:
        """Return the descriptors to wait for."""
        comeback = self._comeback.fileno() if self._comeback is not None else -1
        return tuple(fd for fd in (self._gate, self._way, comeback) if fd >= 0)

    def look(self, ready: Mapping[int, int]) -> str:
        """Take what came; return why the task must end, '' where it need not."""
        why = ""
        if self._way in ready and not (self._life is not None and self._life.hear()):
            why = WAY_GONE
        if self._gate >= 0 and self._gate in ready:
            why = self._hear_gate() or why
        elif self._comeback is not None and self._comeback.fileno() in ready:
            why = self._hear_comeback(self._comeback) or why
        if why:
            self._way = -1  # it is said once
        return why

    def attend(self, now: float) -> str:
        """Give signs of life and look for those of the others; why the task must end, '' where it need not.

        `now` is of any monotonic clock, in seconds.
        """
        why = ""
        if self._server is not None and self._gate >= 0:
            why = self._look_at_server(self._server, now)
        life = self._life
        if life is None or self._way < 0:
            return why
        life.beat(now)
        silence = life.silence(now)
        if silence > SILENT:
            # An answer may wait here for us, who did not get to run: it counts, and so does an end.
            if not life.hear():
                self._way = -1
                return WAY_GONE
            silence = life.silence(now)
        if (silence > SILENT) != self._relay_silent:
            self._relay_silent = silence > SILENT
            self.tell(RELAY_STOPPED if self._relay_silent else RELAY_BACK)
            self._note("way.silent" if self._relay_silent else "way.back")
        if silence > LOST:
            self._way = -1
            return WAY_GONE
        return why

    def patience(self) -> float | None:
        """Return the seconds until `attend` has something to do, None while it has nothing."""
        looks = (self._server is not None and self._gate >= 0) or (self._life is not None and self._way >= 0)
        return LOOK if looks else None

    def _look_at_server(self, server: ServerSign, now: float) -> str:
        silent = server.is_silent(now)
        if silent == self._server_silent:
            return ""
        self._server_silent = silent
        if not server.shut(shut=silent):
            return NOT_SHUT
        self.tell(SERVER_STOPPED if silent else SERVER_BACK)
        return ""

    def close(self) -> None:
        """The task has ended: nobody comes back."""
        if self._server is not None:
            self._server.close()
        if self._comeback is not None:
            self._comeback.close()

    def _hear_gate(self) -> str:
        try:
            data = os.read(self._gate, _PIECE)
        except BlockingIOError:
            return ""
        except OSError:
            data = b""
        comeback = self._comeback
        if not data:
            self._gate = -1
            if comeback is None:
                return self._gone
            if self._server_silent and self._server is not None:  # it has ended now: nobody listens any more
                self._server_silent = False
                self._server.shut(shut=False)
            self.tell(comeback.begin())
            return ""
        why = self._heard(data) if self._heard is not None else ""
        return "" if comeback is not None and comeback.may_return() else why

    def _hear_comeback(self, comeback: Comeback) -> str:
        said, gate, why = comeback.hear()
        for line in said:
            self.tell(line)
        if gate >= 0:
            self._gate = gate
            if self._server is not None:
                self._server.renew(peer_of(gate))
        return why


def peer_of(channel: int) -> int:
    """Return the process at the other end of a unix socket, 0 where it cannot be seen from here (SO_PEERCRED)."""
    try:
        wire = socket(fileno=channel)
        try:
            pid: int = unpack("3i", wire.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))[0]
        finally:
            wire.detach()
    except OSError:
        return 0
    return pid


def _nowhere(_event: str) -> None:
    """There is no record."""
