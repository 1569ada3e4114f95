"""A gate in a process of its own: forked from the front before any policy text is read, so that it stays small."""

from __future__ import annotations

import marshal
import os
import sys
from _socket import AF_UNIX, SOCK_STREAM, socketpair

from tidegate.runtime.link import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class GateLink(Link):
    """A gate's process: its pid and our end of its channel."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        if sys.stdout is not None:  # it is None where the stream was closed
            sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                _detach_standard_streams(theirs.fileno())
                from tidegate.runtime.gate_process import gate_main

                gate_main(theirs)
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
                return


def _detach_standard_streams(keep: int) -> None:
    """Let go of everything the task's pipes could be waiting on: the gate holds no stream but its channel."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        if fd != keep:
            os.dup2(null, fd)
    os.closerange(3, keep)
    os.closerange(keep + 1, 1 << 20 if keep < 1 << 20 else keep + 2)
