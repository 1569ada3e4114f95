"""What a gate writes down of a command: its task's log, and the counts for the lines after it (JRN-1).

A self-test goes through the same gate before the command starts. What it did is not the task's record.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.journal.tasklog import TaskLog
    from tidegate.model.event import Event
    from tidegate.runtime.alone import AloneBook
    from tidegate.runtime.open_table import OpenTable


class Books:
    """The Recorder of one task: its log, and the counts for the lines after the command.

    What began before the task did is the self-test's and is not the task's record. It is held back until the front
    has said when the task began, so that nothing of the task is ever taken for it.
    """

    def __init__(self, log: TaskLog, alone: AloneBook | None = None) -> None:
        from tidegate.journal.summary import Summary

        self._log = log
        self._alone = alone
        self._early: list[Event] | None = []
        self.summary = Summary()

    def record(self, event: Event) -> None:
        """Take one event into both."""
        if self._early is not None:
            self._early.append(event)
        else:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take an event that is the task's own, not the self-test's."""
        self._log.record(event)
        self.summary.add(event)
        if self._alone is not None:
            self._alone.take(event)

    def begin(self, at: float) -> None:
        """Drop what began before `at`, and take the rest."""
        early, self._early = self._early or [], None
        for event in early:
            if event.at >= at:
                self.record(event)

    def pause(self) -> None:
        """Hold back what comes from now on, until the next `begin`: another self-test."""
        self._early = []

    def flush(self) -> None:
        """Write what was recorded."""
        self._log.flush()

    def close(self) -> None:
        """Write what is folded and close the log."""
        self._log.close()


class LoneBooks(Books):
    """Those of a gate in a process of its own, which may be killed: `table` has what is open by then."""

    def __init__(self, log: TaskLog, alone: AloneBook, table: OpenTable) -> None:
        super().__init__(log, alone)
        self._table = table

    def record(self, event: Event) -> None:
        """Take one event, and note that what was open has ended."""
        if event.seen:
            self._table.ended(event.seen)
            event = event.replace(seen=0)  # one that is held back comes here again
        super().record(event)

    def flush(self) -> None:
        """Write what was recorded; only then it is no more what is open."""
        super().flush()
        self._table.flushed()
