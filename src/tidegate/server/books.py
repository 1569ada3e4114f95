"""What is written down of a task in the server: its journal, its refusals in the action log, its counts.

Everything here runs on the gate's thread. Books that took something lately are looked at once a second (`tick`);
those of a quiet task cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.journal.fold import WINDOW
from tidegate.journal.reached import Reached
from tidegate.journal.refusals import RefusalLines
from tidegate.journal.summary import is_refusal
from tidegate.runtime.books import Books

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.journal.refusals import Line
    from tidegate.journal.tasklog import TaskLog
    from tidegate.model.event import Event

_QUIET = 2 * WINDOW  # seconds without an event after which nothing folded can be left


class TaskBooks:
    """The books of one task. `act` takes a type and fields for the action log."""

    def __init__(self, log: TaskLog, busy: set[TaskBooks], act: Callable[[Line], None]) -> None:
        self.log = log
        self.connections = 0
        self.refused = 0
        self._busy = busy
        self._act = act
        self.reached = Reached()
        self._refusals = RefusalLines()
        self._last = 0.0

    def record(self, event: Event) -> None:
        """Take one event of one of the task's commands."""
        self.log.record(event)
        self.connections += event.count
        self.reached.add(event)
        if is_refusal(event.verdict.value, event.how.value, event.reason.word):
            self.refused += event.count
            self._write(self._refusals.take(event))
        self._last = event.at + event.duration
        self._busy.add(self)

    def tick(self, now: float) -> None:
        """Write the counts whose time has come at `now` (Unix seconds)."""
        self.log.tick()
        self._write(self._refusals.due(now))
        if now - self._last > _QUIET:
            self._busy.discard(self)

    def close(self) -> None:
        """Write what is folded and close the journal."""
        self._busy.discard(self)
        self._write(self._refusals.rest())
        self.log.close()

    def _write(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._act(line)


class ExecBooks(Books):
    """The Recorder of one command: into the task's books, and a summary of its own."""

    def __init__(self, task: TaskBooks) -> None:
        super().__init__(task.log)
        self._task = task

    def take(self, event: Event) -> None:
        """Take an event that is the command's own, not the self-test's."""
        self._task.record(event)
        self.summary.add(event)
