"""The front's own children: looking at them without waiting, waitid(2) with WNOWAIT, and the last of a task."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from tidegate.holds.hold import RunningTask
else:
    import _signal  # signal itself makes enums at each start

LAST_LOOK = 5.0  # seconds for the kernel to end what is left of a task


def is_in_state(pid: int, wanted: int) -> bool:
    """Whether our child is in a state that waitid(2) can be asked for; it stays to be waited for."""
    return _look(pid, wanted) is not None


def is_lost(pid: int) -> bool:
    """Whether our child was stopped, killed or failed. One that ended by itself with 0 was done."""
    found = _look(pid, os.WSTOPPED | os.WEXITED)
    return found is not None and (found.si_code != os.CLD_EXITED or found.si_status != 0)


def exit_status(pid: int) -> int | None:
    """What our child exited with, while it is still to be waited for; None where it did not exit."""
    found = _look(pid, os.WEXITED)
    return found.si_status if found is not None and found.si_code == os.CLD_EXITED else None


def _look(pid: int, wanted: int) -> os.waitid_result | None:
    try:
        return os.waitid(os.P_PID, pid, wanted | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def see_off(task: RunningTask) -> None:
    """Wait until nothing of a task is left: init becomes a zombie after the kernel has ended its namespace."""
    try:
        handle = os.pidfd_open(task.pid)
    except OSError:
        handle = -1
    if handle >= 0:
        look = select.poll()
        look.register(handle, select.POLLIN)
        gone = look.poll(LAST_LOOK * 1000)
        os.close(handle)
        if not gone:
            return  # something in it sleeps uninterruptibly; it is killed and ends when the kernel lets it
    try:
        task.wait()
    except ChildProcessError:
        return


def end_child(pid: int) -> None:
    """Kill a child of ours, where it is still there."""
    try:
        os.kill(pid, _signal.SIGKILL)
    except ProcessLookupError:
        return
