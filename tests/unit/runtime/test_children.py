"""tidegate.runtime.children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tidegate.runtime.children import end_child, is_in_state, is_lost


def _until(pid: int, wanted: int) -> bool:
    deadline = time.monotonic() + 60
    while not is_in_state(pid, wanted):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_childs_state_is_seen_and_left_to_be_waited_for() -> None:
    """HLD-7: a stopped or ended gate or watcher is seen at once, and its status is still there for who waits."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"]) as child:
        assert not is_in_state(child.pid, os.WSTOPPED | os.WEXITED)
        os.kill(child.pid, signal.SIGSTOP)
        assert _until(child.pid, os.WSTOPPED)
        end_child(child.pid)
        assert _until(child.pid, os.WEXITED)
        assert is_in_state(child.pid, os.WEXITED)
        assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("program", "lost"),
    [("", False), ("raise SystemExit(3)", True), ("import os; os.kill(os.getpid(), 9)", True)],
)
def test_only_an_end_of_its_own_is_no_loss(program: str, lost: bool) -> None:
    """HLD-7: the watcher ends with 0 when its last process has gone; killed or failed, it is missed."""
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        assert not is_lost(child.pid) or lost
        assert _until(child.pid, os.WEXITED)
        assert is_lost(child.pid) is lost


def test_what_is_no_child_of_ours_is_in_no_state() -> None:
    """A pid that was waited for already is nothing to act upon."""
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert not is_in_state(child.pid, os.WEXITED)
    end_child(child.pid)
