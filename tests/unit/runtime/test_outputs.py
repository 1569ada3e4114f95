"""tidegate.runtime.outputs."""

from __future__ import annotations

import os
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


def test_a_folder_that_was_swapped_gets_nothing(tmp_path: Path) -> None:
    """HLD-15: the folder is the one that was there before the task ran, whatever bears its name afterwards."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    file = OutputFile(str(out / "status"), "--status-file")
    out.rename(tmp_path / "moved")
    out.symlink_to(elsewhere)
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
