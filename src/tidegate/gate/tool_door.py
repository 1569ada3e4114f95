"""A task's way to its tools: connections to the gate's own name, handed over to the keeper beside the task (SRV-6).

Rules of the file:

* The gate makes a pair of sockets, keeps one end as what the task reached and hands the other to the keeper. It reads
  nothing of what is said between the two but what it reads of every connection, runs nothing and never waits.
* What a task reaches at the name are the tools of its own command: the door is that command's, no number or path tells
  them apart.
* The keeper says back what was called: a name, how it ended and sizes, never a value (JRN-5).
"""

from __future__ import annotations

import _socket
import posix
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    MSG_DONTWAIT,
    SCM_RIGHTS,
    SOCK_STREAM,
    SOL_SOCKET,
    socketpair,
)
from struct import pack, unpack

from tidegate.model.decision import Decision
from tidegate.model.reason import Reason
from tidegate.model.tools import ANY_TOOL, NAME, PORT, RULE, SOURCE
from tidegate.model.verdict import Phase, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask
    from tidegate.model.destination import Destination

    class Held(Protocol):
        """A tool that is held to the task's hosts."""

        def close(self) -> None:
            """End it."""


_CONNECT = b"connect"
_MOST_FDS = 253  # SCM_MAX_FD
_MOST = 1 << 16  # bytes of one message of the keeper
_NUMBERS = ("status", "in", "out", "seconds")
_LONGEST = 64


class ToolDoor:
    """See the head of the file. `called` hears of each call: the tool, and what is said of it.

    `hold` serves the sockets of a tool that is held to the task's hosts (their roles, the descriptors, the first of
    which is the control's); it owns them. `holds` end with the door.
    """

    __slots__ = ("_fd", "_gate", "_sock", "called", "hold", "holds")

    def __init__(self, gate: Gate, fd: int, task: GateTask) -> None:
        """Take over our end of a keeper's channel.

        Raises:
            OSError: when it is no socket; it is still the caller's then.
        """
        sock = _socket.socket(fileno=fd)
        sock.setblocking(False)
        self._gate = gate
        self._fd = fd
        self._sock: _socket.socket | None = sock
        self.called: Callable[[str, dict[str, Any]], None] | None = None
        self.hold: Callable[[list[str], list[int]], None] | None = None
        self.holds: set[Held] = set()
        gate.reactor.watch(fd, self)
        task.tools = self

    def connect(self) -> _socket.socket | None:
        """Return a connection to the tools, None where their keeper takes none."""
        if self._sock is None:
            return None
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        try:
            rights = [(SOL_SOCKET, SCM_RIGHTS, pack("i", theirs.fileno()))]
            self._sock.sendmsg([_CONNECT], rights, MSG_DONTWAIT)
        except OSError:
            ours.close()
            return None
        finally:
            theirs.close()
        ours.setblocking(False)
        return ours

    def ready(self, _fd: int, _mask: int) -> None:
        """The keeper says what was called."""
        if not self._read():
            self.close()

    def _read(self) -> bool:
        """Take what the keeper has said; False where it has ended."""
        while self._sock is not None:
            try:
                data, ancillary, _flags, _address = self._sock.recvmsg(
                    _MOST, CMSG_SPACE(4 * _MOST_FDS), MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            self._hear(data, _descriptors(ancillary))
        return True

    def _hear(self, data: bytes, descriptors: list[int]) -> None:
        from json import loads

        try:
            message = loads(data)
            roles = message.get("hold")
            if descriptors and self.hold is not None and isinstance(roles, list) and len(roles) + 1 == len(descriptors):
                taken, descriptors = descriptors, []
                self.hold(roles, taken)
                return
            tool, result = str(message["tool"])[:_LONGEST], str(message["result"])[:_LONGEST]
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        finally:
            for fd in descriptors:
                posix.close(fd)
        numbers = {key: message[key] for key in _NUMBERS if isinstance(message.get(key), int | float)}
        if self.called is not None:
            self.called(tool, {"result": result, **numbers})

    def cut(self, _reason: Reason) -> None:
        """The gate is ending."""
        self.close()

    def broken(self, _error: Exception) -> None:
        """A bug: there are no tools any more."""
        self.close()

    def close(self) -> None:
        """Take what the keeper has said, and let go of it; connections stay."""
        self.hold = None  # nothing begins any more
        self._read()
        if self._sock is not None:
            sock, self._sock = self._sock, None
            self._gate.reactor.forget(self._fd)
            sock.close()
            for held in list(self.holds):
                held.close()


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, payload in ancillary:
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            found += unpack(f"{len(payload) // 4}i", payload[: len(payload) // 4 * 4])
    return found


def is_tools(destination: Destination) -> bool:
    """Whether a destination is at the name of the tools."""
    return destination.host.text == NAME


def tools_decision(decision: Decision, destination: Destination, phase: Phase, *, offered: bool) -> Decision:
    """Return what is decided for the name, in a task that has tools or in another.

    `decision` is the policy's, whose denies stay. Where there are no tools the name leads nowhere, whatever a rule or a
    person says: nobody is asked about it, and no resolver.
    """
    if decision.reason is Reason.DENY_RULE:
        return decision
    if not offered:
        return decision.refuse(Reason.NO_TOOLS, fix=ANY_TOOL)
    if destination.port != PORT:
        return Decision(Verdict.DENY, destination, phase, Reason.PORT_NOT_ALLOWED, None, RULE, SOURCE)
    return Decision(Verdict.ALLOW, destination, phase, Reason.ALLOWED, None, RULE, SOURCE)
