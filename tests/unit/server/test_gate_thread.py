"""tidegate.server.gate_thread."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.unit.journal.events import refused
from tests.unit.server.kit import until
from tidegate.journal.tasklog import TaskLog
from tidegate.server import gate_thread
from tidegate.server.books import ExecBooks, TaskBooks
from tidegate.server.gate_thread import GateThread


def _thread(lost: list[str]) -> GateThread:
    return GateThread(
        asker=None,
        protected_ports=frozenset(),
        fault=lambda error: lost.append(repr(error)),
        lost=lambda: lost.append(""),
    )


def test_work_is_done_there_and_its_result_comes_back() -> None:
    """DESIGN: asyncio and the gate talk by `post`; what raises there raises here."""
    lost: list[str] = []

    async def go() -> None:
        thread = _thread(lost)
        thread.start()
        assert await thread.call(lambda: threading.current_thread().name) == "tidegate-gate"
        with pytest.raises(ZeroDivisionError):
            await thread.call(lambda: 1 // 0)
        thread.stop()

    asyncio.run(go())
    assert lost == []


def test_a_thread_that_ends_unasked_is_told_of() -> None:
    """HLD-7: a server without its gate must not go on."""
    lost: list[str] = []

    async def go() -> None:
        thread = _thread(lost)
        thread.start()
        thread.gate.stop()
        await until(lambda: lost == [""])
        thread.stop()

    asyncio.run(go())


def test_folded_counts_are_written_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-3: once a second the busy books are looked at, on the gate's thread."""
    monkeypatch.setattr(gate_thread, "_TICK", 0.02)

    async def go() -> None:
        thread = _thread([])
        log = TaskLog(str(tmp_path / "log"), "t1", clock=lambda: 1e12, warn=print)
        task = TaskBooks(log, thread.busy, lambda _line: None)
        books = ExecBooks(task)
        books.begin(0.0)
        for _ in range(20):
            books.record(refused())
        thread.start()
        await until(lambda: b'"count":15' in (tmp_path / "log").read_bytes())
        await until(lambda: not thread.busy)
        thread.stop()
        log.close()

    asyncio.run(go())
