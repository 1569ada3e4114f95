"""A living task in the server, and its commands (execs).

Rules of the file:

* `Living` and `Exec` are made and changed on the loop's thread; what is marked so below runs on the gate's.
* The policy a task began with is never changed. What the operator and answers add stands beside it (changes.py), and
  the gate gets both joined.
* One command is one GateTask with listeners of its own (GAT-2, HLD-5); the commands of a task share names, meters and
  the bound of connections.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from tidegate.gate.task import GateTask
from tidegate.holds.inside import MOULD
from tidegate.model.errors import StartError
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.runtime.inspection import make_reading, only_registries, wants_inspection
from tidegate.runtime.served import serve_sockets
from tidegate.runtime.services import Services
from tidegate.runtime.task import ports_of
from tidegate.runtime.trust import joined, roots_of
from tidegate.server.books import ExecBooks
from tidegate.server.changes import changed
from tidegate.server.shapes import task_shape
from tidegate.server.task_secrets import TaskSecrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tidegate.gate.gate import Gate
    from tidegate.gate.record import Entry
    from tidegate.holds.inside import TaskSockets
    from tidegate.inspect.secrets import Vault
    from tidegate.journal.summary import Row
    from tidegate.model.publish import Publish
    from tidegate.model.question import FolderKey
    from tidegate.policy.policy import Policy
    from tidegate.runtime.inspection import Reading
    from tidegate.runtime.served import Served
    from tidegate.server.books import TaskBooks
    from tidegate.server.changes import Remembered

RUN, CREATED = "run", "created"
"""A task of `run` ends with its command; a created one when somebody ends it."""

RETURNING = ("docker", "podman")
"""Holds whose commands outlive a server: their fronts lead them to the next one (HLD-8)."""


class Living:
    """One task. `policy` is the snapshot it began with; `operator` what was allowed and denied since, by rule text."""

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - what everybody calls it
        kind: str,
        name: str,
        folder: FolderKey,
        command: tuple[str, ...],
        phase: Phase,
        policy: Policy,
        created_at: float,
        hold: str,
        network: str,
        wait_seconds: float,
        by: str,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.id = id
        self.kind = kind
        self.name = name
        self.folder = folder
        self.command = command
        self.phase = phase
        self.policy = policy
        self.created_at = created_at
        self.hold = hold
        self.network = network
        self.wait_seconds = wait_seconds
        self.by = by
        self.warnings = warnings
        self.books: TaskBooks | None = None  # None where none of its commands has a gate
        self.reading: Reading | None = None  # what reads inside TLS for it, once a command of a policy that asks began
        self.secrets = TaskSecrets()
        self.tools: tuple[str, ...] = ()  # names of those that each of its commands has (task_tools.py)
        self.roots = ""  # roots of whoever began its first command, as PEM: with those of the server's own environment
        self.operator: dict[str, Verdict] = {}
        self.remembered: tuple[Remembered, ...] = ()
        self.paused = False
        self.ending = False
        self.leaving = False  # its server ends and it does not: it is kept for the next one
        self.container: dict[str, Any] | None = None  # what its commands run in by default (HLD-4), with `hold`
        self.set_up = False  # its policy's set-up command has ended well, or is not to run
        self.setting_up: Exec | None = None  # the command before which it runs now
        self.execs: dict[str, Exec] = {}
        self.issue = ""  # of a tracker, to which its end is told (JRN-6)
        self.begun = 0  # how many commands it has had

    def reads(self, policy: Policy) -> tuple[str, ...]:
        """Make what reads inside TLS for it, where its policy asks; return the certificates that it trusts, as PEM.

        Raises:
            StartError: where what it needs is not there.
        """
        if self.reading is None and (self.secrets or wants_inspection(policy)):
            roots = joined((roots_of(os.environ), self.roots))
            if not (roots or self.secrets) and only_registries(policy):
                return ()
            self.reading = make_reading(policy, self.id, roots, time.time, self.secrets.hosts)  # noqa: TID251  the clock comes in here
        return self.reading.authority if self.reading is not None else ()

    def told(
        self, phase: Phase, setup: tuple[str, ...], met: Mapping[str, Sequence[tuple[str, int]]], *, agent: bool
    ) -> dict[str, Any]:
        """Return what a front is told of it before a command of its begins, which will be in this phase.

        `agent` says that it is the one that the task was made for. Every command has to have all of `covers` covered in
        its environment, also keys that are the agent's alone.

        Raises:
            StartError: as `reads`.
        """
        policy = self.policy_in_force()
        return {
            "task": self.id,
            "folder": self.folder.path,
            "dev": self.folder.dev,
            "ino": self.folder.ino,
            "phase": phase.value,
            "setup": setup,
            "files": self.policy.files,
            "met": met,
            "ports": {name: ports_of(policy, Phase(name)) for name in met},
            "authority": self.reads(policy),
            "secrets": self.secrets.names_of(agent=agent),
            "covers": self.secrets.names_of(agent=True),
            "tools": self.tools,
        }

    @property
    def ends_with_its_command(self) -> bool:
        """Whether it is a `run`."""
        return self.kind == RUN

    def policy_in_force(self) -> Policy:
        """Return what decides now."""
        return changed(self.policy, self.operator, self.remembered)

    def met(self, phases: Iterable[Phase], ports: Sequence[int] = ()) -> dict[str, tuple[tuple[str, int], ...]]:
        """Return by phase the services of this machine that are met inside; `ports` are those that it publishes."""
        return {phase.value: Services(self.policy_in_force(), phase, ports).met for phase in phases}

    def view(self, questions: int = 0) -> dict[str, Any]:
        """Return the task as the API shows it."""
        return task_shape(
            self,
            state="living",
            ended_at=None,
            outcome="",
            paused=self.paused,
            execs=[exec_.view() for exec_ in self.execs.values()],
            connections=self.books.connections if self.books is not None else 0,
            refused=self.books.refused if self.books is not None else 0,
            questions=questions,
            secrets=self.secrets.shown(),
            tools=list(self.tools),
            warnings=list(self.warnings),
        )


class Exec:
    """One command of a task. `say` sends a message to its front."""

    def __init__(
        self,
        task: Living,
        *,
        id: str,  # noqa: A002 - what everybody calls it
        command: tuple[str, ...],
        hold: str,
        ask: str,
        started_at: float,
        say: Callable[[list[Any]], None],
    ) -> None:
        self.task = task
        self.id = id
        self.command = command
        self.hold = hold
        self.ask = ask
        self.started_at = started_at
        self.say = say
        self.gate_task: GateTask | None = None
        self.books: ExecBooks | None = None
        self.agent = False  # whether it is what the task was made for, with the hosts and keys of an agent (POL-12)
        self.tool_called: Callable[[str, dict[str, Any]], None] | None = None  # hears of calls of its tools
        self.vault: Vault | None = None  # where its task has secrets, once their values are there
        self.met: dict[str, tuple[tuple[str, int], ...]] = {}  # by phase: services of this machine that are met inside
        self._served: Served | None = None
        self._doors: list[tuple[int, Publish]] = []  # bound, and nobody's yet
        self._published: tuple[Publish, ...] = ()
        self._over = False

    def view(self) -> dict[str, Any]:
        """Return the command as the API shows it."""
        return {"id": self.id, "command": list(self.command), "hold": self.hold, "started_at": self.started_at}

    @property
    def warning(self) -> str:
        """What is not recorded of it, '' where everything is."""
        return self._served.warning if self._served is not None else ""

    # On the gate's thread.

    def publish(self, gate: Gate, published: tuple[Publish, ...]) -> None:
        """Take ports of this machine for the command (HLD-10).

        Raises:
            StartError: where one cannot be had.
        """
        self._check_alive()
        if published:
            from tidegate.gate.published import bind

            self._doors = bind(gate.marks, published)
            self._published = published

    def serve(self, gate: Gate, sockets: TaskSockets, own_names: tuple[str, ...], policy: Policy) -> None:
        """Serve the sockets that the hold of this command made, and own their descriptors.

        Raises:
            OSError, StartError, ValueError: when one of them is not what it should be; all of them are closed then.
        """
        task = self.task
        try:
            self.books = ExecBooks(self._check_first())
        except BaseException:
            _close(sockets)
            raise
        gate_task = GateTask(task.id, policy, task.phase, recorder=self.books, asks=self.ask != "no", agent=self.agent)
        if task.secrets.names_of(agent=self.agent) and self.vault is None:
            _close(sockets)
            raise StartError("the front did not ask for the task's secrets", code="secret")
        gate_task.pause(paused=task.paused)
        gate_task.inspector = task.reading.inspector if task.reading is not None else None
        other = next((one.gate_task for one in task.execs.values() if one.gate_task is not None), None)
        if other is not None:
            gate_task.join(other)
        gate_task.secrets = self.vault
        try:
            self._served = self._serve(gate, gate_task, sockets, own_names)
        except BaseException:
            gate_task.part()
            raise
        if other is not None and other.synthetic is None:
            other.synthetic = gate_task.synthetic
        self.gate_task = gate_task

    def serve_next(self, gate: Gate, sockets: TaskSockets, own_names: tuple[str, ...], phase: Phase) -> None:
        """Serve the sockets of the next hold in place of the last one's, in this phase: the set-up has ended.

        Raises:
            OSError, ValueError: as `serve`.
        """
        gate_task, books, served = self.gate_task, self.books, self._served
        if gate_task is None or books is None or served is None:
            _close(sockets)
            raise StartError("nothing was served before", code="front")
        served.close(cut=True)  # all who could hold a connection of the set-up command have ended
        books.pause()
        gate_task.change(phase=phase)
        self._served = self._serve(gate, gate_task, sockets, own_names)

    def _check_alive(self) -> None:
        # It was ended from outside while its front went on: what is served now, nobody would close.
        if self._over:
            raise StartError(f"the task {self.task.id} has ended", code="task-ended")

    def _check_first(self) -> TaskBooks:
        self._check_alive()
        if self._served is not None:
            raise StartError("its sockets are served already", code="front")
        if self.task.books is None:
            raise StartError("a task without a gate has no sockets", code="front")
        return self.task.books

    def _serve(self, gate: Gate, task: GateTask, sockets: TaskSockets, own_names: tuple[str, ...]) -> Served:
        served = serve_sockets(gate, task, sockets, own_names, self._doors, self.met.get(task.phase.value, ()))
        if served.tools is not None:
            served.tools.called = self.tool_called
        if sockets.of(MOULD):
            self._doors = []  # they are its own now
        return served

    def release(self, gate: Gate) -> tuple[list[Row], int]:
        """Close what served this command and its connections; return the counts. Nothing is served afterwards."""
        self._over = True
        served, self._served = self._served, None
        if served is not None:
            served.close(cut=True)
        for fd, _one in self._doors:
            os.close(fd)
        for one in self._published:
            gate.marks.release(one.port)
        self._doors, self._published = [], ()
        gate_task, self.gate_task = self.gate_task, None
        if gate_task is not None:
            gate.cut(gate_task, Reason.STOPPING)
            gate_task.part()
        if self.books is None:
            return [], 0
        self.books.flush()
        return self.books.summary.rows(), self.books.summary.more


def _close(sockets: TaskSockets) -> None:
    for fd in sockets.descriptors:
        os.close(fd)


def denied_now(gate: Gate, gate_task: GateTask) -> Callable[[Entry], bool]:
    """Return what picks the connections that the task's policy no longer lets pass. On the gate's thread."""
    from tidegate.holds.inside import packed
    from tidegate.policy.decide import decide

    def picks(entry: Entry) -> bool:
        decision = entry.decision
        if decision is None:
            return False
        # The policy alone: in a task that is paused every plan is a refusal, and what is open stays open.
        now = decide(gate_task.policy, decision.destination, gate_task.phase)
        address = entry.address or decision.address
        if now.verdict is not Verdict.DENY and address:
            now = gate_task.admit(now, (packed(address),), gate.surroundings())
        return now.verdict is Verdict.DENY

    return picks
