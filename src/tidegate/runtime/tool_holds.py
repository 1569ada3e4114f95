"""The gate's side of a tool that is held to its task's hosts (`apply_task_hosts`, SRV-6).

The program runs in a hold of its own, whose only way out is this gate. For the gate it is one more command of the
task: its policy, phase, pause and meters, and the bound of connections they share; what the operator changes of the
task changes it too. It asks nobody, has neither an agent's hosts nor the task's secrets, and follows no redirects.

The control is a socket: `s` to the tool's front once all is served, from it `begin TIME`, and its end is the end of the
hold, either way.
"""

from __future__ import annotations

from _socket import socket

from tidegate.gate.task import GateTask
from tidegate.holds.inside import TaskSockets
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.gate.gate import Gate
    from tidegate.gate.tool_door import ToolDoor
    from tidegate.model.event import Event
    from tidegate.runtime.served import Served

SERVED = b"s"
BEGIN = b"begin "


class _Late:
    """The Recorder of such a tool: what began before it did is the self-test's, and nobody's record."""

    def __init__(self, gate: Gate, task: GateTask) -> None:
        self._gate = gate
        self._task = task
        self._early: list[Event] | None = []

    def record(self, event: Event) -> None:
        """Take one event for the task."""
        if self._early is not None:
            self._early.append(event)
        else:
            self._gate.record(event, self._task.recorder)

    def begin(self, at: float) -> None:
        """Drop what began before `at`, and take the rest."""
        early, self._early = self._early or [], None
        for event in early:
            if event.at >= at:
                self.record(event)

    def flush(self) -> None:
        """Nothing is kept here that would be written."""


class HeldTool:
    """One run of such a tool. On the gate's thread."""

    def __init__(
        self, gate: Gate, task: GateTask, helper: GateTask, door: ToolDoor, control: socket, served: Served
    ) -> None:
        self._helper = helper
        self._gate = gate
        self._task = task
        self._door = door
        self._control: socket | None = control
        self._served = served

    def close(self) -> None:
        """End it: its connections are cut, and its front sees the end of its control."""
        control, self._control = self._control, None
        if control is None:
            return
        self._door.holds.discard(self)
        self._gate.unregister(control.fileno())
        control.close()
        self._served.close(cut=True)
        self._gate.cut(self._helper, Reason.STOPPING)
        self._helper.part()
        self._task.helpers.discard(self._helper)

    def heard(self, begin: _Late) -> None:
        """Its front said something, or has ended."""
        while self._control is not None:
            try:
                data = self._control.recv(64)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            word, _, at = data.partition(b" ")
            if data and word == BEGIN.strip() and at.replace(b".", b"").isdigit():
                begin.begin(float(at))
            else:
                self.close()


def hold_tool(
    gate: Gate,
    task: GateTask,
    door: ToolDoor,
    own_names: tuple[str, ...],
    roles: Sequence[str],
    descriptors: Sequence[int],
) -> None:
    """Serve the sockets of a tool's hold; the first descriptor is its control. Owns all of them."""
    from tidegate.runtime.served import serve_sockets

    control = socket(fileno=descriptors[0])
    control.setblocking(False)
    recorder = _Late(gate, task)
    helper = GateTask(task.id, task.policy, task.phase, recorder=recorder, asks=False, agent=False)
    helper.join(task)
    helper.secrets = None
    helper.redirected = False
    helper.pause(paused=task.paused)
    try:
        served = serve_sockets(gate, helper, TaskSockets(tuple(roles), tuple(descriptors[1:])), own_names)
    except (OSError, ValueError):
        helper.part()
        control.close()  # which tells its front that it does not start
        return
    held = HeldTool(gate, task, helper, door, control, served)
    door.holds.add(held)
    task.helpers.add(helper)
    gate.register(control.fileno(), lambda: held.heard(recorder))
    try:
        control.send(SERVED)
    except OSError:
        held.close()
