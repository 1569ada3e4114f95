"""What counts as left of a user: processes, files, IPC, jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.uid_remains import FOLDERS, remains

if TYPE_CHECKING:
    from pathlib import Path

UID = os.getuid() or 30001


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine without anything of ours."""
    (tmp_path / "proc/77").mkdir(parents=True)
    (tmp_path / "proc/77/status").write_text("Name:\tx\nUid:\t5\t5\t5\t5\n")
    (tmp_path / "proc/sysvipc").mkdir()
    (tmp_path / "proc/sysvipc/shm").write_text(
        "       key      shmid perms   uid   gid  cuid  cgid\n  0  1  600  5  5  5  5\n"
    )
    return tmp_path


def test_nothing_is_left_of_who_was_never_there(root: Path) -> None:
    """The neighbour of the rest (HLD-3)."""
    assert remains(30001, str(root)) == ""


def test_a_process_is_found_by_any_of_its_users(root: Path) -> None:
    """Real, effective, saved or file system uid (HLD-3)."""
    (root / "proc/78").mkdir()
    (root / "proc/78/status").write_text("Uid:\t5\t5\t30001\t5\n")
    assert remains(30001, str(root)) == "process 78"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_in_a_folder_of_everybodys_is_found(root: Path, folder: str) -> None:
    """Also one folder down (HLD-3)."""
    path = root / folder.lstrip("/") / "deep"
    path.mkdir(parents=True)
    (path / "file").write_text("")
    os.chown(path / "file", 30001, 30001)
    assert remains(30001, str(root)).endswith("deep/file")


def test_shared_memory_and_jobs_are_found(root: Path) -> None:
    """System V IPC by owner or creator; a crontab by the uid's name (HLD-3)."""
    assert remains(5, str(root)) == "process 77"
    (root / "proc/77/status").write_text("Uid:\t6\t6\t6\t6\n")
    assert "shm" in remains(5, str(root))
    jobs = root / "var/spool/cron/crontabs"
    jobs.mkdir(parents=True)
    (jobs / "30009").write_text("* * * * * true\n")
    assert remains(30009, str(root)).endswith("30009")
