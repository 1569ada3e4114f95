"""tidegate.journal.readback."""

from __future__ import annotations

from pathlib import Path

from tests.unit.journal.events import event, refused
from tidegate.journal.line import line_of, lost_line
from tidegate.journal.readback import lines_of, rows_of
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
