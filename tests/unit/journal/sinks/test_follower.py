"""tidegate.journal.sinks.follower by itself: pauses, bugs, and disks that are full. The rest is in tests/sinks."""

from __future__ import annotations

import errno
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.sinks.rig import Log, wall
from tidegate.journal.sinks.follower import BYTES, LONGEST_PAUSE, MARK_EVERY, MOST, MOST_MARKS, POLL, Follower
from tidegate.journal.sinks.keeping import Keeper, Kept
from tidegate.journal.sinks.record import Wanted
from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome
from tidegate.journal.sinks.tail import Tail
from tidegate.runtime.state import write_private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidegate.journal.sinks.record import Record


class Told:
    """A sink that does as it is told, and keeps what it was given."""

    def __init__(self) -> None:
        self.answer: Any = Outcome(TAKEN)
        self.got: list[list[int]] = []

    def send(self, batch: Sequence[Record]) -> Outcome:
        self.got.append([record.seq for record in batch])
        if isinstance(self.answer, Exception):
            raise self.answer
        assert isinstance(self.answer, Outcome)
        return self.answer

    def abort(self) -> None:
        return

    def close(self) -> None:
        return


def follower(
    log: Log, sink: Told, folder: Path, *, wanted: Wanted | None = None, write: Any = write_private
) -> Follower:
    """Return one that does a step when it is told to."""
    tail = Tail(log.folder, log.key, Kept().position, head=log.head, wall=wall)
    keeper = Keeper(str(folder), "one", write)
    return Follower("one", sink, tail, keeper, Kept(), wanted=wanted or Wanted(), wall=wall, random=lambda: 1.0)


def test_pauses_double_to_a_bound(tmp_path: Path) -> None:
    """JRN-6: one second, two, four, ... five minutes; the error and since when are said; then it goes on."""
    log, sink = Log(tmp_path / "a"), Told()
    log.blocked(1)
    one = follower(log, sink, tmp_path)
    sink.answer = OSError(errno.ECONNREFUSED, "Connection refused")
    pauses = [one.step() for _ in range(12)]
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == LONGEST_PAUSE
    assert one.state.error == "Connection refused"
    assert one.state.waiting == 1
    assert Keeper(str(tmp_path), "one", write_private).load()[0].error == "Connection refused"
    sink.answer = Outcome(TAKEN)
    assert one.step() == 0.0
    assert (one.state.error, one.state.failing_since, one.state.waiting) == ("", 0.0, 0)
    assert Keeper(str(tmp_path), "one", write_private).load()[0].error == ""
    assert one.step() == POLL
    one._tail.close()


def test_a_receiver_that_asks_for_longer(tmp_path: Path) -> None:
    """JRN-6: its wait counts where it is longer than ours."""
    log, sink = Log(tmp_path / "a"), Told()
    log.blocked(1)
    one = follower(log, sink, tmp_path)
    sink.answer = Outcome(LATER, "it answers 429", 50.0)
    assert one.step() == 50.0
    one._tail.close()


def test_a_bug_in_a_sink_loses_nothing(tmp_path: Path) -> None:
    """JRN-6: it is that sink's error, and tried again."""
    log, sink = Log(tmp_path / "a"), Told()
    log.blocked(1)
    one = follower(log, sink, tmp_path)
    sink.answer = KeyError("x")
    assert one.step() > 0
    assert "a bug of tidegate: KeyError" in one.state.error
    sink.answer = Outcome(TAKEN)
    one.step()
    assert one.state.kept.seq == 1
    one._tail.close()


def test_batches_are_bounded(tmp_path: Path) -> None:
    """JRN-6: in number, and in bytes however large a line is; the position moves with each."""
    log, sink = Log(tmp_path / "a"), Told()
    log.blocked(MOST + 10)
    for _ in range(300):
        log.log.append("task.created", "t", command=["x" * 2000] * 3)
    one = follower(log, sink, tmp_path)
    while one.step() != POLL:
        assert len(one._pending) <= MOST + 1
    assert [number for batch in sink.got for number in batch] == list(range(1, MOST + 311))
    assert len(sink.got[0]) == MOST
    assert len(sink.got) >= 3 + 300 * 6000 // (BYTES * 2)
    one._tail.close()


def test_what_nobody_wants_is_passed_over(tmp_path: Path) -> None:
    """JRN-6: without a message; the position moves and is kept when there is nothing more."""
    log, sink = Log(tmp_path / "a"), Told()
    log.blocked(3)
    log.log.append("task.ended", "t", outcome="")
    one = follower(log, sink, tmp_path, wanted=Wanted(("task.*",)))
    while one.step() != POLL:
        pass
    assert sink.got == [[4]]
    assert Keeper(str(tmp_path), "one", write_private).load()[0].seq == 4
    one._tail.close()


def test_marks_are_few_and_spread(tmp_path: Path) -> None:
    """JRN-6: positions to go back to, a hundred lines apart at least, and no more than sixteen."""
    log, sink = Log(tmp_path / "a"), Told()
    one = follower(log, sink, tmp_path)
    for _ in range(40):
        log.blocked(60)
        while one.step() != POLL:
            pass
    marks = one.state.kept.marks
    assert len(marks) == MOST_MARKS
    assert all(after[0] - before[0] >= MARK_EVERY for before, after in pairwise(marks))
    assert Keeper(str(tmp_path), "one", write_private).load()[0].marks == marks
    one._tail.close()


def test_a_position_that_cannot_be_kept_is_said(tmp_path: Path) -> None:
    """JRN-6, JRN-5: a full disk stops no sink; it goes on, and keeps its position once it can."""
    log, sink = Log(tmp_path / "a"), Told()
    full = [True]

    def write(path: str, content: bytes) -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_private(path, content)

    log.blocked(2)
    one = follower(log, sink, tmp_path, write=write)
    one.step()
    assert "No space left" in one.state.error
    assert sink.got == [[1, 2]]
    full[0] = False
    one.step()
    assert one.state.error == ""
    assert Keeper(str(tmp_path), "one", write_private).load()[0].seq == 2
    one._tail.close()


def test_records_that_a_receiver_rejected_without_naming_them(tmp_path: Path) -> None:
    """JRN-6: are counted and said in the file beside, and not sent again (OTLP's partial success)."""
    log, sink = Log(tmp_path / "a"), Told()
    log.blocked(4)
    one = follower(log, sink, tmp_path)
    sink.answer = Outcome(TAKEN, "it rejected 2 of them", lost=2)
    one.step()
    assert (one.state.kept.sent, one.state.kept.aside, one.state.kept.seq) == (2, 2, 4)
    assert "it rejected 2 of them" in (tmp_path / "one.aside").read_text()
    one._tail.close()
