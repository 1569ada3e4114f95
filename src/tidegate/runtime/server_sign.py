"""Whether the server that a command is behind goes on, and the command's network while it does not (HLD-7).

A server that was stopped (SIGSTOP) is seen within about a second: its pulse stands still, and the kernel says that the
process is stopped. One that merely does not count may be busy, or its machine may be, and what is open would be broken
for nothing; so it is given a few seconds more. Where the kernel does not say (another PID namespace, a process number
that is somebody else's), the pulse alone decides.

Rules of the file: nothing here waits. The times are seconds of any monotonic clock.
"""

from __future__ import annotations

from tidegate.runtime.pulse import Watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STOPPED = 1.25  # seconds without a count of a server that was stopped
HANGS = 5.0  # seconds without a count of any other


class ServerSign:
    """See the head of the file. `pid` is the server's; `shut` is RunningTask.shut."""

    def __init__(self, state: str, pid: int, shut: Callable[..., bool] | None) -> None:
        self._state = state
        self._pid = pid
        self._shut = shut
        self._pulse = Watched(state)

    def is_silent(self, now: float) -> bool:
        """Whether the server does not answer."""
        silence = self._pulse.silence(now)
        return silence > STOPPED and (silence > HANGS or is_stopped(self._pid))

    def shut(self, *, shut: bool) -> bool:
        """Have the command's connections reset, since the server does not answer, or no more; whether that is so."""
        return self._shut is not None and self._shut(shut=shut)

    def renew(self, pid: int) -> None:
        """Another server has taken the command in."""
        self._pulse.close()
        self._pulse = Watched(self._state)
        self._pid = pid

    def close(self) -> None:
        """Look no more."""
        self._pulse.close()


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped, by a signal or by who traces it (proc_pid_stat(5)); False where it is unknown."""
    if pid <= 0:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False
