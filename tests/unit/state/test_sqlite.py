"""The SQLite store where it differs from what any store does (tests/state has the rest)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.state.conformance import answer, task
from tidegate.model.question import Answer
from tidegate.state import sqlite
from tidegate.state.sqlite import open_store, read_store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
