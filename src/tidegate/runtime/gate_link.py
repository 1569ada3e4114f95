"""A gate in a process of its own: forked from the front before any policy text is read, so that it stays small.

What front and gate both import is imported here, once.
"""

from __future__ import annotations

import marshal
import os
import sys
from _socket import AF_UNIX, SOCK_STREAM, socketpair

import tidegate.policy.decide
import tidegate.policy.snapshot
import tidegate.runtime.inspection  # noqa: F401
from tidegate.inspect import der  # noqa: F401
from tidegate.runtime.link import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class GateLink(Link):
    """A gate's process: its pid and our end of its channel."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self._open = os.memfd_create("tidegate-open")  # what it has open, for when it is killed (open_lines.py)
        if sys.stdout is not None:  # it is None where the stream was closed
            sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                _detach_standard_streams(theirs.fileno(), self._open)
                from tidegate.runtime.gate_process import gate_main

                gate_main(theirs, self._open)
            finally:
                os._exit(1)
        theirs.close()
        super().__init__(ours, warn)

    def dumps(self, value: Any) -> bytes:
        """Marshal it: the gate is our own child."""
        return marshal.dumps(value)

    def loads(self, data: bytes) -> Any:
        """Read what our own child marshalled."""
        return marshal.loads(data)  # noqa: S302  see above

    def close(self) -> None:
        """Close our end, which ends the gate, and reap it."""
        if self.pid:
            self.channel.close()
            pid, self.pid = self.pid, 0
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                self.pid = 0  # it was reaped where its stop was seen
            if os.fstat(self._open).st_size:
                from tidegate.journal.open_lines import left_lines

                self.left_open = left_lines(self._open)
            os.close(self._open)


def _detach_standard_streams(*keep: int) -> None:
    """Let go of everything the task's pipes could be waiting on: the gate holds no stream but its channel."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        if fd not in keep:
            os.dup2(null, fd)
    begin = 3
    for fd in sorted(keep):
        os.closerange(begin, fd)
        begin = max(begin, fd + 1)
    os.closerange(begin, max(1 << 20, begin + 1))
