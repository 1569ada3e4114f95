"""The SQLite store where it differs from what any store does (tests/state has the rest)."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.state.conformance import answer, task
from tidegate.model.errors import NotSavedError
from tidegate.model.question import Answer
from tidegate.state import sqlite
from tidegate.state.sqlite import BLOCK, open_store, read_store

if TYPE_CHECKING:
    from pathlib import Path


def test_reading_makes_nothing(tmp_path: Path) -> None:
    """A `run` alone finds no store and leaves none behind; where there is one it reads it."""
    folder = str(tmp_path / "state")
    assert read_store(folder) is None
    assert not (tmp_path / "state").exists()
    open_store(folder).close()
    found = read_store(folder)
    assert found is not None
    assert found.rules() == ()
    found.close()


def test_old_tasks_go_and_living_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded: of ended tasks the oldest go with their answers; what was remembered stays."""
    monkeypatch.setattr(sqlite, "KEPT_TASKS", 3)
    store = open_store(str(tmp_path / "state"))
    store.create_task(task("living", at=0.0))
    for index in range(6):
        store.create_task(task(f"t{index}", at=float(index)))
        store.save_answer(answer(index + 1, Answer.REMEMBER, name=f"t{index}"))
        store.end_task(f"t{index}", 50.0, "")
    store.create_task(task("last", at=9.0))
    assert [record.id for record in store.tasks()] == ["last", "t5", "t4", "t3", "living"]
    assert store.answers("t2") == ()
    assert len(store.answers("t3")) == 1
    assert len(store.rules()) == 1
    store.close()


def test_numbers_that_are_reserved_wait_for_nobody(tmp_path: Path) -> None:
    """ASK-1: the gate's thread draws them, so another process that writes for long must not hold up every task."""
    store = open_store(str(tmp_path / "state"))
    first = store.next_question_id()
    store.reserve_numbers()
    store.reserve_numbers()
    other = sqlite3.connect(tmp_path / "state" / "tidegate.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    numbers = [first, *(store.next_question_id() for _ in range(2 * BLOCK - 1))]
    assert numbers == sorted(set(numbers))
    with pytest.raises(NotSavedError, match="locked"):
        store.next_question_id()
    other.close()
    assert store.next_question_id() > numbers[-1]
    store.close()
