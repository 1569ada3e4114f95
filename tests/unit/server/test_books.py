"""tidegate.server.books."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.journal.events import AT, event, refused
from tidegate.journal.fold import WINDOW
from tidegate.journal.tasklog import TaskLog
from tidegate.server.books import ExecBooks, TaskBooks


class Desk:
    """Books of one task, with a clock that stands where it is put."""

    def __init__(self, folder: Path) -> None:
        self.now = AT
        self.path = folder / "network.jsonl"
        self.acted: list[tuple[str, dict[str, Any]]] = []
        self.busy: set[TaskBooks] = set()
        log = TaskLog(str(self.path), "t1", clock=lambda: self.now, warn=print)
        self.books = TaskBooks(log, self.busy, self.acted.append)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]


def test_two_commands_have_one_journal_and_their_own_summaries(tmp_path: Path) -> None:
    """HLD-5, JRN-1: the task's log has both; each command's lines at its end are its own."""
    desk = Desk(tmp_path)
    one, two = ExecBooks(desk.books), ExecBooks(desk.books)
    for books in (one, two):
        books.begin(0.0)
    one.record(event())
    two.record(refused())
    two.record(refused(host="c.test"))
    one.flush()
    desk.books.close()
    assert len(desk.lines()) == 3
    assert [row[0] for row in one.summary.rows()] == ["a.test"]
    assert [row[0] for row in two.summary.rows()] == ["b.test", "c.test"]
    assert (desk.books.connections, desk.books.refused) == (3, 2)


def test_the_self_test_is_nobodys(tmp_path: Path) -> None:
    """HLD-11: what came before the command began is in no book."""
    desk = Desk(tmp_path)
    books = ExecBooks(desk.books)
    books.record(refused())
    books.begin(AT + 1)
    desk.books.close()
    assert desk.lines() == []
    assert desk.acted == []
    assert desk.books.connections == 0


def test_refusals_reach_the_action_log_folded_and_none_is_lost(tmp_path: Path) -> None:
    """JRN-3, JRN-4: `net.blocked` with counts that add up, `egress.refused` once a host."""
    desk = Desk(tmp_path)
    books = ExecBooks(desk.books)
    books.begin(0.0)
    for _ in range(50):
        books.record(refused())
    books.record(event())
    assert desk.busy == {desk.books}
    desk.now = AT + WINDOW
    desk.books.tick(desk.now)
    kinds = [kind for kind, _ in desk.acted]
    assert kinds.count("egress.refused") == 1
    assert sum(fields.get("count", 1) for kind, fields in desk.acted if kind == "net.blocked") == 50
    assert len(kinds) < 10
    assert sum(line.get("count", 1) for line in desk.lines()) == 51


def test_a_quiet_task_is_looked_at_no_more(tmp_path: Path) -> None:
    """GAT-11: a thousand idle tasks cost nothing each second; one that speaks again is looked at again."""
    desk = Desk(tmp_path)
    books = ExecBooks(desk.books)
    books.begin(0.0)
    books.record(refused())
    desk.books.tick(AT + 2 * WINDOW)
    assert desk.busy == {desk.books}
    desk.books.tick(AT + 2 * WINDOW + 0.1)
    assert desk.busy == set()
    books.record(refused())
    assert desk.busy == {desk.books}
    desk.books.close()
    assert desk.busy == set()
