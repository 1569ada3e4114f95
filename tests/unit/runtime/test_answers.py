"""tidegate.runtime.answers: an answer is in the store and in the action log, or in neither."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from tests.state.conformance import answer, task
from tidegate.journal.actions import ActionLog
from tidegate.journal.segments import read
from tidegate.model.question import Answer
from tidegate.runtime.answers import ANSWERED, REMEMBERED, STARTED, AnswerBook
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.state.sqlite import SqliteStore


class _FullLog(ActionLog):
    """A log whose disk takes nothing that is to be durable."""

    def append(self, kind: str, task: str = "", *, durable: bool = False, **fields: Any) -> int:
        if durable:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().append(kind, task, **fields)


def _open(folder: Path, log: type[ActionLog] = ActionLog) -> tuple[SqliteStore, ActionLog, AnswerBook]:
    (folder / "keys").mkdir(mode=0o700, exist_ok=True)
    store = open_store(str(folder / "state"))
    actions = log(str(folder / "log"), str(folder / "keys"), clock=lambda: 1000.0, warn=print)
    actions.append(STARTED)
    return store, actions, AnswerBook(store, actions, str(folder / "log"), warn=print)


def _given(folder: Path) -> list[tuple[str, int]]:
    kinds = (ANSWERED, REMEMBERED, "question.taken_back")
    return [(line["type"], line.get("question", 0)) for line in read(str(folder / "log"), kinds=kinds)]


def test_both_have_it(tmp_path: Path) -> None:
    """ASK-2, JRN-2: store, line and mark; a remembered host has a line of its own."""
    store, log, book = _open(tmp_path)
    store.create_task(task("t1"))
    assert book.save(answer(1, Answer.DENY)) is None
    rule = book.save(answer(2, Answer.REMEMBER, "a.test"))
    assert rule is not None
    assert [record.question for record in store.answers("t1")] == [1, 2]
    assert store.not_noted() == ()
    assert _given(tmp_path) == [(ANSWERED, 1), (ANSWERED, 2), (REMEMBERED, 0)]
    log.close()
    store.close()


def test_what_the_log_cannot_take_is_not_in_the_store_either(tmp_path: Path) -> None:
    """JRN-5: the answer is refused, and no rule of it passes anybody afterwards."""
    store, log, book = _open(tmp_path, _FullLog)
    store.create_task(task("t1"))
    with pytest.raises(OSError, match="No space"):
        book.save(answer(1, Answer.REMEMBER, "a.test"))
    assert store.answers("t1") == ()
    assert store.rules() == ()
    assert store.grants("t1") == ()
    assert _given(tmp_path) == []
    log.close()
    store.close()


def test_the_next_start_settles_what_was_half_saved(tmp_path: Path) -> None:
    """JRN-5, HLD-8: kept where the log has it, taken back and said so where it does not; once only."""
    store, log, _book = _open(tmp_path)
    store.create_task(task("t1"))
    for number in (1, 2):  # as a server that was killed leaves them: before the mark, and before the line
        store.save_answer(answer(number, Answer.REMEMBER, f"n{number}.test"))
    log.append(ANSWERED, "t1", question=1, answer="remember")
    log.close()
    store.close()
    for _ in range(2):
        store, log, book = _open(tmp_path)
        book.put_right()
        assert [record.question for record in store.answers("t1")] == [1]
        assert [rule.host for rule in store.rules()] == ["n1.test"]
        assert store.not_noted() == ()
        assert _given(tmp_path) == [(ANSWERED, 1), ("question.taken_back", 2)]
        log.close()
        store.close()
