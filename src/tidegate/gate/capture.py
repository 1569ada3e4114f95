"""The gate's side of transparent capture: a task's resolver, and the listeners its connections arrive at (HLD-6).

Rules of the file:

* Every descriptor was made inside the task's network namespace by its hold; the gate owns them from here on.
* All captures of one task share its names, so that an address means the same to each of its commands, for its life.
* What was handed over is served whole or not at all.

What it does not do: redirect anything (the hold does), or reach the hold's kernel objects.
"""

from __future__ import annotations

import posix

from tidegate.gate.captured import CaptureListener
from tidegate.gate.direct import DirectAttempts
from tidegate.gate.dns_sockets import Datagrams, Streams
from tidegate.gate.names import Names
from tidegate.gate.synthetic import DEFAULT_RANGES, MOST, Ranges, Synthetic
from tidegate.model.destination import Destination
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.listener import Listener
    from tidegate.gate.task import GateTask


class CaptureSockets(Value):
    """What a hold hands over for one exec of one task: descriptors, and how its connections get there.

    `listeners` are listening TCP sockets, each of one family, with the way to find where a connection was going
    (original.REDIRECTED, original.ADDRESSED, or a fixed Destination). `datagrams` and `streams` are the resolver's
    UDP sockets and listening TCP sockets. `own_names` are host names of the task itself, canonical. `most_names`
    bounds the names the task may look up. Without `ipv6` (a kernel that has none) no name has an IPv6 address.
    """

    listeners: tuple[tuple[int, str | Destination], ...]
    datagrams: tuple[int, ...] = ()
    streams: tuple[int, ...] = ()
    ranges: Ranges = DEFAULT_RANGES
    own_names: frozenset[str] = frozenset()
    most_names: int = MOST
    ipv6: bool = True

    @property
    def descriptors(self) -> tuple[int, ...]:
        """All of them."""
        return (*(fd for fd, _ in self.listeners), *self.datagrams, *self.streams)


class Capture:
    """What serves one CaptureSockets. Made by `Gate.add_capture`, ended by `Gate.remove_capture`."""

    __slots__ = ("_direct", "_resolver", "listeners", "task")

    def __init__(self, gate: Gate, sockets: CaptureSockets, task: GateTask) -> None:
        """Take over the descriptors; on an error every one of them is closed.

        Raises:
            OSError: one of them is not what it should be.
            ValueError: an unknown way to find destinations, or other ranges than the task has already.
        """
        self.task = task
        self.listeners: list[Listener] = []
        self._resolver: list[Datagrams | Streams] = []
        self._direct = DirectAttempts(gate, task)
        left = list(sockets.descriptors)
        try:
            names = Names(gate, task, _names_of(task, sockets), sockets.own_names, ipv6=sockets.ipv6)
            for fd, way in sockets.listeners:
                self.listeners.append(CaptureListener(gate, fd, task, way))
                left.remove(fd)
            for fd in sockets.datagrams:
                self._resolver.append(Datagrams(gate, fd, names))
                left.remove(fd)
            for fd in sockets.streams:
                self._resolver.append(Streams(gate, fd, task, names))
                left.remove(fd)
        except BaseException:
            self.close()
            for fd in left:
                posix.close(fd)
            raise

    def record_direct(self, protocol: str, packed: bytes, port: int) -> None:
        """Record an attempt that went around the gate and failed (JRN-3). On the gate's thread.

        `protocol` is `udp`, `icmp` or `other`, `packed` the 4 or 16 bytes of the address; the port may be 0.
        """
        self._direct.record(protocol, packed, port)

    def close(self) -> None:
        """Close the listeners and the resolver; open connections live on."""
        for listener in self.listeners:
            listener.close()
        for part in self._resolver:
            part.close()
        self._direct.close()


def _names_of(task: GateTask, sockets: CaptureSockets) -> Synthetic:
    if task.synthetic is None:
        task.synthetic = Synthetic(sockets.ranges, sockets.most_names)
    elif task.synthetic.ranges != sockets.ranges:
        raise ValueError("the names of this task have addresses of other ranges already")
    return task.synthetic
