"""What a task sent around the gate and the kernel turned away, read from the kernel's log of it (JRN-3).

A hold opens the log inside the task's network namespace and binds it to a group there; here its messages are turned
into protocol, address and port. Rules of the file: bounded, a few messages a turn; what cannot be read is not a
reason to stop; the kernel drops what nobody reads in time, and says so once by ENOBUFS.

From linux/netfilter/nfnetlink_log.h; RFC 791, RFC 8200. What it does not do: extension headers of IPv6 are not walked,
a datagram with some is recorded as IP without a port.
"""

from __future__ import annotations

import _socket
from errno import ENOBUFS
from struct import unpack_from

from tidegate.gate.reactor import LEVEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.gate.gate import Gate
    from tidegate.model.reason import Reason

BATCH = 64  # messages in one turn
_PACKET = 4 << 8  # NFNL_SUBSYS_ULOG, NFULNL_MSG_PACKET
_PAYLOAD = 9  # NFULA_PAYLOAD
_HEADER = 16 + 4  # struct nlmsghdr, struct nfgenmsg
_LARGEST = 65536
_NAMES = {1: "icmp", 17: "udp", 58: "icmp"}
_UDP = 17

Attempt = tuple[str, bytes, int]


def attempts(data: bytes) -> list[Attempt]:
    """Return what one datagram of the log tells: protocol, packed address and port of each packet."""
    found = []
    at = 0
    while at + _HEADER <= len(data):
        length, kind = unpack_from("=IH", data, at)
        if length < _HEADER or at + length > len(data):
            break
        if kind == _PACKET:
            attempt = _attempt(_payload(data[at + _HEADER : at + length]))
            if attempt is not None:
                found.append(attempt)
        at += length + -length % 4
    return found


def _payload(attributes: bytes) -> bytes:
    at = 0
    while at + 4 <= len(attributes):
        length, kind = unpack_from("=HH", attributes, at)
        if length < 4:
            break
        if kind == _PAYLOAD:
            return attributes[at + 4 : at + length]
        at += length + -length % 4
    return b""


def _attempt(packet: bytes) -> Attempt | None:
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        protocol, address, ports = packet[9], packet[16:20], (packet[0] & 15) * 4
    elif version == 6 and len(packet) >= 40:
        protocol, address, ports = packet[6], packet[24:40], 40
    else:
        return None
    port = 0
    if protocol == _UDP and len(packet) >= ports + 4:
        port = packet[ports + 2] << 8 | packet[ports + 3]
    return _NAMES.get(protocol, "other"), address, port


class TurnedAway:
    """One log. Owns its descriptor; `record` takes protocol, packed address and port."""

    __slots__ = ("_fd", "_gate", "_record", "_sock")

    def __init__(self, gate: Gate, fd: int, record: Callable[[str, bytes, int], None]) -> None:
        self._gate = gate
        self._fd = fd
        self._record = record
        self._sock: _socket.socket | None = _socket.socket(fileno=fd)
        self._sock.setblocking(False)
        gate.reactor.watch(fd, self, LEVEL)

    def ready(self, _fd: int, _mask: int) -> None:
        """Messages are waiting; what this turn does not take is told of again."""
        for _ in range(BATCH):
            if self._sock is None:
                return
            try:
                data = self._sock.recv(_LARGEST)
            except OSError as error:
                if error.errno == ENOBUFS:
                    continue  # some were dropped, the rest is there
                return
            for attempt in attempts(data):
                self._record(*attempt)

    def cut(self, _reason: Reason) -> None:
        """The gate is ending: what is there is still taken."""
        self.ready(self._fd, 0)
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug with one message: the next ones are read."""

    def close(self) -> None:
        """Close it; later calls do nothing."""
        sock, self._sock = self._sock, None
        if sock is not None:
            self._gate.reactor.forget(self._fd)
            sock.close()
