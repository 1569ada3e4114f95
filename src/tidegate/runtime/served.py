"""What serves the sockets of one command: the proxy's listener, and what captures (HLD-6).

What was handed over is served whole or not at all; whoever serves it owns the descriptors from then on.
"""

from __future__ import annotations

import os

from tidegate.gate.tool_door import ToolDoor
from tidegate.holds import inside
from tidegate.model.errors import StartError
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.gate.announced import Announced
    from tidegate.gate.capture import Capture
    from tidegate.gate.gate import Gate, GateTask
    from tidegate.gate.listener import Listener
    from tidegate.gate.turned_away import Told, TurnedAway
    from tidegate.holds.inside import TaskSockets
    from tidegate.model.publish import Publish
    from tidegate.wire.sock_diag import Owner


class Served:
    """Listeners, the capture where there is one, and the logs of what failed at once."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.listeners: list[Listener] = []
        self.capture: Capture | None = None
        self.logs: list[TurnedAway | Told | Announced] = []
        self.tools: ToolDoor | None = None
        self.warning = ""  # what is not recorded of this command, for whoever started it
        self._user = 0

    def hear_around(self, task: GateTask, uid: int) -> None:
        """Take what this user tries around the gate for the task's, until `close` (JRN-3)."""
        from tidegate.runtime.attempts import around_of

        around, self.warning = around_of(self._gate)
        around.seat(uid, task)
        self._user = uid

    def outward(self) -> list[Listener]:
        """Return those that the task connects to; not its published ports, where others come in."""
        from tidegate.gate.published import PublishedListener

        captured = self.capture.listeners if self.capture is not None else []
        return [one for one in (*self.listeners, *captured) if not isinstance(one, PublishedListener)]

    def close(self, *, cut: bool) -> None:
        """Close them, and write what was counted. `cut` also closes their connections: the gate ended them."""
        for log in self.logs:
            log.cut(Reason.STOPPING)  # what is there is still taken
        for listener in self.listeners:
            self._gate.remove_listener(listener, cut=cut)
        if self.capture is not None:
            self._gate.remove_capture(self.capture, cut=cut)
        self.logs, self.listeners, self.capture = [], [], None
        tools, self.tools = self.tools, None
        if tools is not None:
            tools.close()
        user, self._user = self._user, 0
        if user and self._gate.around is not None:
            self._gate.around.leave(user)


def serve_sockets(
    gate: Gate,
    task: GateTask,
    sockets: TaskSockets,
    own_names: tuple[str, ...],
    doors: Sequence[tuple[int, Publish]] = (),
    met: Sequence[tuple[str, int]] = (),
    belongs: Callable[[Owner], bool] | None = None,
) -> Served:
    """Serve what a hold made. On the gate's thread.

    `doors` (published.bind) are served where it made moulds for them; `met` (services.py) are what its sockets of that
    role stand for. Where the task has no network of its own, `belongs` says who of this machine it is
    (identity.owned_by): nobody else is let in where its connections arrive.

    Raises:
        OSError, ValueError: when a descriptor is not what its role says; all of them are closed then.
        StartError: where the kernel does not say whose a connection is, and has to; likewise.
    """
    served = Served(gate)
    left = list(sockets.descriptors)
    role, owner = sockets.owner
    try:
        if role:
            from tidegate.gate.identity import owned_by

            _see_owners(gate)
            belongs = owned_by(owner)
            for fd in sockets.of(role):  # it only says that
                left.remove(fd)
                os.close(fd)
        for fd in sockets.of(inside.PROXY):
            served.listeners.append(gate.add_listener(fd, task))
            left.remove(fd)
        if sockets.of(inside.MOULD):
            _serve_doors(gate, task, sockets, doors, served, left)
        task.met = {}
        if met and sockets.of(inside.MET):  # else services are the proxy's to reach
            _serve_met(gate, task, sockets, met, served, left)
        for fd in sockets.of(inside.ANNOUNCED):
            _serve_announced(gate, task, fd, served, left)
        for fd in sockets.of(inside.TOOLS):
            door = served.tools = ToolDoor(gate, fd, task)
            left.remove(fd)
            door.hold = _holder(gate, task, door, own_names)
        known = {inside.PROXY, inside.MOULD, inside.MET, inside.ANNOUNCED, inside.TOOLS}
        if not known.issuperset(one for one in sockets.roles if one != role):
            _serve_capture(gate, task, sockets, own_names, served, left)
        if belongs is not None:
            for listener in served.outward():
                gate.guard(listener, belongs)
        if role:
            served.hear_around(task, owner)
    except BaseException:
        served.close(cut=True)
        for fd in left:
            os.close(fd)
        raise
    return served


def _holder(
    gate: Gate, task: GateTask, door: ToolDoor, own_names: tuple[str, ...]
) -> Callable[[list[str], list[int]], None]:
    def hold(roles: list[str], descriptors: list[int]) -> None:
        from tidegate.runtime.tool_holds import hold_tool

        hold_tool(gate, task, door, own_names, roles, descriptors)

    return hold


def _serve_announced(gate: Gate, task: GateTask, fd: int, served: Served, left: list[int]) -> None:
    """Let in whose socket the watcher announces, whatever its user is: a task may be root's."""
    from tidegate.gate.announced import Announced

    (listener,) = served.listeners
    announced = Announced(gate, fd, task, listener.port())
    served.logs.append(announced)
    left.remove(fd)
    gate.guard(listener, announced.knows, frozenset())


def _see_owners(gate: Gate) -> None:
    try:
        gate.peers  # noqa: B018 - it is made now, or not at all
    except OSError as error:
        what = error.filename or "socket diagnostics"
        raise StartError(
            f"the kernel does not say whose a connection is ({what}: {error.strerror})",
            fix="as root, modprobe -a inet_diag tcp_diag nf_conntrack_netlink; or --hold netns, which need not know",
            code="identity",
        ) from error


def _serve_doors(
    gate: Gate,
    task: GateTask,
    sockets: TaskSockets,
    doors: Sequence[tuple[int, Publish]],
    served: Served,
    left: list[int],
) -> None:
    from tidegate.gate.inward import Inward
    from tidegate.gate.published import PublishedListener

    inward = Inward(sockets.of(inside.MOULD))
    for fd in sockets.of(inside.MOULD):
        left.remove(fd)
    for fd, one in doors:
        served.listeners.append(PublishedListener(gate, fd, task, one, inward))


def _serve_met(
    gate: Gate,
    task: GateTask,
    sockets: TaskSockets,
    met: Sequence[tuple[str, int]],
    served: Served,
    left: list[int],
) -> None:
    from tidegate.gate.captured import CaptureListener
    from tidegate.runtime.services import destinations, places

    for fd, destination in zip(sockets.of(inside.MET), destinations(met), strict=True):
        served.listeners.append(CaptureListener(gate, fd, task, destination))
        left.remove(fd)
    task.met = places(met)


def _serve_capture(
    gate: Gate, task: GateTask, sockets: TaskSockets, own_names: tuple[str, ...], served: Served, left: list[int]
) -> None:
    from tidegate.gate.capture import CaptureSockets
    from tidegate.gate.original import ADDRESSED, CARRIED, REDIRECTED
    from tidegate.gate.turned_away import Told, TurnedAway

    ways = ((inside.REDIRECTED, REDIRECTED), (inside.ADDRESSED, ADDRESSED), (inside.CARRIED, CARRIED))
    captured = CaptureSockets(
        listeners=tuple((fd, way) for role, way in ways for fd in sockets.of(role)),
        datagrams=sockets.of(inside.DATAGRAMS),
        streams=sockets.of(inside.STREAMS),
        own_names=frozenset(own_names),
    )
    for fd in captured.descriptors:
        left.remove(fd)  # add_capture owns them, also where it fails
    served.capture = gate.add_capture(captured, task)
    for fd in sockets.of(inside.TURNED_AWAY):
        served.logs.append(TurnedAway(gate, fd, served.capture.record_direct))
        left.remove(fd)
    for fd in sockets.of(inside.TOLD):
        served.logs.append(Told(gate, fd, served.capture.record_direct))
        left.remove(fd)
