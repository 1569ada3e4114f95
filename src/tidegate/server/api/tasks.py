"""Tasks: what they are, what they reached, and what the operator does to them (POL-7, POL-8, POL-13)."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from tidegate.journal.readback import newest_lines
from tidegate.model.errors import UsageError
from tidegate.model.host import HostError, canonical_host
from tidegate.model.verdict import Phase
from tidegate.runtime.state import LOG_NAME, config_folder
from tidegate.server.api.answers import Connections, CutAnswer, HostCounts, OpenConnections, TaskAnswer, Tasks
from tidegate.server.api.errors import ApiError
from tidegate.server.api.operation import OWNER, Call, Operation, Operations
from tidegate.server.api.requests import (
    MAX_BODY,
    CutRequest,
    HostChange,
    HostsQuery,
    NewTask,
    Nothing,
    PageQuery,
    Pause,
    PhaseChange,
    TasksQuery,
    WaitChange,
)
from tidegate.server.api.task_policy import policy_for
from tidegate.server.background import in_thread

if TYPE_CHECKING:
    from tidegate.server.living import Living
    from tidegate.server.tasks import Registry


class TaskOperations(Operations):
    """The operations; see the head of the file."""

    def operations(self) -> list[Operation]:
        """Return them."""
        one = "/api/tasks/{id}"
        return [
            Operation(
                method="GET",
                path="/api/tasks",
                summary="Tasks, newest first",
                do=self.listed,
                query=TasksQuery,
                answer=Tasks,
            ),
            Operation(
                method="POST",
                path="/api/tasks",
                summary="Create a task that lives until it is ended; tidegate exec runs commands in it",
                do=self.create,
                body=NewTask,
                limit=MAX_BODY,
                answer=TaskAnswer,
                status=201,
                role=OWNER,
                errors=(409,),
            ),
            Operation(method="GET", path=one, summary="One task", do=self.one, answer=TaskAnswer),
            self._change(f"{one}/phase", "Move a living task to a phase", self.phase, PhaseChange, TaskAnswer),
            self._change(f"{one}/end", "End a task and what runs in it", self.end, Nothing, TaskAnswer),
            self._change(f"{one}/pause", "Refuse new connections, or no more", self.pause, Pause, TaskAnswer),
            self._change(f"{one}/wait", "How long its questions wait from now on", self.wait, WaitChange, TaskAnswer),
            self._change(f"{one}/cut", "Close open connections", self.cut, CutRequest, CutAnswer),
            self._change(
                f"{one}/hosts", "Let hosts pass, or deny them, until it ends", self.hosts, HostChange, TaskAnswer
            ),
            Operation(
                method="GET",
                path=f"{one}/connections",
                summary="What a task reached and was refused, newest first",
                do=self.connections,
                query=PageQuery,
                answer=Connections,
            ),
            Operation(
                method="GET",
                path=f"{one}/hosts",
                summary="Which hosts a task reached and was refused, and how often",
                do=self.reached,
                query=HostsQuery,
                answer=HostCounts,
            ),
            Operation(
                method="GET",
                path="/api/hosts",
                summary="The same of all tasks, since the server began",
                do=self.reached,
                query=HostsQuery,
                answer=HostCounts,
            ),
            Operation(
                method="GET",
                path=f"{one}/open",
                summary="What a task has open now; for a while events tell what changes of it",
                do=self.open,
                answer=OpenConnections,
            ),
        ]

    @staticmethod
    def _change(path: str, summary: str, do: Any, body: Any, answer: Any) -> Operation:
        return Operation(
            method="POST", path=path, summary=summary, do=do, body=body, answer=answer, role=OWNER, errors=(409,)
        )

    async def listed(self, call: Call) -> dict[str, Any]:
        """Return a page of tasks."""
        query = call.query
        found = await self._registry.records(living=query.living, limit=query.limit + 1, before=query.before or "")
        return {"tasks": found[: query.limit], "more": len(found) > query.limit}

    async def create(self, call: Call) -> dict[str, Any]:
        """Create a task under the policy that it names, or the settings'."""
        body: NewTask = call.body
        make = partial(
            policy_for,
            text=body.policy,
            hosts=body.hosts,
            network=body.network,
            settings=self._context.server.settings,
            folder=body.folder,
            config=config_folder(os.environ),
            state=self._context.server.state,
        )
        policy = await in_thread(make)
        task = await self._registry.create(
            folder=body.folder,
            policy=policy,
            name=body.name or "",
            issue=body.issue,
            wait_seconds=body.wait_seconds,
            secrets=body.secrets,
            tools=body.tools,
            by=call.caller.by,
        )
        return self._registry.view(task)

    async def one(self, call: Call) -> dict[str, Any]:
        """Return one task, living or ended."""
        return await self._record(call.path["id"])

    async def phase(self, call: Call) -> dict[str, Any]:
        """Move it to a phase."""
        task = await self._living(call)
        await self._registry.set_phase(task, Phase(call.body.phase), cut=call.body.cut, by=call.caller.by)
        return self._registry.view(task)

    async def end(self, call: Call) -> dict[str, Any]:
        """End it."""
        task = await self._living(call)
        await self._registry.end(task, by=call.caller.by)
        return await self._record(task.id)

    async def pause(self, call: Call) -> dict[str, Any]:
        """Pause it, or let it go on."""
        task = await self._living(call)
        await self._registry.pause(task, paused=call.body.paused, by=call.caller.by)
        return self._registry.view(task)

    async def wait(self, call: Call) -> dict[str, Any]:
        """Change how long its questions wait."""
        task = await self._living(call)
        await self._registry.set_wait(task, call.body.wait_seconds, by=call.caller.by)
        return self._registry.view(task)

    async def cut(self, call: Call) -> CutAnswer:
        """Close what it has open."""
        task = await self._living(call)
        try:
            host = canonical_host(call.body.host).text if call.body.host is not None else ""
        except HostError as error:
            raise UsageError(f"{call.body.host!r} is not a host: {error.what}", code="host") from None
        which = {"port": call.body.port or 0, "connection": call.body.connection or 0}
        return CutAnswer(cut=await self._registry.cut(task, host=host, by=call.caller.by, **which))

    async def hosts(self, call: Call) -> dict[str, Any]:
        """Let hosts pass, or deny them."""
        task = await self._living(call)
        if not call.body.allow and not call.body.deny:
            raise UsageError("there is no host to allow or deny", fix="give allow or deny")
        await self._registry.change(task, allow=call.body.allow, deny=call.body.deny, by=call.caller.by)
        return self._registry.view(task)

    async def connections(self, call: Call) -> dict[str, Any]:
        """Return a page of its record. `before` of the answer is what to ask for next, null at the end."""
        task = self._find_living(call.path["id"])
        if task is not None and task.books is not None:
            path = task.books.log.path
        else:
            record = await self._record(call.path["id"])
            path = os.path.join(self._context.server.state, "tasks", record["id"], LOG_NAME)
        lines, before = await in_thread(newest_lines, path, call.query.limit, call.query.before)
        return {"connections": lines, "before": before}

    async def reached(self, call: Call) -> dict[str, Any]:
        """Return the hosts of one task, or of all."""
        id_ = call.path.get("id", "")
        if id_:
            await self._record(id_)  # says so where there is none
        return await self._registry.reached(id_, call.query.limit)

    async def open(self, call: Call) -> dict[str, Any]:
        """Return what it has open; nothing of one that has ended."""
        task = self._find_living(call.path["id"])
        if task is None:
            await self._record(call.path["id"])
            return {"open": [], "more": 0, "seconds": 0.0}
        return await self._registry.look(task)

    @property
    def _registry(self) -> Registry:
        return self._context.server.registry

    def _find_living(self, task_id: str) -> Living | None:
        return next((task for task in self._registry.living() if task.id == task_id), None)

    async def _record(self, task_id: str) -> dict[str, Any]:
        try:
            found = await self._registry.record(task_id)
        except UsageError:
            found = {"id": ""}
        if found["id"] != task_id:  # a name or the beginning of an id is for people
            raise ApiError(404, f"there is no task {task_id[:64]!r}", fix="GET /api/tasks has them all")
        return found

    async def _living(self, call: Call) -> Living:
        task = self._find_living(call.path["id"])
        if task is None:
            record = await self._record(call.path["id"])
            raise ApiError(409, f"the task {record['id']} has ended", code="task-ended")
        return task
