"""tidegate.journal.sinks.tail on real logs, with what can happen to them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sinks.rig import Log, wall
from tidegate.journal.files import open_regular
from tidegate.journal.sinks import tail as module
from tidegate.journal.sinks.record import Position
from tidegate.journal.sinks.tail import BLOCK, Tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from tidegate.journal.sinks.record import Record


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Give a log without lines."""
    made = Log(tmp_path / "a")
    yield made
    made.log.close()


def tail(log: Log, position: Position | None = None) -> Tail:
    """Return one that begins there."""
    return Tail(log.folder, log.key, position or Position(), head=log.head, wall=wall)


def all_of(one: Tail) -> list[Record]:
    """Read until there is nothing."""
    found: list[Record] = []
    while more := one.read(3, 1 << 20):
        found += more
    return found


def seqs(found: list[Record]) -> list[int]:
    """Return their numbers."""
    return [record.seq for record in found]


def live(log: Log) -> Path:
    """Return the file that is written to."""
    return Path(log.folder) / "actions.jsonl"


def test_it_goes_on_behind_a_position(log: Log) -> None:
    """JRN-6: from the beginning, and from any line with its hash."""
    log.blocked(5)
    one = tail(log)
    first = one.read(2, 1 << 20)
    assert seqs(first) == [1, 2]
    assert seqs(all_of(one)) == [3, 4, 5]
    one.close()
    again = tail(log, Position(first[1].seq, first[1].hash))
    assert seqs(all_of(again)) == [3, 4, 5]
    again.close()


def test_a_torn_last_line_is_left_until_it_is_whole_or_gone(log: Log) -> None:
    """JRN-6, JRN-2: half a line is no line; what the writer puts behind it, once it is set aside, arrives."""
    log.blocked(2)
    one = tail(log)
    assert seqs(all_of(one)) == [1, 2]
    with live(log).open("ab") as file:
        file.write(b'{"seq":3,"at":"20')
    assert all_of(one) == []
    log.log.append("net.blocked", "t")  # it sets the torn line aside, says so and goes on
    assert [record.kind for record in all_of(one)] == ["journal.torn", "net.blocked"]
    one.close()


def test_a_forged_line_is_not_passed_on(log: Log) -> None:
    """JRN-6: a line that nobody sealed, one that was changed, a block of rubbish: a gap at most, never a record."""
    log.blocked(3)
    lines = live(log).read_bytes().splitlines(keepends=True)
    forged = b'{"seq":99,"at":"x","type":"net.blocked","task":"","prev":"","seal":"' + b"0" * 32 + b'"}\n'
    rubbish = b"x" * (2 * BLOCK) + b"\n"
    live(log).write_bytes(lines[0] + forged + lines[1].replace(b"h1", b"hX") + rubbish + b"[1]\n\n" + lines[2])
    one = tail(log)
    found = all_of(one)
    assert [(record.kind, record.seq) for record in found] == [("net.blocked", 1), ("sink.gap", 2), ("net.blocked", 3)]
    one.close()


def test_a_log_that_was_begun_anew_is_read_from_its_beginning(log: Log, tmp_path: Path) -> None:
    """JRN-6: both folders were moved away: the new log's lines all arrive, behind a record that says so."""
    log.blocked(5)
    one = tail(log)
    last = all_of(one)[-1]
    log.log.close()
    shutil.rmtree(log.folder)
    shutil.rmtree(log.keys)
    new = Log(tmp_path / "a")
    new.blocked(2)
    again = tail(new, Position(last.seq, last.hash))
    assert all_of(again) == []
    assert [record.kind for record in again.look_for_another()] == ["sink.log-anew"]
    assert seqs(all_of(again)) == [1, 2]
    assert again.look_for_another() == []
    again.close()
    one.close()
    new.log.close()


def test_a_log_begun_anew_that_is_longer_by_now(log: Log, tmp_path: Path) -> None:
    """JRN-6: the line at the position is another one: everything of the new log arrives."""
    log.blocked(2)
    position = Position(2, "0" * 64)
    log.blocked(2)
    one = tail(log, position)
    found = all_of(one)
    assert [record.kind for record in found][:1] == ["sink.log-anew"]
    assert seqs(found[1:]) == [1, 2, 3, 4]
    one.close()
    assert tmp_path


def test_a_line_whose_head_was_not_written_is_no_other_log(log: Log) -> None:
    """JRN-6, JRN-2: a writer was killed between a line and its head: the line is there, and nothing is repeated."""
    log.blocked(3)
    with open(f"{log.keys}/actions.head", "rb") as file:
        before = file.read()
    log.blocked(1)
    with open(f"{log.keys}/actions.head", "r+b") as file:
        file.write(before)
    one = tail(log)
    assert seqs(all_of(one)) == [1, 2, 3, 4]
    assert log.head() == 3
    assert one.look_for_another() == []
    one.close()


def test_an_end_that_a_crash_took_is_read_on_behind_a_mark(log: Log) -> None:
    """JRN-6: the machine lost the newest lines and heads: what comes in their place arrives, and little is repeated."""
    log.blocked(6)
    with open(f"{log.keys}/actions.head", "rb") as file:
        head = file.read()
    kept = live(log).read_bytes()
    log.blocked(4)
    one = tail(log)
    found = all_of(one)
    marks = tuple((record.seq, record.hash) for record in found if record.seq in (2, 5, 8))
    log.log.close()
    live(log).write_bytes(kept)
    with open(f"{log.keys}/actions.head", "r+b") as file:
        file.write(head)
    (said,) = one.look_for_another(marks)
    assert (said.kind, said.seq, said.fields["before"]) == ("sink.log-anew", 5, 10)
    assert seqs(all_of(one)) == [6]
    one.close()
    behind = tail(log, Position(5, marks[1][1]))
    log.log = log.open()
    log.blocked(6)
    assert seqs(all_of(behind)) == list(range(6, 13))
    behind.close()
    again = tail(log, Position(found[-1].seq, found[-1].hash))
    more = again.read(100, 1 << 20, marks)
    assert (more[0].kind, more[0].seq) == ("sink.log-anew", 5)
    assert seqs(more[1:]) == list(range(6, 13))
    again.close()


def test_a_log_that_was_emptied_goes_on(log: Log) -> None:
    """JRN-6: somebody emptied the file: what the writer says of it, and what follows, arrives behind a gap or none."""
    log.blocked(4)
    one = tail(log)
    assert seqs(all_of(one)) == [1, 2, 3, 4]
    os.truncate(live(log), 0)
    assert all_of(one) == []
    log.blocked(1)
    assert [record.kind for record in all_of(one)] == ["journal.cut", "net.blocked"]
    one.close()


def test_rotation_behind_an_open_file(tmp_path: Path) -> None:
    """JRN-6: many new files since the last look; those that were dropped are a gap, the one held open is not."""
    log = Log(tmp_path / "a", max_bytes=1000, kept=3)
    log.blocked(2)
    one = tail(log)
    assert seqs(all_of(one)) == [1, 2]
    log.blocked(60)
    found = all_of(one)
    gaps = [record for record in found if record.kind == "sink.gap"]
    assert len(gaps) == 1
    missing = range(gaps[0].first, gaps[0].seq + 1)
    assert seqs([record for record in found if record.kind != "sink.gap"]) == [
        n for n in range(3, 63) if n not in missing
    ]
    one.close()
    log.log.close()


@pytest.mark.parametrize("begun", [False, True])
def test_a_rotation_between_looking_and_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    """JRN-6: the file was rotated away after its name was seen: its lines are read, and are no gap."""
    log = Log(tmp_path / "a", max_bytes=1000)
    log.blocked(2)
    one = tail(log)
    found = all_of(one) if begun else []
    if begun:
        log.blocked(8)  # the one that is open is rotated away
    looks: list[str] = []

    def rotated_meanwhile(path: str) -> BufferedReader:
        if path == str(live(log)) and not looks:
            looks.append(path)
            log.blocked(8)
        return open_regular(path)

    monkeypatch.setattr(module, "open_regular", rotated_meanwhile)
    found += all_of(one)
    found += all_of(one)
    assert looks
    assert seqs(found) == list(range(1, log.log.head.seq + 1))
    one.close()
    log.log.close()


def test_no_log_yet(tmp_path: Path) -> None:
    """JRN-6: a folder that is not there, and a file without a line, are nothing to send."""
    one = Tail(str(tmp_path / "none"), b"k" * 32, Position(), head=lambda: 0, wall=wall)
    assert one.read(10, 1000) == []
    one.close()


def test_a_pipe_in_the_place_of_the_log(tmp_path: Path) -> None:
    """JRN-6: is an error and no wait."""
    os.mkfifo(tmp_path / "actions.jsonl")
    one = Tail(str(tmp_path), b"k" * 32, Position(), head=lambda: 0, wall=wall)
    with pytest.raises(OSError, match="a pipe"):
        one.read(10, 1000)
