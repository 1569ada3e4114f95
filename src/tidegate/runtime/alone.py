"""What a run without a server adds to the action log, which joins all tasks of a user (JRN-2 to JRN-4).

Rules of the file:

* Nothing of the log is loaded before there is something to say: a refusal, a question, a command without a gate. A run
  that has none is in its own journal alone; writing two lines about it would cost each start 15 ms.
* Lines wait for the next tick or the end (refusals are folded: few come in a second), but for answers, which are on
  the disk before anybody passes.
* A log that cannot be written is said once, and stops no run; a run that asks does not start without one.
"""

from __future__ import annotations

from tidegate.journal import task_lines
from tidegate.model.errors import StartError
from tidegate.model.verdict import How
from tidegate.runtime.audit import open_log
from tidegate.runtime.state import log_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tidegate.gate.task import GateTask
    from tidegate.journal.actions import ActionLog
    from tidegate.journal.refusals import Line, RefusalLines
    from tidegate.model.event import Event
    from tidegate.runtime.served import Served

BY = "the command line"


class AloneBook:
    """See the head of the file. `order` is what the gate was told; `clock` gives Unix time, `warn` takes a line.

    Everything on one thread.
    """

    def __init__(self, order: Mapping[str, Any], *, clock: Callable[[], float], warn: Callable[[str], None]) -> None:
        self._order = order
        self._task: str = order["task"]
        self._clock = clock
        self._warn = warn
        self._waiting: list[Line] = []
        self._refusals: RefusalLines | None = None
        self._log: ActionLog | None = None
        self._connections = 0
        self._without = False
        self._issue: str = order.get("issue", "")

    @property
    def folder(self) -> str:
        """Return the folder of the log."""
        return log_folder(self._order["state"])

    def open(self) -> ActionLog:
        """Open the log, where the task and its command have a line then.

        Raises:
            StartError: when it cannot be used.
        """
        if self._log is not None:
            return self._log
        self._log = open_log(self._order["state"], clock=self._clock, warn=self._warn)
        about = {name: self._order[name] for name in ("folder", "command", "phase", "hold")}
        self._write(
            task_lines.created(name="", by=BY, issue=self._issue, **about),
            *task_lines.exec_started(self._exec, self._order["command"], self._order["hold"]),
        )
        return self._log

    def take(self, event: Event) -> None:
        """Take what the gate recorded: refusals are lines here too."""
        self._connections += event.count
        if event.how is not How.REFUSED:
            return
        if self._refusals is None:
            from tidegate.journal.summary import is_refusal

            if not is_refusal(event.verdict.value, event.how.value, event.reason.word):
                return
            from tidegate.journal.refusals import RefusalLines

            self._refusals = RefusalLines()
        self._waiting += self._refusals.take(event)

    def add(self, kind: str, **fields: Any) -> None:
        """Take a line."""
        self._waiting.append((kind, fields))

    def hear_of(self, task: GateTask) -> None:
        """The task has secrets: that it was given them is a line, and so is the first use of each (INS-5)."""
        self._waiting.append(task_lines.secrets_given(self._exec, self._order["secrets"]))
        vault = task.secrets
        assert vault is not None, "it has secrets"

        def used(name: str, host: str, port: int) -> None:
            self._waiting.append(task_lines.secret_used(self._exec, name, host, port))

        vault.used = used

    def hear_tools(self, served: Served) -> None:
        """Each call of a tool of the task is a line (SRV-6)."""
        if served.tools is not None:
            served.tools.called = lambda tool, how: self._waiting.append(task_lines.tool_called(self._exec, tool, how))

    def tick(self) -> None:
        """Write what waits, and the counts whose time has come. Called about once a second."""
        if self._refusals is not None:
            self._waiting += self._refusals.due(self._clock())
        self._begin_for_its_issue()
        self.flush()

    def close(self) -> None:
        """The task is over: write what waits, and its end where its beginning was written."""
        if self._refusals is not None:
            self._waiting += self._refusals.rest()
        self._begin_for_its_issue()
        self.flush()
        if self._log is not None:
            self._write(task_lines.exec_ended(self._exec, self._connections), task_lines.task_ended("ended"))
            self._log.close()
            self._log = None

    def flush(self) -> None:
        """Write what waits. Never raises."""
        waiting, self._waiting = self._waiting, []
        if waiting and self.begin():
            self._write(*waiting)

    def _begin_for_its_issue(self) -> None:
        if self._issue:
            self.begin()  # there is something to say of it, even where nothing was refused (JRN-6)

    def begin(self) -> bool:
        """Write that the task and its command have begun, where nothing was written yet; False where that cannot be."""
        if not self._without:
            try:
                self.open()
            except StartError as error:
                self._without = True
                self._warn(f"this run is not in the action log: {error}")
        return not self._without

    @property
    def _exec(self) -> str:
        return f"{self._task}-1"

    def _write(self, *lines: Line) -> None:
        assert self._log is not None, "it is open"
        for kind, fields in lines:
            self._log.append(kind, self._task, **fields)
