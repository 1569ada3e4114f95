"""tidegate.journal.tasklog."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.journal.events import AT, event, refused
from tidegate.journal.fold import WINDOW
from tidegate.journal.tasklog import KEPT, TaskLog, open_log
from tidegate.model.errors import StartError
from tidegate.model.event import Event


class Disk:
    """A log in a folder, with what it warned of and a clock that stands where it is put."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.path = folder / "network.jsonl"
        self.warned: list[str] = []
        self.now = AT
        self.log = TaskLog(str(self.path), "t1", clock=lambda: self.now, warn=self.warned.append, **options)

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]


def test_what_is_recorded_is_written_at_the_flush(tmp_path: Path) -> None:
    """JRN-1: every connection is a line, and a turn of the reactor is one write."""
    disk = Disk(tmp_path)
    disk.log.record(event())
    disk.log.record(event(port=80))
    assert disk.path.read_bytes() == b""
    disk.log.flush()
    assert [line["port"] for line in disk.lines()] == [443, 80]
    disk.log.close()


def test_the_file_is_private_and_appended_to(tmp_path: Path) -> None:
    """JRN-5: the record is its owner's only, and a second run under --log adds to it."""
    Disk(tmp_path).log.close()
    disk = Disk(tmp_path)
    assert disk.path.stat().st_mode & 0o777 == 0o600
    disk.log.record(event())
    disk.log.close()
    again = Disk(tmp_path)
    again.log.record(event())
    again.log.close()
    assert len(again.lines()) == 2


@pytest.mark.parametrize("kind", ["symlink", "folder", "missing folder", "pipe nobody reads"])
def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path: Path, kind: str) -> None:
    """HLD-7: exit 78 with one line that names --log; a planted symlink is never written through."""
    path = tmp_path / "network.jsonl"
    victim = tmp_path / "victim"
    if kind == "symlink":
        path.symlink_to(victim)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe nobody reads":
        os.mkfifo(path)
    else:
        path = tmp_path / "no" / "network.jsonl"
    with pytest.raises(StartError, match="cannot be opened") as raised:
        TaskLog(str(path), "t1", clock=lambda: AT, warn=print)
    assert "--log" in raised.value.fix
    assert raised.value.exit_status == 78
    assert not victim.exists()


def test_a_full_disk_loses_lines_says_so_once_and_never_tears_one(tmp_path: Path) -> None:
    """JRN-5, B70: the limit on file size stands for a full disk: the file stays whole lines, the task goes on."""
    disk = Disk(tmp_path)
    disk.log.record(event())
    disk.log.flush()
    size = disk.path.stat().st_size
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, old[1]))
        for _ in range(3):
            disk.log.record(event())
            disk.log.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert disk.path.stat().st_size == size
    assert len(disk.warned) == 1
    assert "cannot be written" in disk.warned[0]
    disk.log.record(event(port=80))
    disk.log.close()
    assert [(line["type"], line.get("count")) for line in disk.lines()] == [
        ("net.connection", None),
        ("journal.lost", 3),
        ("net.connection", None),
    ]


def test_a_descriptor_that_died_is_a_warning_not_a_crash(tmp_path: Path) -> None:
    """B70: an I/O error of any kind is told once and the gate goes on."""
    disk = Disk(tmp_path)
    os.close(disk.log._fd)
    disk.log._fd = os.open("/dev/full", os.O_WRONLY)
    disk.log.record(event())
    disk.log.flush()
    disk.log.record(event())
    disk.log.close()
    assert len(disk.warned) == 1


def test_a_large_log_is_rotated_and_bounded(tmp_path: Path) -> None:
    """JRN-5: rotation and a size bound."""
    disk = Disk(tmp_path, max_bytes=2000)
    for number in range(100):
        disk.log.record(event(port=number + 1))
        disk.log.flush()
    disk.log.close()
    names = sorted(os.listdir(tmp_path))
    assert names == ["network.jsonl"] + [f"network.jsonl.{number}" for number in range(1, KEPT + 1)]
    assert all((tmp_path / name).stat().st_size <= 2000 for name in names)
    assert disk.lines()[-1]["port"] == 100


def test_folded_refusals_are_written_by_the_clock_and_at_the_end(tmp_path: Path) -> None:
    """JRN-3: counts reach the file when their window ends, or when the task does."""
    disk = Disk(tmp_path)
    for _ in range(50):
        disk.log.record(refused())
    disk.now = AT + WINDOW + 1
    disk.log.tick()
    assert sum(int(str(line.get("count", 1))) for line in disk.lines()) == 50
    for _ in range(30):
        disk.log.record(refused(at=disk.now))
    disk.log.close()
    assert sum(int(str(line.get("count", 1))) for line in disk.lines()) == 80


def test_a_log_with_another_name_stops_the_start(tmp_path: Path) -> None:
    """JRN-1, HLD-15: a hard link made by an earlier task would let this one write its own record."""
    path = tmp_path / "network.jsonl"
    os.close(open_log(str(path)))
    os.link(path, tmp_path / "other")
    with pytest.raises(StartError, match="hard link"):
        open_log(str(path))
    os.unlink(tmp_path / "other")
    os.close(open_log(str(path)))


def test_a_torn_line_is_undone_without_touching_what_another_run_wrote(tmp_path: Path) -> None:
    """JRN-5: two runs that name one --log; a line that did not fit is cut off, the other run's lines stay."""
    disk = Disk(tmp_path)
    disk.log.record(event())
    disk.log.flush()
    other = TaskLog(str(disk.path), "t2", clock=lambda: AT, warn=disk.warned.append)
    for _ in range(20):
        other.record(event(task="t2"))
    other.flush()
    whole = disk.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, hard))
    try:
        disk.log.record(event(port=80))
        disk.log.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert disk.path.read_bytes() == whole
    disk.log.close()
    other.close()


def test_others_hear_of_each_line(tmp_path: Path) -> None:
    """JRN-3: who follows the log hears what is written: a burst folded, with its count."""
    heard: list[Event] = []
    disk = Disk(tmp_path, also=heard.append)
    for _ in range(20):
        disk.log.record(refused())
    disk.log.record(event())
    disk.log.close()
    assert [one.count for one in heard] == [line.get("count", 1) for line in disk.lines()]
    assert sum(one.count for one in heard) == 21
    assert len(heard) < 21
