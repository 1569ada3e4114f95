"""keeper.py: who ends containers when the front is gone."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from tidegate.holds.container.keeper import Keeper

if TYPE_CHECKING:
    from pathlib import Path


def test_it_finishes_when_it_is_told(tmp_path: Path) -> None:
    """`end` waits until everything is removed; a second one does nothing (HLD-8)."""
    mark = tmp_path / "mark"
    keeper = Keeper(lambda: mark.write_text("done") and None)
    assert not mark.exists()
    keeper.end()
    keeper.end()
    assert mark.read_text() == "done"


def test_it_finishes_when_the_front_is_killed(tmp_path: Path) -> None:
    """Kill -9 of the front: the kernel closes the pipe, and what belongs to the task is removed (HLD-7)."""
    mark = tmp_path / "mark"
    front = os.fork()
    if front == 0:
        try:
            Keeper(lambda: mark.write_text("done") and None)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(front, 0)
    for _ in range(2400):
        if mark.exists():
            return
        time.sleep(0.05)
    raise AssertionError("nobody finished")
