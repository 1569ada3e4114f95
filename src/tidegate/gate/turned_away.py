"""What a task sent around the gate and the kernel turned away, read from the kernel's log of it (JRN-3).

A hold opens the log inside the task's network namespace and binds it to a group there, so all that it tells is this
task's: protocol, address and port count (wire/nflog.py). Where the gate can hold nothing of that namespace, a relay
holds the log and tells what it says on a connection: two bytes of length, then one datagram of the log's.
"""

from __future__ import annotations

import _socket
from os import set_blocking

from tidegate.gate.log_reader import LogReader
from tidegate.gate.reactor import LEVEL
from tidegate.wire.errors import WireError
from tidegate.wire.nflog import attempts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.gate.gate import Gate
    from tidegate.model.reason import Reason
    from tidegate.wire.attempt import Attempt

    Record = Callable[[str, bytes, int], None]

TELLERS = 4  # at once: a relay has one, and those before it may not be known to be gone


class TurnedAway(LogReader):
    """One log. Owns its descriptor; `record` takes protocol, packed address and port."""

    __slots__ = ()

    def __init__(self, gate: Gate, fd: int, record: Record) -> None:
        super().__init__(gate, fd, attempts, lambda one: record(one.protocol, one.address, one.port))


class Told:
    """The listening unix socket that a relay tells its log at. Owns its descriptor, and what connects."""

    __slots__ = ("_fd", "_gate", "_record", "_sock", "tellers")

    def __init__(self, gate: Gate, fd: int, record: Record) -> None:
        self._gate = gate
        self._fd = fd
        self._record = record
        self.tellers: list[_Teller] = []
        set_blocking(fd, False)
        self._sock: _socket.socket | None = _socket.socket(fileno=fd)
        gate.reactor.watch(fd, self, LEVEL)

    def ready(self, _fd: int, _mask: int) -> None:
        """A relay is there."""
        if self._sock is None:
            return
        try:
            fd = self._sock._accept()[0]  # type: ignore[attr-defined]  # noqa: SLF001 - see listener.py
        except OSError:
            return
        self.tellers = [one for one in self.tellers if one.is_open]
        if len(self.tellers) >= TELLERS:
            self.tellers.pop(0).close()  # the oldest is the one that may be gone
        self.tellers.append(_Teller(self._gate, fd, self._record))

    def cut(self, reason: Reason) -> None:
        """The gate is ending: what is there is still taken."""
        self.ready(self._fd, 0)
        sock, self._sock = self._sock, None
        if sock is not None:
            self._gate.reactor.forget(self._fd)
            sock.close()
        for one in self.tellers:
            one.cut(reason)

    def broken(self, _error: Exception) -> None:
        """A bug while accepting: the next one is accepted."""


class _Teller(LogReader):
    """One connection of a relay's."""

    __slots__ = ("_left",)

    def __init__(self, gate: Gate, fd: int, record: Record) -> None:
        self._left = b""
        super().__init__(gate, fd, self._whole, lambda one: record(one.protocol, one.address, one.port))

    def _whole(self, data: bytes) -> list[Attempt]:
        if not data:
            self.close()
            return []
        data = self._left + data
        found: list[Attempt] = []
        while len(data) >= 2 and len(data) >= 2 + (data[0] << 8 | data[1]):
            size = 2 + (data[0] << 8 | data[1])
            said, data = data[2:size], data[size:]
            try:
                found += attempts(said)
            except WireError:
                self.not_understood += 1
        self._left = data
        return found
