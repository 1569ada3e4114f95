"""tidegate.journal.segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.journal.actions_log import Written
from tests.unit.journal.not_files import put
from tidegate.journal.files import NoFileError
from tidegate.journal.segments import first_of, newest, older_segments, read, segment_name, segments


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("actions.0000000001.jsonl", 1),
        ("actions.0000210344.jsonl", 210344),
        ("actions.12345678901.jsonl", 12345678901),
        ("actions.1.jsonl", 0),
        ("actions.jsonl", 0),
        ("actions.torn", 0),
        ("actions.00000000x1.jsonl", 0),
        ("actions.0000000000.jsonl", 0),
        ("other.0000000001.jsonl", 0),
    ],
)
def test_only_names_that_tidegate_gives_are_segments(name: str, first: int) -> None:
    """JRN-2: a file beside the log is no part of it."""
    assert first_of(name) == first
    assert not first or segment_name(first) == name


def test_no_folder_has_no_lines(tmp_path: Path) -> None:
    """A log that was never written is empty."""
    assert segments(str(tmp_path / "none")) == []
    assert list(read(str(tmp_path / "none"))) == []
    assert list(newest(str(tmp_path / "none"))) == []


@pytest.fixture
def log(tmp_path: Path) -> Written:
    """A log of 60 lines over several files."""
    written = Written(tmp_path)
    written.write(60, max_bytes=3000)
    assert len(older_segments(str(written.folder))) >= 4
    return written


def test_reading_goes_through_all_files_in_order(log: Written) -> None:
    """JRN-4: a follower resumes behind the number it stopped at, across files."""
    folder = str(log.folder)
    assert [line["seq"] for line in read(folder)] == list(range(1, 61))
    for after in (0, 1, 17, 59, 60):
        assert [line["seq"] for line in read(folder, after=after)] == list(range(after + 1, 61))
    assert [line["seq"] for line in read(folder, task="t4")] == [5]
    assert list(read(folder, kinds=("other",))) == []


def test_reading_backwards_is_the_same_turned_round(log: Written) -> None:
    """SRV-3: a page of the log view begins at the newest line, or below one."""
    folder = str(log.folder)
    assert [line["seq"] for line in newest(folder)] == list(range(60, 0, -1))
    for before in (1, 2, 30, 60, 61):
        assert [line["seq"] for line in newest(folder, before=before)] == list(range(before - 1, 0, -1))
    assert [line["seq"] for line in newest(folder, kinds=("net.blocked",), task="t9")] == [10]


def test_blocks_do_not_cut_lines(tmp_path: Path) -> None:
    """Lines of any length are found backwards, wherever a block begins."""
    written = Written(tmp_path)
    opened = written.open()
    for number in range(300):
        opened.append("net.blocked", "t", host="h" * (number * 7 % 2000))
    opened.close()
    assert list(newest(str(written.folder))) == list(read(str(written.folder)))[::-1]


@pytest.mark.parametrize("at", [1, 5, 40, 60])
def test_a_file_that_is_put_aside_while_it_is_read_loses_no_line(log: Written, at: int) -> None:
    """JRN-4: what stood there when a reader began is read to its end, whatever the writer does with the files."""
    folder = str(log.folder)
    for reader, whole in ((read, range(1, 61)), (newest, range(60, 0, -1))):
        there = len(list(read(folder)))
        lines = reader(folder)
        seen = [next(lines)["seq"] for _ in range(at)]
        log.write(40, max_bytes=3000)  # the files begin anew several times
        seen += [line["seq"] for line in lines]
        assert [seq for seq in seen if seq <= 60] == list(whole)
        assert sorted(seen) == list(range(1, len(seen) + 1))
        assert len(seen) >= there


def test_the_oldest_may_go_while_it_is_read(log: Written) -> None:
    """JRN-5: what made room is left out; what is behind it comes."""
    folder = str(log.folder)
    oldest, second = older_segments(folder)[:2]
    lines = newest(folder)
    assert next(lines)["seq"] == 60
    Path(oldest).unlink()
    assert [line["seq"] for line in lines] == list(range(59, first_of(Path(second).name) - 1, -1))


def test_what_is_not_whole_is_left(log: Written) -> None:
    """A line that is being written is not shown yet, nor one that is no JSON."""
    with log.live.open("ab") as file:
        file.write(b'{"no": "number"}\n\xff\n{"seq":61')
    assert [line["seq"] for line in read(str(log.folder), after=58)] == [59, 60]
    assert next(newest(str(log.folder)))["seq"] == 60


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_pipe_in_a_files_place_is_an_error_and_no_wait(tmp_path: Path, kind: str) -> None:
    """JRN-2: `events` and the log's page say so."""
    log = Written(tmp_path)
    log.write(3)
    put(kind, log.live)
    for reading in (read, newest):
        with pytest.raises(NoFileError):
            list(reading(str(log.folder)))
