"""Which tasks live, and their commands, from beginning to end (HLD-5, HLD-8).

Rules of the file:

* All methods run on the loop's thread; what they do to the gate is awaited, so a caller that has its answer knows that
  it is in force.
* What is to outlive the server is in the store before a task's first connection; everything is told to the bus and
  recorded in the action log.
* A connection costs nothing here: the gate knows its task, and the task its books.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING

from tidegate.holds.hold import WITHOUT_GATE
from tidegate.journal.tasklog import MAX_BYTES, UNBOUNDED, TaskLog
from tidegate.model.errors import StartError, UsageError
from tidegate.model.issue import issue_of
from tidegate.model.verdict import Phase
from tidegate.runtime.state import LOG_NAME, make_task_folder, new_task_id, sweep_tasks
from tidegate.server.background import in_thread
from tidegate.server.books import TaskBooks
from tidegate.server.living import CREATED, RETURNING, RUN, Exec, Living
from tidegate.server.shapes import task_shape_of_record
from tidegate.server.task_secrets import checked
from tidegate.server.task_tools import checked as checked_tools
from tidegate.server.task_tools import need_offered
from tidegate.state.folders import folder_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tidegate.holds.inside import TaskSockets
    from tidegate.journal.summary import Row
    from tidegate.model.publish import Publish
    from tidegate.policy.policy import Policy
    from tidegate.server.gate_thread import GateThread
    from tidegate.server.ledger import Ledger
    from tidegate.state.store import TaskRecord

MOST_TASKS = 10_000
NOTES = ("way.silent", "way.back")
"""What a front may have recorded."""
_ID = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class Register:
    """See the head of the file. `clock` gives Unix time in seconds."""

    def __init__(
        self,
        state: str,
        gate: GateThread,
        ledger: Ledger,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._state = state
        self._gate = gate
        self._ledger = ledger
        self._clock = clock
        self._tasks: dict[str, Living] = {}
        self.tools: tuple[str, ...] = ()  # that tasks can be created with

    # Looking.

    def get(self, id: str) -> Living:  # noqa: A002 - what everybody calls it
        """Return a living task by its id, or the beginning of it where that is one task's, or its name.

        Raises:
            UsageError: when there is none, or more than one.
        """
        task = self._tasks.get(id)
        if task is not None:
            return task
        found = [one for one in self._tasks.values() if id and (one.id.startswith(id) or one.name == id)]
        if len(found) == 1:
            return found[0]
        what = "more than one living task begins with" if found else "there is no living task"
        raise UsageError(f"{what} {ascii(id)[:80]}", fix="tidegate task list", code="no-such-task")

    def find(self, id: str) -> Living | None:  # noqa: A002 - what everybody calls it
        """Return the living task with exactly this id, None where there is none."""
        return self._tasks.get(id)

    def living(self) -> list[Living]:
        """Return the living tasks, oldest first."""
        return list(self._tasks.values())

    def view(self, task: Living) -> dict[str, Any]:
        """Return a task as the API shows it."""
        return task.view(self._ledger.questions.get(task.id, 0))

    async def records(self, *, living: bool | None = None, limit: int = 100, before: str = "") -> list[dict[str, Any]]:
        """Return tasks on record, the newest first: of those older than `before`, only living or only ended ones."""
        found = await in_thread(lambda: self._ledger.store.tasks(living=living, limit=limit, before=before))
        return [self._shown(record) for record in found]

    async def record(self, id: str) -> dict[str, Any]:  # noqa: A002 - what everybody calls it
        """Return one task, living or ended.

        Raises:
            UsageError: when there is none.
        """
        if id not in self._tasks:
            record = await in_thread(self._ledger.store.task, id)
            if record is not None:
                return self._shown(record)
        return self.view(self.get(id))

    def _shown(self, record: TaskRecord) -> dict[str, Any]:
        task = self._tasks.get(record.id)
        return self.view(task) if task is not None else task_shape_of_record(record)

    # Beginning.

    async def create(
        self,
        *,
        folder: str,
        policy: Policy,
        name: str = "",
        phase: Phase = Phase.RUNTIME,
        network: str = "",
        hold: str = "",
        container: dict[str, Any] | None = None,
        wait_seconds: int | None = None,
        secrets: Iterable[str] = (),
        tools: Iterable[str] = (),
        issue: str = "",
        by: str,
    ) -> Living:
        """Make a task that lives until somebody ends it; its commands come with `exec`, in `hold` and `container`.

        Raises:
            UsageError: for a folder, a wait or an issue that is none, or a tool that is not offered.
            StartError: when its record cannot be kept, or a secret is none.
        """
        if not os.path.isabs(folder):
            raise UsageError(f"{ascii(folder)[:200]} is not an absolute path", fix="give one", code="folder")
        task = Living(
            id=new_task_id(time.gmtime(self._clock())[:6], os.urandom(4)),
            kind=CREATED,
            name=name,
            folder=folder_key(folder),
            command=(),
            phase=phase,
            policy=policy,
            created_at=self._clock(),
            hold=hold,
            network=network,
            wait_seconds=self._ledger.wait_seconds(wait_seconds),
            by=by,
        )
        task.container = container
        task.issue = issue_of(issue)
        task.tools = checked_tools(tools, self.tools)
        task.secrets = await in_thread(checked, self._state, secrets, policy)
        await self._adopt(task, self._own_log(task), rotate=True)
        sweep_tasks(self._state)
        return task

    def _own_log(self, task: Living) -> str:
        return os.path.join(make_task_folder(self._state, task.id), LOG_NAME)

    async def begin_run(self, order: dict[str, Any], policy: Policy, *, by: str) -> Living:
        """Take in the task of a `run`, as its front describes it.

        Raises:
            UsageError, StartError: when it cannot be; nothing of it is kept then.
        """
        id = order["task"]  # noqa: A001 - what everybody calls it
        if not id or len(id) > 64 or not set(id) <= _ID:
            raise UsageError(f"{ascii(id)[:80]} is not a task's id", code="task-id")
        task = Living(
            id=id,
            kind=RUN,
            name="",
            folder=folder_key(order["folder"]),
            command=tuple(order["command"]),
            phase=Phase(order["phase"]),
            policy=policy,
            created_at=self._clock(),
            hold=order["hold"],
            network=order["hold"] if order["hold"] in WITHOUT_GATE else "",
            wait_seconds=self._ledger.wait_seconds(order.get("wait_seconds")),
            by=by,
        )
        task.secrets = await in_thread(checked, self._state, order.get("secrets", ()), policy)
        task.secrets.add_keys(order.get("keys", ()))
        task.roots = str(order.get("roots", ""))
        task.issue = issue_of(order.get("issue", ""))
        await self._adopt(task, order["log"], rotate=order["rotate"])
        return task

    async def _adopt(self, task: Living, log: str, *, rotate: bool, again: bool = False) -> None:
        if task.id in self._tasks:
            raise UsageError(f"there is a task {task.id} already", code="task-id")
        if len(self._tasks) >= MOST_TASKS:
            raise StartError(f"{MOST_TASKS} tasks live already", fix="tidegate task end", code="too-many-tasks")
        if log:
            task.books = self._books(task, log, rotate=rotate)
        self._tasks[task.id] = task
        try:
            task.remembered = await self._ledger.task_created(task, again=again)
        except BaseException:
            del self._tasks[task.id]
            if task.books is not None:
                task.books.log.close()
            raise
        self.tell(task)

    def _books(self, task: Living, log: str, *, rotate: bool) -> TaskBooks:
        return TaskBooks(
            TaskLog(
                log,
                task.id,
                clock=self._clock,
                warn=lambda line: self._ledger.on_loop(lambda: _warn(task, line)),  # it comes on the gate's thread
                max_bytes=MAX_BYTES if rotate else UNBOUNDED,
                also=self._ledger.connection,
            ),
            self._gate.busy,
            lambda line: self._ledger.refused(task, line),
        )

    # Commands.

    def begin_exec(
        self, task: Living, *, command: tuple[str, ...], hold: str, ask: str, say: Callable[[list[Any]], None]
    ) -> Exec:
        """Take in one command of a task. Its sockets come with `serve`.

        Raises:
            StartError: when the task is ending, or one of its tools is not offered.
        """
        if task.ending:
            raise StartError(f"the task {task.id} is ending", fix="tidegate task create", code="task-ended")
        if task.setting_up is not None:
            raise StartError(f"the task {task.id} is being set up", fix="try again when that has ended", code="set-up")
        need_offered(task.tools, hold, self.tools)
        task.begun += 1
        exec_ = Exec(
            task,
            id=f"{task.id}-{task.begun}",
            command=command,
            hold=hold,
            ask=ask,
            started_at=self._clock(),
            say=say,
        )
        exec_.tool_called = partial(self._ledger.tool_called, exec_)
        task.execs[exec_.id] = exec_
        self._ledger.exec_started(exec_)
        self.tell(task)
        return exec_

    async def publish(self, exec_: Exec, published: tuple[Publish, ...]) -> None:
        """Take ports of this machine for a command.

        Raises:
            StartError: where one cannot be had.
        """
        await self._gate.call(lambda: exec_.publish(self._gate.gate, published))

    async def serve(self, exec_: Exec, sockets: TaskSockets, own_names: tuple[str, ...]) -> None:
        """Serve the sockets of a command; owns their descriptors.

        Raises:
            OSError, ValueError: when one of them is not what it should be.
        """
        policy = exec_.task.policy_in_force()
        await self._gate.call(lambda: exec_.serve(self._gate.gate, sockets, own_names, policy))
        if exec_.warning:
            exec_.say(["warn", f"note: {exec_.warning}"])

    async def serve_next(self, exec_: Exec, phase: Phase, sockets: TaskSockets, own_names: tuple[str, ...]) -> None:
        """The set-up command has ended: serve the sockets of the next hold, in this phase.

        Raises:
            OSError, ValueError: as `serve`.
        """
        await self._gate.call(lambda: exec_.serve_next(self._gate.gate, sockets, own_names, phase))
        exec_.task.set_up = True
        await self._leave_set_up(exec_.task, phase)

    def set_up_of(self, task: Living, hold: str) -> tuple[str, ...]:
        """Return the set-up command that runs before a command in this hold (POL-7), () where none does.

        Once per created task, before its first command that has a gate; one that failed runs again.
        """
        wanted = task.kind == CREATED and not task.set_up and task.phase is Phase.RUNTIME and hold not in WITHOUT_GATE
        return task.policy.setup if wanted else ()

    async def begin_set_up(self, exec_: Exec) -> None:
        """The set-up command of a created task runs first: no other command may begin meanwhile.

        Raises:
            NotSavedError: when that cannot be kept.
        """
        task = exec_.task
        task.setting_up = exec_
        before, task.phase = task.phase, Phase.INSTALL
        await self._ledger.phase_changed(task, before, by="its set-up", cut=0)
        self.tell(task)

    async def _leave_set_up(self, task: Living, phase: Phase) -> None:
        task.setting_up = None
        before, task.phase = task.phase, phase
        if before is not phase:
            await self._ledger.phase_changed(task, before, by="its set-up", cut=0)
            self.tell(task)

    async def begin(self, exec_: Exec, at: float) -> None:
        """The command begins at `at` (Unix time): what came before was the self-test."""
        books = exec_.books
        if books is not None:
            await self._gate.call(lambda: books.begin(at))

    def note(self, exec_: Exec, event: str) -> None:
        """Record what a front saw on the way to the gate."""
        if event in NOTES:
            self._ledger.log.append(event, exec_.task.id)

    async def end_exec(self, exec_: Exec) -> tuple[list[Row], int]:
        """The command has ended; return its counts. The task of a `run` ends with the one that it was made for."""
        task = exec_.task
        if task.execs.pop(exec_.id, None) is None:
            return [], 0
        counted = await self._gate.call(lambda: exec_.release(self._gate.gate))
        self._ledger.exec_ended(exec_, counted)
        if task.setting_up is exec_:
            await self._leave_set_up(task, Phase.RUNTIME)
        if task.kind == RUN and exec_.agent and not task.leaving:
            await self._bury(task, "ended")
        elif task.id in self._tasks:
            self.tell(task)
        return counted

    # Ending.

    async def end(self, task: Living, *, by: str, why: str = "") -> None:
        """End a task and what runs in it."""
        if task.ending:
            return
        task.ending = True
        _tell_end(task, why or "this task was ended from outside (tidegate task end)")
        await self._end_execs(task)
        await self._bury(task, f"ended by {by}")

    async def _end_execs(self, task: Living) -> None:
        for exec_ in list(task.execs.values()):
            rows, more = await self.end_exec(exec_)
            exec_.say(["summary", rows, more])

    async def _bury(self, task: Living, outcome: str) -> None:
        if self._tasks.pop(task.id, None) is None:
            return
        task.ending = True
        if task.books is not None:
            await self._gate.call(task.books.close)
        await self._ledger.task_ended(task, outcome)

    async def stop(self, why: str) -> None:
        """The server ends: so do the tasks of `run`, and every command.

        Created tasks live on in the store, and so do those of `run` in containers: their fronts wait for the next one.
        """
        for task in self.living():  # first of all: what becomes of a thousand takes a while to be kept
            task.leaving = task.kind == RUN and task.hold in RETURNING
            _tell_end(task, why, stopping=True)
        for error in await asyncio.gather(*map(self._part, self.living()), return_exceptions=True):
            if error is not None:
                raise error

    async def _part(self, task: Living) -> None:
        await self._end_execs(task)
        if (task.kind == CREATED or task.leaving) and task.books is not None:
            books, task.books = task.books, None
            await self._gate.call(books.close)

    def tell(self, task: Living) -> None:
        """Tell the bus what the task is now."""
        self._ledger.publish("task", self.view(task))


def _tell_end(task: Living, why: str, *, stopping: bool = False) -> None:
    for exec_ in task.execs.values():
        exec_.say(["end", why, stopping and exec_.hold in RETURNING])


def _warn(task: Living, line: str) -> None:
    for exec_ in task.execs.values():
        exec_.say(["warn", line])
