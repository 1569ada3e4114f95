"""tidegate.journal.readback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.journal.events import event, refused
from tidegate.journal.files import NoFileError
from tidegate.journal.line import line_of, lost_line
from tidegate.journal.readback import lines_of, newest_lines, rows_of
from tidegate.journal.summary import Summary


def test_a_log_reads_back_as_the_rows_the_gate_would_have_given(tmp_path: Path) -> None:
    """JRN-1, HLD-7: after the gate was killed the `net:` lines come from the file, and are the same."""
    events = [event(bytes_up=3), refused(fix="--allow b.test:443"), refused(count=9), event(bytes_down=5)]
    summary = Summary()
    for one in events:
        summary.add(one)
    path = tmp_path / "network.jsonl"
    path.write_bytes(b"".join(map(line_of, events)) + lost_line(0.0, "t1", 1, "ENOSPC"))
    rows, more = rows_of(str(path))
    merged = {row[:8]: row[10:] for row in rows if row[10] != 9}
    assert merged[summary.rows()[0][:8]] == (2, 3, 5)
    assert sum(row[10] for row in rows) == sum(row[10] for row in summary.rows()) == 12
    assert more == 0


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    """JRN-2's neighbour: a crash in the middle of a line loses that line only."""
    path = tmp_path / "network.jsonl"
    path.write_bytes(line_of(event()) + line_of(event())[:40])
    rows, _ = rows_of(str(path))
    assert [row[10] for row in rows] == [1]
    assert list(lines_of([b"{}\n", b"[1]\n", b"\xff\n"])) == [{}, None, None]


def test_the_newest_lines_come_in_pages(tmp_path: Path) -> None:
    """SRV-2: pages from the end join without a gap or a line twice, whatever their size, over blocks of the file."""
    path = tmp_path / "network.jsonl"
    assert newest_lines(str(path), 5) == ([], None)
    path.write_text("")
    assert newest_lines(str(path), 5) == ([], None)
    numbers = range(3000)
    path.write_text("".join(f'{{"n": {number}, "pad": "{"x" * (number % 97)}"}}\n' for number in numbers))
    assert path.stat().st_size > 2 * 65536
    for limit in (1, 7, 999, 3000, 5000):
        found: list[int] = []
        before: int | None = None
        while limit > 1 or len(found) < 50:
            lines, before = newest_lines(str(path), limit, before)
            found += [line["n"] for line in lines]
            if before is None:
                break
        assert found == list(reversed(numbers))[: len(found)]
        assert len(found) == (3000 if limit > 1 else 50)


def test_a_page_stays_what_it_is_while_lines_are_added(tmp_path: Path) -> None:
    """SRV-2: what is written meanwhile changes no page that was begun; torn lines and others' are passed over."""
    path = tmp_path / "network.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\nnot json\n{"n": 3}\n{"n": 4')
    lines, before = newest_lines(str(path), 2)
    assert [line["n"] for line in lines] == [3, 2]
    with path.open("a") as file:
        file.write('0}\n{"n": 5}\n')
    assert newest_lines(str(path), 2, before) == ([{"n": 1}], None)
    assert [line["n"] for line in newest_lines(str(path), 2)[0]] == [5, 40]
    path.write_text('{"n": 9}\n')
    assert newest_lines(str(path), 2, 10_000)[0] == [{"n": 9}]


def test_a_log_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """JRN-1: a person may have named a pipe as the log: what went into it cannot be read again."""
    path = tmp_path / "log"
    os.mkfifo(path)
    assert newest_lines(str(path), 10) == ([], None)
    with pytest.raises(NoFileError):
        rows_of(str(path))
