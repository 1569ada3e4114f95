"""Whose an accepted connection is, where more than one task can reach the listener: the kernel says it (GAT-2).

The client's socket is looked up by both its ends (wire/sock_diag.py), which costs the same however many sockets there
are; the user that owns it is the task's. Nothing that a client sends says who it is.

Why an answer is about the very client that was accepted: both ends of a connection are taken in the kernel's table for
as long as *our* end of it lives. Whoever tries to connect anew from the same port meanwhile is met by our socket and
not by the listener, and gets no connection. So the ports can only have passed to somebody else when our end is no
longer connected (its client reset it while it waited to be accepted, say; what it had sent can still be read). That is
looked at *after* the answer, and such a connection is nobody's.

Where netfilter redirects connections, what arrives is not what the client's socket has: another destination, and
another port of its own when two clients had the same. Connection tracking is asked first then (wire/conntrack.py),
because the port that is seen here may be that of somebody else's socket.

Rules of the file: refused, told of and never guessed is what has an unknown owner, root, none any more, or an answer
that is not understood; a peer with an IPv4 address in IPv6 too, since its socket may stand in either table. The
question is answered while it is sent: nothing waits here.

What it does not do: a socket that one task passes to another stays its maker's, as its permission to connect does.
"""

from __future__ import annotations

import _socket
import os
from _socket import (
    AF_INET,
    AF_INET6,
    IPPROTO_TCP,
    MSG_DONTWAIT,
    SOCK_CLOEXEC,
    SOCK_RAW,
    TCP_INFO,
    inet_pton,
)
from errno import ENOENT, EPERM, EPROTONOSUPPORT

from tidegate.gate.bursts import Bursts
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.wire import conntrack, sock_diag
from tidegate.wire.errors import WireError
from tidegate.wire.sock_diag import MAPPED, NETLINK_SOCK_DIAG, Ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Any

    from tidegate.gate.door import Door
    from tidegate.gate.gate import Gate
    from tidegate.gate.listener import Identify
    from tidegate.wire.sock_diag import Owner

AF_NETLINK = 16
ROOT = 0
NOBODY = 65534  # /proc/sys/kernel/overflowuid: whoever has no number in the server's user namespace
NO_UID = 0xFFFFFFFF
IMPOSSIBLE = frozenset((ROOT, NOBODY, NO_UID))
"""Users that no task can have."""
_NO_CONNECTION = Ends(b"\x7f\0\0\1", 0, b"\x7f\0\0\1", 0)
_TRACKED = "/proc/sys/net/netfilter/nf_conntrack_max"
_CONNECTED = frozenset((1, 8))  # TCP_ESTABLISHED, TCP_CLOSE_WAIT: of our end, which has not ended its direction
_LARGEST = 8192
_STALE = 4  # answers to older questions that are thrown away before it is given up


class Stranger(Value):
    """A connection that was refused for whose it is.

    `uid` is -1 where the kernel names none; `task` is whose listener it came to, '' where that is shared.
    """

    reason: Reason
    uid: int
    task: str


class UnknownPeerError(Exception):
    """The kernel does not say whose a connection is."""


class _Kernel:
    """Questions to one part of the kernel, each answered while it is sent. A socket that fails is made anew."""

    __slots__ = ("_protocol", "_sequence", "wire")

    def __init__(self, protocol: int) -> None:
        self._protocol = protocol
        self._sequence = 0
        self.wire: socket | None = self._open()

    def _open(self) -> socket:
        return _socket.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, self._protocol)

    def ask(self, question: Callable[[Ends, int], bytes], ends: Ends, answer: Callable[[bytes, int, Ends], Any]) -> Any:
        """Return the answer to a question about these ends.

        Raises:
            UnknownPeerError: where the kernel cannot be asked, or is not understood.
        """
        self._sequence = sequence = self._sequence % 0xFFFFFFFF + 1
        try:
            wire = self.wire = self.wire or self._open()
            wire.send(question(ends, sequence), MSG_DONTWAIT)
            for _ in range(_STALE):
                data, sender = wire.recvfrom(_LARGEST, MSG_DONTWAIT)
                if sender == (0, 0):  # the kernel itself; what does not fit is cut short, and so not understood
                    try:
                        return answer(data, sequence, ends)
                    except WireError:
                        continue
        except (OSError, ValueError) as error:
            self.close()  # whatever it is: the next question has a new socket
            raise UnknownPeerError("the kernel cannot be asked") from error
        raise UnknownPeerError("the kernel's answer is not understood")

    def close(self) -> None:
        """Give the socket back; a later question opens another."""
        wire, self.wire = self.wire, None
        if wire is not None:
            wire.close()


class Peers:
    """Finds owners. One for a gate; of the network namespace that it is made in.

    Raises:
        OSError: where the kernel has no socket diagnostics.
    """

    __slots__ = ("sockets", "tracking")

    def __init__(self) -> None:
        self.sockets = _Kernel(NETLINK_SOCK_DIAG)
        self.tracking: _Kernel | None = None
        try:
            self.tracking = _tracking()
        except OSError:
            self.sockets.close()
            raise

    def owner(self, sock: socket, peer: tuple[Any, ...]) -> Owner:
        """Return whose the other end of an accepted connection is; `peer` is what accept(2) named it.

        Raises:
            UnknownPeerError: in every other case than one plain answer.
        """
        arrived = client_ends(sock, peer)
        ends = self._original(arrived)
        found: Owner | None = self.sockets.ask(sock_diag.question, ends, sock_diag.answer)
        if found is None:
            raise UnknownPeerError("it has no owner any more")
        try:
            state = sock.getsockopt(IPPROTO_TCP, TCP_INFO, 1)[0]
        except OSError as error:
            raise UnknownPeerError("its state cannot be seen") from error
        if state not in _CONNECTED:
            raise UnknownPeerError("it was reset, and its port may be somebody else's by now")
        if ends.local_port != arrived.local_port and self._original(arrived) != ends:
            raise UnknownPeerError("it is not tracked any more")
        return found

    def _original(self, arrived: Ends) -> Ends:
        if self.tracking is None:
            return arrived
        found: Ends | None = self.tracking.ask(conntrack.question, arrived, conntrack.answer)
        return found or arrived

    def close(self) -> None:
        """Give the sockets back."""
        self.sockets.close()
        if self.tracking is not None:
            self.tracking.close()


def _tracking() -> _Kernel | None:
    """Return what asks connection tracking; None where nothing of ours could have anything rewritten.

    Raises:
        OSError: where connections may be rewritten and it cannot be found out how.
    """
    try:
        made = _Kernel(conntrack.NETLINK_NETFILTER)
    except OSError as error:
        if error.errno == EPROTONOSUPPORT:
            return None  # a kernel without netfilter
        raise
    number = made.ask(conntrack.question, _NO_CONNECTION, conntrack.refusal)
    if number == ENOENT:
        return made
    made.close()
    if number == EPERM or not os.path.exists(_TRACKED):
        return None  # who may not ask may not have anything rewritten; or nothing here is tracked
    raise OSError(number, os.strerror(number), "connection tracking (nf_conntrack_netlink)")


def client_ends(sock: socket, peer: tuple[Any, ...]) -> Ends:
    """Return both ends of an accepted connection as its client's socket has them, where nothing rewrote them.

    Raises:
        UnknownPeerError: for addresses of two kinds at once, or of another family.
    """
    family = sock.family
    try:
        here = sock.getsockname()
        if family not in {AF_INET, AF_INET6}:
            raise UnknownPeerError("neither IPv4 nor IPv6")
        ours = inet_pton(family, here[0].partition("%")[0])
        theirs = inet_pton(family, peer[0].partition("%")[0])
    except OSError as error:
        raise UnknownPeerError("it is gone") from error
    if MAPPED in {ours[:12], theirs[:12]}:
        raise UnknownPeerError("an IPv4 address in IPv6")
    return Ends(theirs, peer[1], ours, here[1])


def owned_by(uid: int) -> Callable[[Owner], bool]:
    """Return what says of an owner that it is this user.

    Raises:
        ValueError: for a user that no task can have.
    """
    if uid in IMPOSSIBLE or not 0 < uid < NO_UID:
        raise ValueError(f"no task can be of uid {uid}")
    return lambda owner: owner.uid == uid


def belonging(door: Door, belongs: Callable[[Owner], bool], impossible: frozenset[int] = IMPOSSIBLE) -> Identify:
    """Return the check of a listener of one task that others can reach: only who belongs to the task comes in.

    `impossible` are users that no such task can have, whatever `belongs` would say.
    """
    gate, ours = door.gate, door.task.id

    def identify(sock: socket, peer: tuple[Any, ...]) -> bool:
        uid = -1
        reason = Reason.UNKNOWN_PEER
        try:
            owner = gate.peers.owner(sock, peer)
            uid = owner.uid
            if uid not in impossible:
                reason = Reason.FOREIGN_PEER
                if belongs(owner):
                    return True
        except (UnknownPeerError, OSError):
            pass  # nobody's, then
        gate.strangers.refuse(sock, Stranger(reason, uid, ours))
        return False

    return identify


class Strangers:
    """Those who were refused: dropped, counted, and told of at most once in a while for the same (bursts.py).

    `tell` takes one and how many of the kind there were.
    """

    def __init__(self, gate: Gate, tell: Callable[[Stranger, int], None] | None) -> None:
        self.count = 0
        self._bursts = Bursts(gate.reactor, tell or _nobody_listens)

    def refuse(self, sock: socket, stranger: Stranger) -> None:
        """Close a connection of which nothing was read."""
        sock.close()
        self.count += 1
        self._bursts.take(stranger)

    def close(self) -> None:
        """Tell of the counts that wait."""
        self._bursts.close()


def _nobody_listens(_stranger: Stranger, _count: int) -> None:
    """Nobody wants to know."""
