"""How a namespace hold comes to be: what happens in which order, and the child's half (the front's: construction.py).

    front          A (forked, ends at once)      init (PID 1 inside)
    fork ────────► unshare, fork ──────────────► lo up, listen ── sockets+fds ─► front hands them to the gate
    write the maps, reap A ── mapped ──────────► mounts
    fork the watcher ◄── watch+fd ────────────── run_init: pty, enter() (no rights left)
                                                 self-test ── probed ─► front
    did a canary hear anything? no: the task is held and waits for `start`

Rules of the file: the child ends by os._exit on every path; the front ends with a task or with a StartError and then
has killed and reaped what it made. Nothing is written to the file system, so nothing can be left: namespaces and
mounts end with their last process, and init ends when the front's end of the control socket closes, however that
comes.

In the hold `netns` the front begins before it knows the command's variables and whom it is to trust: init waits for
them between `mounts` and `run_init`, and the front finds them out meanwhile (begun.py).

A *tenant* is what the hold `uid` has in place of a network and a user namespace (uid.py).
"""

from __future__ import annotations

import os

from tidegate.holds import (
    capabilities,
    capture,
    capture_proof,
    confine,
    control,
    linux,
    messages,
    network,
    selftest,
    unix_socket,
    userns,
)
from tidegate.holds.begun import Begun, taken_in
from tidegate.holds.canaries import Canaries
from tidegate.holds.construction import Construction
from tidegate.holds.device import SHARED_MEMORY
from tidegate.holds.hold import LaunchSpec, RunningTask
from tidegate.holds.inside import MET, MOULD, OFF, ON, PORTS, PROXY, SSH_AGENT, TaskSockets, detours, met_at
from tidegate.holds.mountinfo import is_within
from tidegate.holds.plan import Plan, make_plan
from tidegate.holds.seccomp import NETNS, OPEN
from tidegate.holds.tree import build
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from tidegate.holds.name_files import NameFile
    from tidegate.holds.uid import Tenant

    Finish = Callable[[int, LaunchSpec, Callable[[], None], Callable[[], None]], NoReturn]


class NamespaceHold:
    """A hold made of namespaces. Its name is also the kind of its filter: `netns`, `offline` or `open`."""

    def __init__(self, kind: str) -> None:
        self.name = kind
        self.kind = kind
        self.has_gate = kind == NETNS

    def probe(self) -> StartError | None:
        """Build the whole hold around nothing and end it; why that cannot be done here, or None.

        All but the question to the gate is tried: there is no gate yet.
        """
        mode = ON if self.kind == NETNS else OFF
        spec = LaunchSpec(argv=(), env={"HOME": "/"}, cwd="/", selftest=False, capture=mode)
        try:
            task = self._launch(spec, lambda _sockets: None, _end)
        except StartError as error:
            return error
        task.kill()
        task.wait()
        return None

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None) -> RunningTask:
        """Build the hold and prove it; see Hold.launch."""
        return self._launch(_with_streams(spec), deliver, _run_init())

    def sweep(self) -> None:
        """Nothing outlives a crash: see the head of this file. A canary's file goes with the next canary's."""

    def _launch(
        self,
        spec: LaunchSpec,
        deliver: Callable[[TaskSockets], None] | None,
        finish: Finish,
        tenant: Tenant | None = None,
    ) -> RunningTask:
        return self._begin(spec, finish, tenant).complete(deliver)

    def _begin(self, spec: LaunchSpec, finish: Finish, tenant: Tenant | None = None, *, late: bool = False) -> Begun:
        """Fork what builds the hold. With `late` it waits for variables and whom to trust (begun.py)."""
        if not linux.supported():
            raise messages.unknown_machine()
        if spec.capture == PORTS and capture.too_many(spec.capture_ports):
            raise messages.too_many_ports(capture.MOST_PORTS)
        taken = capture.taken(spec.capture, spec.port, spec.capture_ports)
        for port in spec.published:
            if port in taken:
                raise messages.port_taken(port)
        plan = make_plan(spec, os.geteuid()) if tenant is None else tenant.plan(spec)
        known = frozenset(port for _, port in spec.met)
        canaries = Canaries(_own_places(plan), known) if spec.selftest and self.kind != OPEN else None
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)  # init becomes our child when A has ended
        ours, theirs = control.pair()
        front = os.getpid()
        outer = os.fork()
        if outer == 0:
            os.close(ours)
            _Child(self.kind, front, theirs, spec, plan, canaries, finish, tenant, late=late).run()
        os.close(theirs)
        shares = None if self.kind == OPEN else tuple(os.path.realpath(share.path) for share in spec.shares)
        pausing = spec.port if self.kind == NETNS and tenant is None else 0
        construction = Construction(ours, outer, None, shares, detours(spec.met, spec.port), tenant, pausing)
        return Begun(construction, canaries, plan)


def _with_streams(spec: LaunchSpec) -> LaunchSpec:
    if spec.stdio is not None:
        return spec
    from tidegate.holds.stdio import plan_stdio

    return spec.replace(stdio=plan_stdio())


def _run_init() -> Finish:
    from tidegate.holds.init import run_init

    def finish(wire: int, spec: LaunchSpec, enter: Callable[[], None], test: Callable[[], None]) -> NoReturn:
        run_init(wire, argv=spec.argv, env=spec.env, cwd=spec.cwd, stdio=spec.stdio, enter=enter, selftest=test)

    return finish


class EarlyHold(NamespaceHold):
    """A hold that can be built while the caller still finds out the command's variables and whom it is to trust."""

    def begin(self, spec: LaunchSpec) -> Begun:
        """Begin to build the hold of this spec; its `env` decides the view, its `trust` does not count.

        Raises:
            StartError: where that cannot be; nothing is left then.
        """
        return self._begin(_with_streams(spec), _run_init(), late=True)


class _Child:
    """The child's half: A until the second fork, init after it."""

    def __init__(
        self,
        kind: str,
        front: int,
        wire: int,
        spec: LaunchSpec,
        plan: Plan,
        canaries: Canaries | None,
        finish: Finish,
        tenant: Tenant | None,
        *,
        late: bool,
    ) -> None:
        self._kind = kind
        self._late = late
        self._tenant = tenant
        self._wire = wire
        self._front = front
        self._spec = spec
        self._plan = plan
        self._targets = canaries.targets if canaries else []
        self._word = canaries.word if canaries else b""
        self._finish = finish

    def run(self) -> NoReturn:
        stage = "unshare"
        try:
            from tidegate.holds.init import fresh_signals

            fresh_signals()
            capabilities.die_with_parent()
            if os.getppid() != self._front:
                os._exit(0)  # it was gone before we asked
            kept = [one.map for one in self._plan.mapped]
            control.close_all_but((self._wire, *kept, *(self._spec.stdio.keep() if self._spec.stdio else ())))
            own = userns.namespaces(network=self._kind != OPEN)
            linux.unshare(own if self._tenant is None else self._tenant.namespaces)
            stage = "fork"
            named, naming = os.pipe()
            init = os.fork()
            if init == 0:
                os.close(naming)
                self._be_init(named)
            control.send(self._wire, f"unshared {init}")
            os.write(naming, b".")
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the front is told and this process ends)
            control.send_failed(self._wire, stage, error)
        os._exit(1)

    def _be_init(self, named: int) -> NoReturn:
        stage = "loopback"
        try:
            linux.prctl(linux.PR_SET_NAME, linux.path("tidegate-init"))
            if self._kind == NETNS and self._tenant is None:
                network.raise_loopback()
                stage = "listener"
                made = [(PROXY, network.listen(self._spec.port))]
                made += [(MET, network.listen(self._spec.port, met_at(n))) for n in range(len(self._spec.met))]
                if self._spec.published:
                    made += [(MOULD, descriptor) for descriptor in network.moulds()]
                if self._spec.capture != OFF:
                    stage = "capture"
                    made += self._capture()
                control.send(self._wire, " ".join(["sockets", *(role for role, _ in made)]), [fd for _, fd in made])
                for _, descriptor in made:
                    os.close(descriptor)
            if not os.read(named, 1):
                os._exit(0)  # A was killed before it told the front of us: neither would ever hear of the other
            os.close(named)
            received = control.receive(self._wire)
            if received is None or received[0] != "mapped":
                os._exit(0)
            stage = "view"
            build(self._plan, self._rest if self._late else tuple)
            if self._spec.ssh_agent:
                stage = "agent"
                self._offer_agent()
            self._finish(self._wire, self._spec, self._enter, self._test)
        except BaseException as error:  # noqa: BLE001 (see above)
            control.send_failed(self._wire, stage, error)
        os._exit(1)

    def _rest(self) -> tuple[NameFile, ...]:
        """Wait for what the front did not know when it forked us; it ends us where it cannot find that out."""
        received = control.receive(self._wire)
        if received is None or received[0] != "rest":
            os._exit(0)
        env, files = taken_in(received[1][0])
        self._spec = self._spec.replace(env=env)
        return files

    def _offer_agent(self) -> None:
        """Make the socket of the ssh agent in a folder of the task's own, and tell its programs where it is."""
        path, descriptor = unix_socket.listen(_own_places(self._plan))
        control.send(self._wire, f"sockets {SSH_AGENT}", (descriptor,))
        os.close(descriptor)
        self._spec.env["SSH_AUTH_SOCK"] = path  # the child's own copy

    def _capture(self) -> list[tuple[str, int]]:
        spec = self._spec
        return capture.capture(spec.capture, spec.port, spec.capture_ports, loopback=self._plan.asks_loopback)

    def _enter(self) -> None:
        if self._tenant is not None:
            self._tenant.give_streams()
        listener = confine.enter(self._kind, self._plan.owner)
        if listener is not None:
            control.send(self._wire, "watch", (listener,))
            os.close(listener)

    def _test(self) -> None:
        linux.prctl(linux.PR_SET_DUMPABLE, 1)  # the watcher takes our sockets; nobody else is there yet
        self._test_all()
        capabilities.close_to_others()

    def _test_all(self) -> None:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
            selftest.check_confinement(status.read())
        if self._kind != OPEN:
            selftest.check_watcher()
        if not self._spec.selftest:
            return
        selftest.check_sockets(self._kind)
        captured = self._kind == NETNS and self._spec.capture != OFF
        selftest.check_canaries(self._targets, self._word, captured=captured)
        if captured:
            capture_proof.check_capture()
        if self._kind == NETNS:
            selftest.ask_gate(self._spec.port)


def _end(wire: int, _spec: LaunchSpec, enter: Callable[[], None], test: Callable[[], None]) -> NoReturn:
    """What init does in a probe: all but a command."""
    enter()
    test()
    control.send(wire, "probed")
    control.receive(wire)
    os._exit(0)


def _own_places(plan: Plan) -> Sequence[str]:
    """Where a socket with a path goes: a folder that the task gets its own of, best a small one."""
    wanted = sorted(plan.replaced, key=lambda path: (path == SHARED_MEMORY, not is_within(path, "/run"), path))
    return [path for path in wanted if not any(is_within(path, one.path) for one in plan.bound)]
