"""What a task sent around the gate and the kernel turned away, read from the kernel's log of it (JRN-3).

A hold opens the log inside the task's network namespace and binds it to a group there, so all that it tells is this
task's: protocol, address and port count (wire/nflog.py).
"""

from __future__ import annotations

from tidegate.gate.log_reader import LogReader
from tidegate.wire.nflog import attempts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.gate.gate import Gate


class TurnedAway(LogReader):
    """One log. Owns its descriptor; `record` takes protocol, packed address and port."""

    __slots__ = ()

    def __init__(self, gate: Gate, fd: int, record: Callable[[str, bytes, int], None]) -> None:
        super().__init__(gate, fd, attempts, lambda one: record(one.protocol, one.address, one.port))
