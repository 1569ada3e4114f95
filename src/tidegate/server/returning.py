"""Tasks that a server before this one left, and that go on behind this one (HLD-8).

Created tasks live until somebody ends them. A task of `run` in containers lives as long as its front, which leads it
here (runtime/comeback.py); until then it is expected, and has ended where nobody came.

Rules of the file: what a task may do is what its record says, whatever the front or the configuration says by now: the
policy that it began with, what the operator changed since, and what its folder remembers. A front brings sockets and
the place of the journal, nothing else.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tidegate.model.errors import UsageError
from tidegate.policy.snapshot import from_json
from tidegate.server.background import start
from tidegate.server.ledger import restore
from tidegate.server.living import CREATED, RETURNING, RUN, Living
from tidegate.server.register import Register

if TYPE_CHECKING:
    from typing import Any

    from tidegate.state.store import TaskRecord

EXPECTED = 150.0  # seconds for a front to come: it gives up after 120 itself
NEVER_CAME = "the server before this one ended, and its command did not come back"


def may_return(record: TaskRecord) -> bool:
    """Whether a task that a server left can go on behind the next one."""
    return not record.owner_pid or record.hold in RETURNING


class Returning(Register):
    """See the head of the file."""

    async def revive(self, record: TaskRecord) -> None:
        """Take in a task that a server before this one left, with what the operator had changed.

        Raises:
            StartError, NotSavedError, ValueError, KeyError, TypeError: when that cannot be.
        """
        created = not record.owner_pid
        task = Living(
            id=record.id,
            kind=CREATED if created else RUN,
            name=record.name,
            folder=record.folder,
            command=record.command,
            phase=record.phase,
            policy=from_json(json.loads(record.policy)),
            created_at=record.created_at,
            hold=record.hold,
            network=record.network,
            wait_seconds=record.wait_seconds,
            by=record.by,
        )
        restore(task, record)
        await self._adopt(task, self._own_log(task) if created else "", rotate=True, again=True)
        if not created:
            asyncio.get_running_loop().call_later(EXPECTED, self._miss, task)

    def _miss(self, task: Living) -> None:
        if not task.begun and not task.ending:
            start(self._bury(task, NEVER_CAME), "the end of a task that nobody came for")

    async def come_back(self, order: dict[str, Any]) -> Living:
        """Return the task of a `run` whose front has come here, and have its journal written again.

        Raises:
            UsageError: when no such task is expected: it has ended, or another front has it.
        """
        task = self.find(str(order["task"]))
        if task is None or task.kind != RUN or task.begun:
            raise UsageError(
                f"the task {ascii(order['task'])[:80]} has ended meanwhile", fix="start it again", code="task-ended"
            )
        task.books = self._books(task, order["log"], rotate=order["rotate"])
        task.roots = str(order.get("roots", ""))
        return task
