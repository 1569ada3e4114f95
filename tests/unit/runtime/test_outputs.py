"""tidegate.runtime.outputs."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from tidegate.model.errors import StartError, TidegateError
from tidegate.runtime.outputs import OutputFile


def test_the_file_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """--report and --status-file: one file, complete, no temporary left."""
    file = OutputFile(str(tmp_path / "report.json"), "--report")
    assert os.listdir(tmp_path) == []
    file.write("a" * 100_000)
    assert os.listdir(tmp_path) == ["report.json"]
    assert (tmp_path / "report.json").read_text() == "a" * 100_000


def test_a_link_the_task_planted_is_replaced_not_followed(tmp_path: Path) -> None:
    """HLD-15: what the front writes outside never lands where a task points it."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file = OutputFile(str(tmp_path / "report.json"), "--report")
    (tmp_path / "report.json").symlink_to(victim)
    file.write("{}")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "report.json").is_symlink()


def test_a_folder_that_was_swapped_gets_nothing_and_is_told(tmp_path: Path) -> None:
    """HLD-15: the folder is the one that was there before the task ran; a forged report in its place is not ours."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    file = OutputFile(str(out / "status"), "--status-file")
    out.rename(tmp_path / "moved")
    out.symlink_to(elsewhere)
    with pytest.raises(TidegateError, match="was moved"):
        file.write("x")
    assert os.listdir(elsewhere) == []
    assert (tmp_path / "moved" / "status").read_text() == "x"


@pytest.mark.parametrize("name", ["no/such/folder/file", "folder", "folder/"])
def test_what_cannot_be_written_stops_the_start(tmp_path: Path, name: str) -> None:
    """HLD-16: exit 78 before anything ran, naming the option."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(StartError, match="--report") as raised:
        OutputFile(str(tmp_path / name), "--report")
    assert raised.value.exit_status == 78


def test_a_disk_that_fills_later_is_one_line(tmp_path: Path) -> None:
    """A failure at the end is an error of ours, not a traceback."""
    file = OutputFile(str(tmp_path / "status"), "--status-file")
    os.rmdir(tmp_path)
    with pytest.raises(TidegateError, match="--status-file"):
        file.write("x")


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    """--status-file /dev/fd/N and a named pipe: written to, not replaced; a pipe nobody reads stops the start."""
    read, write = os.pipe()
    file = OutputFile(f"/dev/fd/{write}", "--status-file")
    os.close(write)
    file.write("{}")
    assert os.read(read, 10) == b"{}"
    os.close(read)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(StartError, match="--status-file"):
        OutputFile(str(tmp_path / "fifo"), "--status-file")


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """A disk that fills at the end is one line, and what was there before stays whole."""
    path = tmp_path / "status"
    path.write_text("before")
    file = OutputFile(str(path), "--status-file")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, old[1]))
        with pytest.raises(TidegateError, match="cannot be written"):
            file.write("x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["status"]
