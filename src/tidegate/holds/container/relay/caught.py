"""What is captured in a worker's network: taken here, and led to the gate with where it was going (HLD-6).

Four kinds of sockets come from who made the rules (rules.py): listeners that connections are redirected to, the
resolver's datagrams and listeners, and the log of what was turned away. The gate hears of each on a socket of its own:

    caught.sock    a connection each; the name of its end says the first destination (model/caught.py)
    lookup.sock    a resolver's stream: the worker's own streams, and one with all datagrams in it
    told.sock      the datagrams of the log, with two bytes of length

Rules of the file: nothing is judged or answered here. What the gate does not take at once is dropped, as a network may
with datagrams. Of a look-up the two bytes of its number are read and exchanged, since many clients share one stream.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

from tidegate.holds.container.relay.words import IN, LOOKUP, TOLD
from tidegate.model.caught import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.container.relay.pairs import Loop

    Connect = Callable[[bytes], socket.socket]

WAITING = 1024  # look-ups that have no answer yet; more are dropped, so that no flood stands in all that is between
STALE = 5.0  # seconds; what has no answer then makes room: its client has asked again, or given up
LONGEST = 4096  # bytes of a look-up, as the gate has it
BATCH = 16  # datagrams of one socket before the others have their turn
_HEAD = 12  # bytes of a DNS message's head
_LARGEST = 0xFFFF
_SO_ORIGINAL_DST = 80  # linux/netfilter_ipv4.h, and the same in netfilter_ipv6/ip6_tables.h
_SOCKADDR_IN, _SOCKADDR_IN6 = 16, 28


def going_to(sock: socket.socket) -> bytes:
    """The name that says where a redirected connection was going.

    Raises:
        OSError: when the kernel does not know.
    """
    if sock.family == socket.AF_INET:
        raw = sock.getsockopt(socket.IPPROTO_IP, _SO_ORIGINAL_DST, _SOCKADDR_IN)
        return name_of(raw[4:8], raw[2] << 8 | raw[3], os.urandom(8))
    raw = sock.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, _SOCKADDR_IN6)
    return name_of(raw[8:24], raw[2] << 8 | raw[3], os.urandom(8))


class _Stream:
    """One connection to the gate that many datagrams share; made when there is something to send."""

    kind = b""

    def __init__(self, loop: Loop, connect: Connect) -> None:
        self._loop = loop
        self._connect = connect
        self._sock: socket.socket | None = None

    def send(self, data: bytes) -> bool:
        """Send it whole or not at all; whether it was."""
        for _ in range(2):
            if self._sock is None:
                try:
                    self._sock = self._connect(self.kind)
                except OSError:
                    return False
                self._loop.watch(self._sock.fileno(), self, IN)
            try:
                if self._sock.send(data) == len(data):
                    return True
            except BlockingIOError:
                return False
            except OSError:
                pass  # the gate that had it is gone, or let it go: there is another, or none
            self.cut()
        return False

    def cut(self) -> None:
        """Close the connection; the next datagram makes another."""
        sock, self._sock = self._sock, None
        if sock is not None:
            self._loop.forget(sock.fileno())
            sock.close()

    def ready(self, _fd: int, _mask: int) -> None:
        """The gate says something, or leaves."""
        try:
            data = self._sock.recv(_LARGEST) if self._sock is not None else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.heard(data)
        else:
            self.left()

    def heard(self, data: bytes) -> None:
        """Take what the gate says."""

    def left(self) -> None:
        """The gate has closed it."""
        self.cut()


class LookUps(_Stream):
    """The datagrams of the worker's look-ups."""

    kind = LOOKUP

    def __init__(self, loop: Loop, connect: Connect, socks: list[socket.socket]) -> None:
        super().__init__(loop, connect)
        self._socks = {sock.fileno(): _Datagrams(self, sock) for sock in socks}
        self._waiting: dict[int, tuple[socket.socket, object, bytes, bool, float]] = {}  # the oldest first
        self._number = 0
        self._in = b""
        for fd, one in self._socks.items():
            loop.watch(fd, one, IN)

    def ask(self, sock: socket.socket, peer: object, message: bytes, *, again: bool = False) -> None:
        """Lead a look-up to the gate. `again`: who was asked before is gone."""
        if not _HEAD <= len(message) <= LONGEST:
            return
        now = time.monotonic()
        if len(self._waiting) >= WAITING:
            oldest = next(iter(self._waiting))
            if now - self._waiting[oldest][4] < STALE:
                return
            del self._waiting[oldest]
        while self._number in self._waiting:
            self._number = (self._number + 1) & 0xFFFF
        number, self._number = self._number, (self._number + 1) & 0xFFFF
        if self.send(len(message).to_bytes(2, "big") + number.to_bytes(2, "big") + message[2:]):
            self._waiting[number] = sock, peer, message, again, now

    def heard(self, data: bytes) -> None:
        """Lead the answers back."""
        self._in += data
        while len(self._in) >= 2 and len(self._in) >= 2 + (self._in[0] << 8 | self._in[1]):
            size = 2 + (self._in[0] << 8 | self._in[1])
            answer, self._in = self._in[2:size], self._in[size:]
            found = self._waiting.pop(answer[0] << 8 | answer[1], None) if len(answer) >= _HEAD else None
            if found is not None:
                sock, peer, message, _again, _asked = found
                with suppress(OSError):  # the worker has left, or has no room: it asks again
                    sock.sendto(message[:2] + answer[2:], peer)  # type: ignore[call-overload]

    def left(self) -> None:
        """The gate lets streams go that are idle: what was asked in that moment is asked once more."""
        waiting, self._waiting = self._waiting, {}
        self.cut()
        for sock, peer, message, again, _asked in waiting.values():
            if not again:
                self.ask(sock, peer, message, again=True)

    def cut(self) -> None:
        """As the base has it; what comes on another connection begins with a length."""
        super().cut()
        self._in = b""


class _Datagrams:
    """One socket that look-ups come to."""

    def __init__(self, look_ups: LookUps, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._look_ups = look_ups
        self._sock = sock

    def ready(self, _fd: int, _mask: int) -> None:
        """Look-ups are waiting."""
        for _ in range(BATCH):
            try:
                message, peer = self._sock.recvfrom(LONGEST + 1)
            except OSError:
                return
            self._look_ups.ask(self._sock, peer, message)


class TurnedAway(_Stream):
    """The log of what was turned away, told to the gate."""

    kind = TOLD

    def __init__(self, loop: Loop, connect: Connect, log: int) -> None:
        super().__init__(loop, connect)
        os.set_blocking(log, False)
        self._log = log
        loop.watch(log, _Log(self), IN)

    def tell(self) -> None:
        """Pass on what the kernel says."""
        for _ in range(BATCH):
            try:
                data = os.read(self._log, _LARGEST)
            except OSError:  # nothing there (any more), or it was too much for the kernel to keep
                return
            if data:
                self.send(len(data).to_bytes(2, "big") + data)


class _Log:
    def __init__(self, owner: TurnedAway) -> None:
        self._owner = owner

    def ready(self, _fd: int, _mask: int) -> None:
        """The kernel says something."""
        self._owner.tell()
