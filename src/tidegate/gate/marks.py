"""Which ports of this machine are published, by whatever gate: no task may reach them by any rule (ADR-1, HLD-10).

Gates tell one another by a name in the abstract namespace of unix sockets (unix(7)): it belongs to the same network as
the port does, gates of every user see it, no task in a network of its own can, and it goes when its gate does, however
that comes. Somebody else on this machine who takes such a name gets one more port refused to tasks, and to be
published, as with the port itself; and nothing else.
"""

from __future__ import annotations

import _socket
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_DGRAM

from tidegate.model.publish import MARK


class Marks:
    """The marks of this machine, and those that this gate holds."""

    __slots__ = ("_held", "_probe")

    def __init__(self) -> None:
        self._held: dict[int, tuple[_socket.socket, int]] = {}  # and for how many listeners
        self._probe: _socket.socket | None = None

    def hold(self, port: int) -> None:
        """Mark a port as published by this gate, until it was released as often as it was held.

        Raises:
            OSError: EADDRINUSE where another gate has it.
        """
        if port in self._held:
            mark, count = self._held[port]
            self._held[port] = mark, count + 1
        else:
            mark = _socket.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC)
            try:
                mark.bind(MARK % port)
            except OSError:
                mark.close()
                raise
            self._held[port] = mark, 1

    def release(self, port: int) -> None:
        """Take one mark back."""
        mark, count = self._held[port]
        if count > 1:
            self._held[port] = mark, count - 1
        else:
            del self._held[port]
            mark.close()

    def __contains__(self, port: int) -> bool:
        """Whether a gate of this machine publishes the port: one system call, before each connection to this machine.

        Raises:
            OSError: when this process has no descriptor left to ask with.
        """
        if port in self._held:
            return True
        probe = self._probe
        if probe is None:
            probe = self._probe = _socket.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC)
        return probe.connect_ex(MARK % port) == 0

    def close(self) -> None:
        """Give them back."""
        for mark, _count in self._held.values():
            mark.close()
        self._held.clear()
        if self._probe is not None:
            self._probe.close()
            self._probe = None
