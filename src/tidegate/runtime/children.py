"""Looking at the front's own children without waiting for them: waitid(2) with WNOWAIT."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # signal itself makes enums at each start


def is_in_state(pid: int, wanted: int) -> bool:
    """Whether our child is in a state that waitid(2) can be asked for; it stays to be waited for."""
    return _look(pid, wanted) is not None


def is_lost(pid: int) -> bool:
    """Whether our child was stopped, killed or failed. One that ended by itself with 0 was done."""
    found = _look(pid, os.WSTOPPED | os.WEXITED)
    return found is not None and (found.si_code != os.CLD_EXITED or found.si_status != 0)


def _look(pid: int, wanted: int) -> os.waitid_result | None:
    try:
        return os.waitid(os.P_PID, pid, wanted | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def end_child(pid: int) -> None:
    """Kill a child of ours, where it is still there."""
    try:
        os.kill(pid, _signal.SIGKILL)
    except ProcessLookupError:
        return
