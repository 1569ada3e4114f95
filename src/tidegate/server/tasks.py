"""The registry: what the operator does to living tasks (POL-7, POL-8); which live is in register.py.

Rules of the file: as register.py. What is changed is awaited: a caller that has its answer knows that it is in force.
What cannot be kept is not in force, and the caller gets the NotSavedError: nothing holds that is not on record.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from tidegate.journal.reached import Reached
from tidegate.journal.readback import rows_of
from tidegate.model.destination import PortError, parse_authority
from tidegate.model.errors import NotSavedError, UsageError
from tidegate.model.host import HostError
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.runtime.state import LOG_NAME
from tidegate.server.background import in_thread
from tidegate.server.changes import canonical
from tidegate.server.ledger import remembered_of
from tidegate.server.living import Exec, Living, denied_now
from tidegate.server.open_view import OpenView
from tidegate.server.returning import Returning
from tidegate.server.task_secrets import need_covered, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tidegate.gate.record import Entry
    from tidegate.gate.task import GateTask
    from tidegate.inspect.secrets import Vault
    from tidegate.model.decision import Decision
    from tidegate.model.question import FolderKey
    from tidegate.policy.policy import Policy
    from tidegate.server.gate_thread import GateThread
    from tidegate.server.ledger import Ledger


class Registry(Returning):
    """See the head of the file."""

    def __init__(self, state: str, gate: GateThread, ledger: Ledger, *, clock: Callable[[], float]) -> None:
        super().__init__(state, gate, ledger, clock=clock)
        self._view = OpenView(gate, ledger.flash)

    async def look(self, task: Living) -> dict[str, Any]:
        """Return what a task has open now; what changes is told for a while."""
        return await self._view.look(task)

    async def reached(self, id: str, limit: int) -> dict[str, Any]:  # noqa: A002 - what everybody calls it
        """Return which hosts a task reached and was refused; all tasks since the server began, where `id` is ''.

        Raises:
            UsageError: when there is no such task.
        """
        if not id:
            return await self._gate.call(lambda: self._ledger.reached.rows(limit))
        task = self.find(id)
        if task is not None:
            books = task.books
            return await self._gate.call(lambda: books.reached.rows(limit)) if books else Reached().rows(limit)
        found = Reached()
        try:
            rows, _more = await in_thread(
                rows_of, os.path.join(self._state, "tasks", (await self.record(id))["id"], LOG_NAME)
            )
            found.add_rows(rows)
        except OSError:
            pass  # its record is elsewhere, or was swept
        return found.rows(limit)

    async def set_phase(self, task: Living, phase: Phase, *, cut: bool, by: str) -> int:
        """Move a task to a phase: new connections are judged by it. Return how many `cut` closed (POL-7)."""
        before, task.phase = task.phase, phase

        def change(gate_task: GateTask) -> int:
            gate_task.change(phase=phase)
            return self._gate.gate.cut(gate_task, Reason.CUT) if cut else 0

        count = await self._each(task, change)
        try:
            await self._ledger.phase_changed(task, before, by=by, cut=count)
        except NotSavedError:
            task.phase = before
            await self._each(task, _doing(lambda gate_task: gate_task.change(phase=before)))
            raise
        self.tell(task)
        return count

    async def pause(self, task: Living, *, paused: bool, by: str) -> None:
        """Refuse every new connection of a task from now on, or no more."""
        if task.paused == paused:
            return
        task.paused = paused

        await self._each(task, _doing(lambda gate_task: gate_task.pause(paused=paused)))
        try:
            await self._ledger.task_changed(task, by=by, paused=paused)
        except NotSavedError:
            task.paused = not paused
            await self._each(task, _doing(lambda gate_task: gate_task.pause(paused=not paused)))
            raise
        self.tell(task)

    async def set_wait(self, task: Living, seconds: float, *, by: str) -> None:
        """Have questions of a task that open from now on wait so long; those that are open keep their time (ASK-2).

        Raises:
            UsageError: when it is not from 1 minute to 8 hours.
        """
        seconds = self._ledger.wait_seconds(seconds)
        before, task.wait_seconds = task.wait_seconds, seconds
        try:
            await self._ledger.task_changed(task, by=by, wait_seconds=seconds)
        except NotSavedError:
            task.wait_seconds = before
            raise
        if self.find(task.id) is task:  # it may have ended meanwhile
            self._ledger.wait_changed(task)
            self.tell(task)

    async def cut(self, task: Living, *, host: str = "", port: int = 0, connection: int = 0, by: str) -> int:
        """Close the open connections of a task, those to this host and port where given; return how many.

        `connection` is the number of the one that is meant (`look`).
        """

        def wanted(entry: Entry) -> bool:
            if connection and entry.number != connection:
                return False
            return entry.decision is not None and _leads_to(entry.decision, host, port)

        which = wanted if host or port or connection else None
        count = await self._each(task, lambda gate_task: self._gate.gate.cut(gate_task, Reason.CUT, which))
        await self._ledger.task_changed(task, by=by, cut=count, **({"host": host} if host else {}))
        return count

    async def change(self, task: Living, *, allow: Iterable[str] = (), deny: Iterable[str] = (), by: str) -> int:
        """Let hosts pass or deny them from now on; what a deny covers is cut. Return how many were cut.

        Raises:
            UsageError: for a text that is no rule, and for an allow that changes nothing: a deny or a lock is above it.
        """
        operator = dict(task.operator)
        allowed = [canonical(text) for text in allow]
        denied = [canonical(text) for text in deny]
        if allowed and task.policy.locked:
            raise UsageError(
                f"the policy of {task.id} is locked: nothing can be added to what it allows", code="locked"
            )
        for text in (*allowed, *denied):
            operator.pop(text, None)  # the last word on a text is the one that counts
        operator.update(dict.fromkeys(allowed, Verdict.ALLOW) | dict.fromkeys(denied, Verdict.DENY))
        before, task.operator = task.operator, operator
        policy = task.policy_in_force()
        for text in allowed:
            above = _denied(policy, text, task.phase)
            if above:
                task.operator = before
                raise UsageError(f"{text} stays denied: {above}", fix="a deny wins over every allow", code="denied")

        def cut(gate_task: GateTask) -> int:
            gate = self._gate.gate
            return gate.cut(gate_task, Reason.CUT, denied_now(gate, gate_task))

        await self._each(task, _changer(policy))
        # Those who wait hear of the rule, in place of being cut with what is open.
        self._ledger.settle(task, by, Verdict.DENY)
        count = await self._each(task, cut) if denied else 0
        try:
            await self._ledger.task_changed(task, by=by, allow=allowed, deny=denied, cut=count)
        except NotSavedError:
            task.operator = before
            await self._each(task, _changer(task.policy_in_force()))
            raise
        self._ledger.settle(task, by, Verdict.ALLOW)
        self.tell(task)
        return count

    async def remember(self, folder: FolderKey, *, by: str) -> None:
        """What is remembered for a folder has changed: its living tasks get it, and those of them that wait for it."""
        for task in self.living():
            if task.folder == folder:
                task.remembered = await in_thread(remembered_of, self._ledger.store, task)
                policy = task.policy_in_force()
                await self._each(task, _changer(policy))
                self._ledger.settle(task, by, Verdict.ALLOW)

    async def give_secrets(self, exec_: Exec, environ: Mapping[str, str]) -> dict[str, str]:
        """Get the values of a command's secrets; return the variables that are another in the task than in `environ`.

        Raises:
            StartError: where one cannot be had.
            NotSavedError: where the task's stand-ins cannot be kept.
        """
        if not exec_.task.secrets:
            return {}
        vault, variables = await self._opened(exec_.task, environ, agent=exec_.agent)
        vault.used = partial(self._ledger.secret_used, exec_)
        if exec_.task.secrets.names_of(agent=exec_.agent):
            exec_.vault = vault
            self._ledger.secrets_given(exec_)
        return variables

    async def given(self, task: Living, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return what a container of somebody else's is to be started with: whom to trust, and stand-ins.

        Raises:
            StartError, NotSavedError: as `give_secrets`.
        """
        authority = task.reads(task.policy_in_force())
        variables = (await self._opened(task, environ, agent=False))[1] if task.secrets else {}
        own = task.secrets.variables_of(agent=False)
        return {"authority": authority, "variables": {name: variables[name] for name in own}}

    async def _opened(self, task: Living, environ: Mapping[str, str], *, agent: bool) -> tuple[Vault, dict[str, str]]:
        async with task.secrets.opening:
            policy = task.policy_in_force()
            found = await in_thread(lambda: opened(self._state, task.secrets, environ, policy, agent=agent))
            need_covered(task.secrets, None if task.reading is None else task.reading.inspector)
            await self._ledger.keep(task)  # before it is in anybody's environment
        return found

    async def _each(self, task: Living, work: Callable[[GateTask], int]) -> int:
        # On the gate's thread, for each command of the task.
        def run() -> int:
            return sum(work(one.gate_task) for one in list(task.execs.values()) if one.gate_task is not None)

        return await self._gate.call(run) if task.execs else 0

    def cut_now(self, id: str, host: str, port: int, reason: Reason) -> None:  # noqa: A002 - what everybody calls it
        """Close what a task has open to a host and port, in every stage. On the gate's thread."""
        task = self._tasks.get(id)

        def wanted(entry: Entry) -> bool:
            return entry.decision is not None and _leads_to(entry.decision, host, port)

        for exec_ in list(task.execs.values()) if task is not None else ():
            if exec_.gate_task is not None:
                self._gate.gate.cut(exec_.gate_task, reason, wanted)


def _changer(policy: Policy) -> Callable[[GateTask], int]:
    return _doing(lambda gate_task: gate_task.change(policy=policy))


def _doing(act: Callable[[GateTask], None]) -> Callable[[GateTask], int]:
    """Work that cuts nothing."""

    def work(gate_task: GateTask) -> int:
        act(gate_task)
        return 0

    return work


def _leads_to(decision: Decision, host: str, port: int) -> bool:
    destination = decision.destination
    return (not host or destination.host.text == host) and (not port or destination.port == port)


def _denied(policy: Policy, text: str, phase: Phase) -> str:
    """Why a destination that a rule text names stays denied; '' where it does not, or the text names no single one."""
    try:
        destination = parse_authority(text, 443)
    except (HostError, PortError):
        return ""
    decision = decide(policy, destination, phase)
    return decision.sentence() if decision.verdict is Verdict.DENY else ""
