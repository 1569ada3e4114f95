"""One listening socket for many tasks: a connection's task is that of the user its client's socket belongs to (GAT-2).

    shared = gate.add_shared(fd)              once
    seat = shared.seat(uid, task)             for each command of a task, before its first process starts
    gate.remove_listener(seat, cut=True)      when all of its processes have ended, before the uid is given to another

Rules of the file: a user has one seat at most; who has none is refused and told of (identity.py). A connection stays
its task's for as long as it lasts. The bound of connections is each task's own: a full task costs the others nothing.
"""

from __future__ import annotations

from tidegate.gate.door import Door
from tidegate.gate.identity import IMPOSSIBLE, NO_UID, Stranger, UnknownPeerError
from tidegate.gate.listener import Listener
from tidegate.gate.task import GateTask
from tidegate.model.reason import Reason
from tidegate.policy.policy import make_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any

    from tidegate.gate.gate import Gate


class Seat(Door):
    """One task at a shared listener."""

    __slots__ = ("_shared", "uid")

    def __init__(self, shared: SharedListener, uid: int, task: GateTask) -> None:
        super().__init__(shared.gate, task)
        self.uid = uid
        self._shared = shared

    def close(self) -> None:
        """Let no connection of this user in any more; open ones live on."""
        self._shared.leave(self)


class SharedListener(Listener):
    """See the head of the file. Whoever is not told apart meets a policy without a rule, should that ever happen."""

    __slots__ = ("_seats",)

    def __init__(self, gate: Gate, fd: int) -> None:
        """Take over a listening TCP socket.

        Raises:
            OSError: when `fd` is no such socket; it is still the caller's then. Or the kernel cannot be asked.
        """
        self._seats: dict[int, Seat] = {}
        gate.peers  # noqa: B018 - made now: without it nobody could be served
        super().__init__(gate, fd, GateTask("", make_policy([])), self._seat_of)

    def seat(self, uid: int, task: GateTask) -> Seat:
        """Serve `task` to this user from now on. On the gate's thread.

        Raises:
            ValueError: when the user has a seat, or can have none.
        """
        if uid in self._seats or uid in IMPOSSIBLE or not 0 < uid < NO_UID:
            raise ValueError(f"uid {uid} cannot be one more task's")
        seat = self._seats[uid] = Seat(self, uid, task)
        return seat

    def leave(self, seat: Seat) -> None:
        """Give a seat back; later calls do nothing."""
        if self._seats.get(seat.uid) is seat:
            del self._seats[seat.uid]

    def _seat_of(self, sock: socket, peer: tuple[Any, ...]) -> Door | None:
        uid = -1
        try:
            uid = self.gate.peers.owner(sock, peer).uid
            seat = self._seats.get(uid)
            if seat is not None:
                return seat
        except (UnknownPeerError, OSError):
            pass  # nobody's, then
        reason = Reason.UNKNOWN_PEER if uid < 0 or uid in IMPOSSIBLE else Reason.FOREIGN_PEER
        self.gate.strangers.refuse(sock, Stranger(reason, uid, ""))
        return None
