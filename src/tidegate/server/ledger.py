"""What the registry has to tell: the store, the action log, the desk and the bus, each in its order.

Rules of the file: what is to outlive the server is in the store before anybody is told of it. The action log takes
what happened after it has happened; a task is never stopped because the log cannot be written (JRN-5).
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from tidegate.journal import task_lines
from tidegate.journal.reached import Reached
from tidegate.journal.summary import FIELDS
from tidegate.model.errors import NotSavedError, UsageError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.snapshot import to_plain
from tidegate.questions.values import AskingTask
from tidegate.runtime.state import home_folder
from tidegate.server.background import in_thread
from tidegate.server.metrics import ConnectionCounts
from tidegate.server.task_secrets import TaskSecrets
from tidegate.state.folders import why_not_remembered
from tidegate.state.settings import LONGEST_WAIT, SHORTEST_WAIT
from tidegate.state.store import TaskEnd, TaskRecord

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping
    from typing import Any

    from tidegate.journal.actions import ActionLog
    from tidegate.journal.refusals import Line
    from tidegate.journal.summary import Row
    from tidegate.model.decision import Decision
    from tidegate.model.event import Event
    from tidegate.questions.shell import Desk
    from tidegate.server.bus import Bus
    from tidegate.server.changes import Remembered
    from tidegate.server.living import Exec, Living
    from tidegate.state.settings import Settings
    from tidegate.state.store import Store

_COUNT = FIELDS.index("count")


class Ledger:
    """See the head of the file. `settings` returns those in force; `clock` gives Unix time in seconds."""

    def __init__(
        self,
        *,
        store: Store,
        log: ActionLog,
        desk: Desk,
        bus: Bus,
        environ: Mapping[str, str],
        settings: Callable[[], Settings],
        clock: Callable[[], float],
        pid: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.store = store
        self.log = log
        self.questions: dict[str, int] = {}  # open ones by task
        self.reached = Reached()  # of all tasks since the server began; on the gate's thread
        self.counts = ConnectionCounts()
        self._desk = desk
        self._bus = bus
        self._ends: dict[str, TaskEnd] = {}  # of tasks whose end is not in the store yet
        self._keeping = threading.Lock()
        self._home = home_folder(environ)
        self._settings = settings
        self._clock = clock
        self._pid = pid
        self._loop = loop

    def on_loop(self, call: Callable[[], object]) -> None:
        """Run something on the loop's thread, soon. From any thread."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            return  # the loop has ended

    def wait_seconds(self, wanted: float | None) -> float:
        """Return how long a question of a task waits.

        Raises:
            UsageError: when it is not from 1 minute to 8 hours (ASK-2).
        """
        if wanted is None:
            return self._settings().wait_seconds
        if not isinstance(wanted, int | float) or not SHORTEST_WAIT <= wanted <= LONGEST_WAIT:
            raise UsageError(
                f"a question cannot wait {ascii(wanted)[:20]} seconds",
                fix="60 to 28800 (1 minute to 8 hours)",
                code="wait",
            )
        return wanted

    # Tasks.

    async def task_created(self, task: Living, *, again: bool) -> tuple[Remembered, ...]:
        """Keep a new task, open its questions, and return what its folder remembers; `again` for one kept before.

        Raises:
            NotSavedError: when it cannot be kept.
        """

        def keep() -> tuple[Remembered, ...]:
            if not again:
                self._keep(task)
            self._desk.open_task(self._asking(task), self.store.grants(task.id))
            return remembered_of(self.store, task)

        remembered = await in_thread(keep)
        if not again:
            self._write(
                task.id,
                task_lines.created(
                    name=task.name, folder=task.folder.path, command=task.command, phase=task.phase.value,
                    hold=task.hold, by=task.by, issue=task.issue, tools=task.tools,
                ),
            )  # fmt: skip
        return remembered

    def wait_changed(self, task: Living) -> None:
        """Questions of a living task that open from now on wait as long as it says; those that are open stay."""
        self._desk.open_task(self._asking(task))

    def _asking(self, task: Living) -> AskingTask:
        return AskingTask(task.id, task.folder, task.wait_seconds, self._why_not_remembered(task))

    def _why_not_remembered(self, task: Living) -> str:
        if task.policy.locked:
            return "the policy is locked, and takes nothing that is remembered"  # a person is promised nothing else
        return why_not_remembered(task.folder, self._home)

    def _keep(self, task: Living) -> None:
        try:
            self.store.create_task(self._record(task))
        except ValueError:
            raise UsageError(f"there is a task {task.id} already", code="task-id") from None

    def _record(self, task: Living) -> TaskRecord:
        return TaskRecord(
            task.id,
            task.folder,
            task.created_at,
            json.dumps(to_plain(task.policy), separators=(",", ":")).encode(),
            task.name,
            task.command,
            task.phase,
            task.wait_seconds,
            task.hold,
            task.network,
            task.by,
            self._pid if task.ends_with_its_command else 0,
            operator=operator_bytes(task),
        )

    async def task_changed(self, task: Living, *, by: str, **what: Any) -> None:
        """The operator changed what a living task may do."""
        await self.keep(task)
        said: dict[str, Any] = {name: value for name, value in what.items() if value != []}
        self.log.append("task.changed", task.id, by=by, **said)

    async def keep(self, task: Living) -> None:
        """Keep what is new of a task, of which nothing is said.

        Raises:
            NotSavedError: when it cannot be kept.
        """
        kept = {"operator": operator_bytes(task), "wait_seconds": task.wait_seconds}
        await in_thread(lambda: self.store.change_task(task.id, **kept))

    def secrets_given(self, exec_: Exec) -> None:
        """A command has its secrets: their names are said."""
        self._write(exec_.task.id, task_lines.secrets_given(exec_.id, exec_.task.secrets.names_of(agent=exec_.agent)))

    def secret_used(self, exec_: Exec, name: str, host: str, port: int) -> None:
        """A command has used a secret at a host for the first time. On the gate's thread."""
        self._write(exec_.task.id, task_lines.secret_used(exec_.id, name, host, port))

    def tool_called(self, exec_: Exec, tool: str, how: Mapping[str, Any]) -> None:
        """A command has called a tool of its. On the gate's thread."""
        self._write(exec_.task.id, task_lines.tool_called(exec_.id, tool, how))

    def settle(self, task: Living, by: str, *verdicts: Verdict) -> None:
        """What the task may reach has changed: end its questions to which these verdicts are the answer now.

        An allow goes on at once, so it is to be on the disk before this (JRN-5).
        """
        policy = task.policy_in_force()

        def judge(decision: Decision) -> Decision:
            now = decide(policy, decision.destination, decision.phase)
            return now if now.verdict in verdicts else decision

        self._desk.settle(task.id, judge, by)

    async def phase_changed(self, task: Living, before: Phase, *, by: str, cut: int) -> None:
        """The task is in another phase."""
        self._desk.phase_changed(task.id, task.phase)
        await in_thread(lambda: self.store.change_task(task.id, phase=task.phase, operator=operator_bytes(task)))
        self.log.append("task.phase", task.id, by=by, before=before.value, phase=task.phase.value, cut=cut)

    async def task_ended(self, task: Living, outcome: str) -> None:
        """The task is over."""
        self._desk.close_task(task.id)
        self.questions.pop(task.id, None)
        at = self._clock()
        shown = task.view()
        self._ends[task.id] = TaskEnd(task.id, at, outcome, shown["connections"], shown["refused"])
        await in_thread(self.keep_ends)
        self._write(task.id, task_lines.task_ended(outcome))
        self.publish("task", shown | {"state": "ended", "ended_at": at, "outcome": outcome})

    def keep_ends(self) -> None:
        """Put into the store which tasks have ended, those too that it could not take before. Never raises.

        A task has ended whether that can be kept or not: its front is answered, and others can end (JRN-5). Those that
        end while others are being kept are kept together, so that the ends of a thousand are a few writes.
        """
        with self._keeping:
            ends = list(self._ends.values())
            if not ends:
                return  # with those before
            try:
                self.store.end_tasks(ends)
            except NotSavedError:
                return  # a full disk, or another process in the way: with the next end, or that of the server
            for end in ends:
                self._ends.pop(end.id, None)

    # Commands and connections.

    def exec_started(self, exec_: Exec) -> None:
        """A command begins."""
        self._write(exec_.task.id, *task_lines.exec_started(exec_.id, exec_.command, exec_.hold))

    def exec_ended(self, exec_: Exec, counted: tuple[list[Row], int]) -> None:
        """A command has ended."""
        rows, more = counted
        connections = sum(int(row[_COUNT]) for row in rows) + more
        self._write(exec_.task.id, task_lines.exec_ended(exec_.id, connections))

    def refused(self, task: Living, line: Line) -> None:
        """Something was refused. On the gate's thread."""
        self._write(task.id, line)

    def _write(self, task: str, *lines: Line) -> None:
        for kind, fields in lines:
            self.log.append(kind, task, **fields)

    def connection(self, event: Event) -> None:
        """A line of a journal was written. On the gate's thread."""
        self.reached.add(event)
        self.counts.add(event)
        self._bus.publish("connection", event)

    def flash(self, kind: str, data: dict[str, Any]) -> None:
        """Tell whoever watches now. From any thread."""
        self._bus.flash(kind, data)

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Tell whoever watches."""
        self._bus.publish(kind, data)


def remembered_of(store: Store, task: Living) -> tuple[Remembered, ...]:
    """Return what the folder of a task remembers."""
    return tuple((rule.host, rule.port, rule.phase) for rule in store.rules(task.folder))


def operator_bytes(task: Living) -> bytes:
    """Return what changed of a task since it was created, and what its commands run in, as its record keeps it."""
    rules = {text: verdict.value for text, verdict in task.operator.items()}
    kept = {"rules": rules, "paused": task.paused, "set_up": task.set_up, "setting_up": task.setting_up is not None}
    more = {
        "container": task.container,
        "secrets": task.secrets.kept() if task.secrets else None,
        "tools": task.tools,
    }
    return json.dumps(kept | {name: value for name, value in more.items() if value}).encode()


def restore(task: Living, record: TaskRecord) -> None:
    """Have a task be as its record keeps it: what `operator_bytes` wrote down.

    Raises:
        ValueError, KeyError, TypeError: when that is no such record.
    """
    kept = json.loads(record.operator)
    task.operator = {text: Verdict(verdict) for text, verdict in kept["rules"].items()}
    task.paused = bool(kept["paused"])
    task.set_up = bool(kept.get("set_up"))
    task.container = kept.get("container")
    task.secrets = TaskSecrets.of_record(kept.get("secrets"))
    task.tools = tuple(map(str, kept.get("tools", ())))
    if kept.get("setting_up"):
        task.phase = Phase.RUNTIME  # the server ended in its midst: it runs again before the next command
