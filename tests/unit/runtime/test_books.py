"""tidegate.runtime.books."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.journal.events import AT, event
from tidegate.journal.tasklog import TaskLog
from tidegate.runtime.books import Books

if TYPE_CHECKING:
    from pathlib import Path


class Kept:
    """Books over a log in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "network.jsonl"
        self.books = Books(TaskLog(str(self.path), "t1", clock=lambda: AT, warn=lambda _line: None))

    def ports(self) -> list[int]:
        self.books.flush()
        return [json.loads(line)["port"] for line in self.path.read_bytes().splitlines()]

    def counted(self) -> list[int]:
        return [row[1] for row in self.books.summary.rows()]


def test_only_what_began_with_the_task_or_later_is_its_own(tmp_path: Path) -> None:
    """HLD-11, JRN-1: up to the moment itself it is the self-test's; nothing is written before that moment is known."""
    kept = Kept(tmp_path)
    kept.books.record(event(at=AT - 0.001, port=81))
    kept.books.record(event(at=AT, port=82))
    assert kept.ports() == []
    kept.books.begin(AT)
    kept.books.record(event(at=AT + 1, port=83))
    assert kept.ports() == [82, 83]
    assert kept.counted() == [82, 83]


def test_between_two_phases_it_is_held_back_again(tmp_path: Path) -> None:
    """HLD-11: the self-test of the task's own hold is no more its record than that of the set-up command's."""
    kept = Kept(tmp_path)
    kept.books.begin(AT)
    kept.books.record(event(port=81))
    kept.books.pause()
    kept.books.record(event(at=AT + 1, port=82))
    kept.books.begin(AT + 2)
    kept.books.record(event(at=AT + 3, port=83))
    assert kept.ports() == [81, 83]
    assert kept.counted() == [81, 83]
