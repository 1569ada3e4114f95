"""tidegate.journal.file_lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.product import REPOSITORY
from tidegate.journal.file_lock import FileLock

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys, time
sys.path.insert(0, sys.argv[2])
from tidegate.journal.file_lock import FileLock
FileLock(sys.argv[1]).take(0)
print("held", flush=True)
time.sleep(60)
"""


def test_one_holds_it_at_a_time_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    """JRN-2: another process is waited for no longer than asked; when it is killed the next one has it."""
    path = str(tmp_path / "lock")
    argv = [sys.executable, "-I", "-c", HOLD, path, str(REPOSITORY / "src")]
    lock = FileLock(path)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for patience in (0, 0.05):
            with pytest.raises(OSError, match="busy"):
                lock.take(patience)
        os.kill(other.pid, signal.SIGKILL)
        lock.take(30)
    lock.give()
    lock.take(0)
    lock.close()
    lock.close()
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """HLD-7: the lock is a file of its folder, or there is none."""
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        FileLock(str(tmp_path / "lock"))
    assert not (tmp_path / "victim").exists()
