"""A command's hold, begun before all is known of it, where the hold can do that (holds/begun.py).

What a start waits for is mostly the front: it reads the roots, tells the gate of the task and waits for the authority
that the gate makes. The hold's namespaces, network and mounts need none of that, so they are made meanwhile. Where the
launch then wants anything else than what was begun, that is ended and the hold is built as ever.
"""

from __future__ import annotations

from tidegate.holds.hold import GATE_PORT
from tidegate.runtime.container_task import with_relay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.begun import Begun
    from tidegate.holds.hold import Hold, LaunchSpec, RunningTask
    from tidegate.holds.inside import TaskSockets
    from tidegate.holds.stdio import StdioPlan
    from tidegate.runtime.task import Order

SEEN = ("HOME", "XDG_RUNTIME_DIR", "TMPDIR", "TMP", "TEMP", "TEMPDIR")
"""The variables by which a plan decides the view (holds/plan.py)."""


class EarlyHold:
    """The hold of one run. `begin` may be called once before the first `launch`, and `end` at the end."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._begun: Begun | None = None
        self._spec: LaunchSpec | None = None

    def begin(self, spec: LaunchSpec) -> None:
        """Begin to build it, where this hold can be begun before its variables and files are known.

        Raises:
            StartError: where it cannot be built.
        """
        begin: Callable[[LaunchSpec], Begun] | None = getattr(self._hold, "begin", None)
        if begin is not None:
            self._begun, self._spec = begin(spec), spec

    def look(self) -> None:
        """Do what is to be done for it by now; waits for nothing.

        Raises:
            StartError: where it has failed.
        """
        if self._begun is not None:
            self._begun.look()

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None]) -> RunningTask:
        """Return the task of this spec; as Hold.launch."""
        begun, self._begun = self._begun, None
        if begun is None:
            return self._hold.launch(spec, deliver)
        if not self._is_as_begun(spec):
            begun.end()
            return self._hold.launch(spec, deliver)
        return begun.complete(deliver, spec.env, spec.trust)

    def end(self) -> None:
        """Leave nothing of what has not become a task."""
        if self._begun is not None:
            self._begun.end()
            self._begun = None

    def _is_as_begun(self, spec: LaunchSpec) -> bool:
        began = self._spec
        if began is None or any(spec.env.get(name) != began.env.get(name) for name in SEEN):
            return False
        return spec.replace(env=began.env, trust=()) == began.replace(trust=())


def spec_of(order: Order, environment: dict[str, str], stdio: StdioPlan) -> LaunchSpec:
    """Return how an order is held: one command, with these variables and streams."""
    from tidegate.holds.hold import LaunchSpec

    return LaunchSpec(
        argv=order.command,
        env=environment,
        cwd=order.folder,
        workspace=None if order.folder == "/" else order.folder,
        shares=order.shares,
        hidden=order.hidden,
        readonly=order.readonly,
        guarded=order.guarded,
        closed=order.closed,
        writable=order.writable,
        strict=order.strict,
        port=GATE_PORT,
        selftest=order.selftest,
        run_id=order.task,
        stdio=stdio,
        capture=order.capture,
        ssh_agent=bool(order.ssh_keys),
        container=None if order.container is None else with_relay(order.container, order.state),
    )
