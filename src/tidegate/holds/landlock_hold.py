"""The hold `landlock`: for machines, and containers, where no namespace can be made (HLD-2). It needs no right at all.

front          init (forked once)                         the command (and, before it, the self-test)
fork ────────► drop rights, scope(), filter ── watch+fd ─► the watcher answers from now on
               fork the guard                             confine(): files, the gate's port, a scope inside init's
               self-test in a child ── probed ─► front
`start` ─────► fork ────────────────────────────────────► exec

There is no PID namespace whose end would end everything. But a signal is scoped: what init sends to *all* reaches all
that came from it and nobody else, in one step that no fork slips through (kill(2) with -1). Init does that when the
command has ended and when the front is gone; the guard, a child of init's that only waits for init to end, does it
when init was killed. Both stand in a Landlock domain around the command's, so the command can signal neither, nor
trace them, nor the front, the watcher or the gate, nor anybody else of this machine. That this scope holds is tried
before it is relied on.

What it shares with the machine, and what follows from that, is docs/holds.md.
"""

from __future__ import annotations

import _socket
import os

from tidegate.holds import control, landlock, landlock_watcher, linux, messages
from tidegate.holds.canaries import Canaries
from tidegate.holds.construction import Construction, check_silence
from tidegate.holds.hold import RunningTask
from tidegate.holds.inside import ANNOUNCED, OFF, PROXY, SSH_AGENT, TaskSockets
from tidegate.holds.landlock_init import Init, end, run_command
from tidegate.holds.landlock_pause import Pause
from tidegate.holds.landlock_view import make_view
from tidegate.holds.network import BACKLOG, LOOPBACK
from tidegate.holds.own_folder import (
    RUN,
    TMP,
    TRUST_FOLDER,
    make_own_folder,
    put_trust,
    remove_own_folder,
    sweep_own_folders,
)
from tidegate.holds.plan import TEMPORARY, make_plan
from tidegate.holds.seccomp import LANDLOCK
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from tidegate.holds.hold import LaunchSpec


_IN_SIGHT = ("/tmp", "/run")  # noqa: S108 (where a canary is that must not be reached)


class LandlockTask(RunningTask):
    """A task that is held so. Its own folder goes with it."""

    guard = 0
    folder = ""

    def wait(self) -> int:
        """Wait for the end of init, and for the guard's where init could not see to the rest itself."""
        first = self._status is None
        status = super().wait()
        if first:
            _await_guard(self.guard)
            remove_own_folder(self.folder)
        return status


class LandlockHold:
    """The hold, and the port of this machine that its gate will have."""

    name = LANDLOCK
    has_gate = True

    def __init__(self) -> None:
        self._listener: _socket.socket | None = None

    def own_port(self) -> int:
        """The port of the machine's 127.0.0.1 at which the gate will be, from now on.

        Raises:
            OSError: when none is to be had.
        """
        if self._listener is None:
            wire = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
            wire.bind((LOOPBACK, 0))
            wire.listen(BACKLOG)
            self._listener = wire
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        """Give the port back."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def probe(self) -> StartError | None:
        """Build the whole hold around nothing and end it; why that cannot be done here, or None."""
        from tidegate.holds.hold import LaunchSpec

        try:
            task = self._launch(LaunchSpec(argv=(), env={"HOME": "/"}, cwd="/", selftest=False), None, end)
        except StartError as error:
            return error
        finally:
            self.close()
        task.kill()
        task.wait()
        return None

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None) -> RunningTask:
        """Build the hold and prove it; see Hold.launch."""
        if spec.stdio is None:
            from tidegate.holds.stdio import plan_stdio

            spec = spec.replace(stdio=plan_stdio())
        return self._launch(spec, deliver, run_command)

    def sweep(self) -> None:
        """Remove folders of tasks whose front is gone."""
        sweep_own_folders()

    def _launch(
        self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None, finish: Callable[[Init], NoReturn]
    ) -> RunningTask:
        _refuse(spec)
        wanted = spec.env.get("TMPDIR", "")
        sweep_own_folders(wanted)
        port = self.own_port()
        plan = make_plan(spec.replace(trust=()), os.geteuid())
        folder = make_own_folder(wanted)
        canaries = Canaries(_IN_SIGHT, frozenset((port,))) if spec.selftest else None
        pause = Pause(port)
        gate_end = watcher_end = -1
        try:
            env = (
                spec.env
                | dict.fromkeys(TEMPORARY, os.path.join(folder, TMP))
                | {"XDG_RUNTIME_DIR": os.path.join(folder, RUN)}
            )
            spec = spec.replace(port=port, env=env)
            if spec.trust:
                place = put_trust(folder, spec.trust)
                trusting = {name: text.replace(TRUST_FOLDER, place) for name, text in spec.env.items()}
                spec = spec.replace(env=trusting, trust=())
            view = make_view(plan, folder)
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
            gate_end, watcher_end = control.pair()
            ours, theirs = control.pair()
            front = os.getpid()
            post = landlock_watcher.Post(
                port, watcher_end, view.levels, [os.path.realpath(one.path) for one in spec.shares], pause
            )
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                Init(front, theirs, spec, view, canaries, finish).run()
            os.close(theirs)
            building = _Building(ours, pid, deliver, folder)
            try:
                building.watch(post)
                if deliver is not None:
                    listener = os.dup(self._listener.fileno()) if self._listener is not None else -1
                    try:
                        deliver(TaskSockets((PROXY, ANNOUNCED), (listener, gate_end)))
                    finally:
                        os.close(listener)
                task = building.await_proof()
                if canaries:
                    check_silence(canaries)
                init = task.pid
                task.shut = lambda *, shut: pause.shut(init, shut=shut)
                task.after.append(pause.close)
            except BaseException:
                building.tear_down()
                raise
        except BaseException:
            pause.close()
            remove_own_folder(folder)
            raise
        finally:
            for descriptor in (gate_end, watcher_end):
                if descriptor >= 0:
                    os.close(descriptor)
            if canaries:
                canaries.close()
        return task


def _refuse(spec: LaunchSpec) -> None:
    """Say what this hold has not, by name.

    Raises:
        StartError: where it is asked for, or the kernel has not what it needs.
    """
    if not linux.supported():
        raise messages.unknown_machine()
    found = landlock.abi()
    if found < landlock.SCOPE_ABI:
        raise messages.no_landlock(found)
    if spec.capture != OFF:
        raise messages.not_without_namespaces("--capture", "leave it out: programs use the proxy settings")
    if spec.published:
        raise messages.not_without_namespaces("--publish", "a command in it has no servers; use --hold netns or docker")


class _Building(Construction):
    """The front's half: there is no namespace to be mapped into, and init is our child from the beginning."""

    def __init__(self, wire: int, init: int, deliver: Callable[[TaskSockets], None] | None, folder: str) -> None:
        super().__init__(wire, 0, deliver, None, {}, None)
        self._init = init
        self._folder = folder
        self._guard = 0

    def watch(self, post: landlock_watcher.Post) -> None:
        self._watcher, self._to_watcher = landlock_watcher.start(post)

    def _proved(self) -> LandlockTask:
        task = LandlockTask(self._init, self._wire, self._pty, self._watcher)
        task.guard = self._guard
        task.folder = self._folder
        return task

    def _take(self, word: str, rest: str, descriptors: list[int]) -> None:
        if word == "pty":
            self._pty = descriptors.pop()
        elif word == "watch":
            self._guard = int(rest)
            self._tell_watcher(descriptors)
        elif word == "sockets" and self._deliver is not None:
            self._deliver(TaskSockets((SSH_AGENT,), tuple(descriptors)))
        for descriptor in descriptors:
            os.close(descriptor)

    def _tell_watcher(self, descriptors: list[int]) -> None:
        try:
            control.send(self._to_watcher, f"watch {self._init} {self._guard}", descriptors)
        except OSError:
            return  # it has ended; the self-test says so
        finally:
            os.close(self._to_watcher)
            self._to_watcher = -1

    def tear_down(self) -> None:
        super().tear_down()
        _await_guard(self._guard)


def _await_guard(pid: int) -> None:
    """Wait until the guard has ended what init could not; where init did, it has reaped the guard, too."""
    if pid:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            return
