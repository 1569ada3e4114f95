"""Where an answer is kept: in the store and in the action log, or in neither (ASK-2, JRN-5).

Rules of the file:

* The store first, then the action log, both on the disk, then a mark in the store that both have it. Only after that
  is anybody let through, and only then is the person told.
* What the log cannot take is taken back from the store. A server that was killed between the two left an answer
  without a mark: the next one keeps it where the log has it, and takes it back where the log does not. Nobody was told
  of that one, and nobody passed on it.
* A server and runs that ask alone have one store and one log: each holds a lock while it keeps an answer, so that no
  other one takes it for half saved.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tidegate.journal.file_lock import FileLock
from tidegate.journal.segments import newest
from tidegate.model.errors import TidegateError
from tidegate.model.host import bracketed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidegate.journal.actions import ActionLog
    from tidegate.model.question import AnswerRecord
    from tidegate.state.store import RuleRecord, Store

ANSWERED, REMEMBERED, STARTED = "question.answered", "rule.remembered", "server.started"
_LOCK_NAME = "answers.lock"
_PATIENCE = 5.0  # seconds for which another process may be saving one


class AnswerBook:
    """See the head of the file. `folder` is that of the action log; `warn` gets lines for whoever runs the server."""

    def __init__(self, store: Store, log: ActionLog, folder: str, *, warn: Callable[[str], None]) -> None:
        self._store = store
        self._log = log
        self._folder = folder
        self._warn = warn

    def save(self, record: AnswerRecord) -> RuleRecord | None:
        """Keep an answer; returns the rule of one that is remembered. In whatever thread answers.

        Raises:
            NotSavedError, OSError: when it is not on the disk; then it does not count.
        """
        with self._alone():
            return self._saved(record)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = FileLock(os.path.join(self._folder, _LOCK_NAME))
        try:
            lock.take(_PATIENCE)
            yield
        finally:
            lock.close()

    def _saved(self, record: AnswerRecord) -> RuleRecord | None:
        where: dict[str, Any] = {"host": f"{bracketed(record.host)}:{record.port}", "by": record.by}
        rule = self._store.save_answer(record)
        try:
            self._log.append(
                ANSWERED, record.task, durable=True, question=record.question, answer=record.answer.value, **where
            )
        except BaseException:
            self._take_back(record.question)
            raise
        if rule is not None:
            self._log.append(REMEMBERED, record.task, rule=rule.id, folder=rule.folder.path, **where)
        with suppress(TidegateError):  # both have it; the next start sees that in the log
            self._store.note_answer(record.question)
        return rule

    def _take_back(self, question: int) -> None:
        try:
            self._store.take_back(question)
        except TidegateError as error:
            self._warn(f"the answer to question {question} does not count, and goes at the next start: {error.what}")

    def put_right(self) -> None:
        """Settle what one that was killed left half saved. Before the first task.

        Raises:
            NotSavedError, OSError: when store or log cannot be read or written.
        """
        if not self._store.not_noted():
            return
        with self._alone():
            self._settle(set(self._store.not_noted()))

    def _settle(self, left: set[int]) -> None:
        for question in left & self._logged(left):
            self._store.note_answer(question)
            left.discard(question)
        for question in sorted(left):
            self._store.take_back(question)
            self._log.append("question.taken_back", question=question)

    def _logged(self, wanted: set[int]) -> set[int]:
        # Each start settles what the life before it left: older lines need not be read.
        found: set[int] = set()
        lives = 0
        for line in newest(self._folder, kinds=(ANSWERED, STARTED)):
            lives += line["type"] == STARTED
            if line["type"] == ANSWERED:
                found.add(line.get("question", 0))
            if lives == 2 or wanted <= found:  # this server's own start, and that of the one before
                break
        return found
