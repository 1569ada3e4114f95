"""The holds `docker` and `podman`: a command in a container whose only way out is the gate (HLD-4).

    transport.open ──► the network is there, the gate serves it, and the fence is proven
    create ──────────► the worker's container, looked at, not started
    fork watcher ────► who answers for its connections (watching.py), once it starts
    fork init ───────► the same init as of the namespace holds (holds/init.py), whose command is the engine's
                       `start --attach`: terminal, streams and exit status are the container's
    `start` ─────────► the worker's first instruction

Rules of the file: launch returns a task or leaves nothing. What ends the containers is the keeper, also when the front
is killed. A signal goes to the container by its engine, not to the engine's program.

What it does not do, and the namespace holds do: an ssh agent inside, job control across the border (Ctrl-Z is the
container's own affair).
"""

from __future__ import annotations

import os
import signal

from tidegate.holds import capture, control, linux, messages
from tidegate.holds.container import owner, relays
from tidegate.holds.container.engine import LABEL_OWNER, LABEL_RUN, PODMAN, Engine
from tidegate.holds.container.keeper import Keeper
from tidegate.holds.container.transport import Way
from tidegate.holds.container.view import trust_sources
from tidegate.holds.container.work_folder import WorkFolder
from tidegate.holds.container.worker import create_worker
from tidegate.holds.hold import Container, LaunchSpec, RunningTask
from tidegate.holds.inside import PORTS
from tidegate.holds.plan import make_plan
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from tidegate.holds.container.transport import Channel, Transport
    from tidegate.holds.container.watching import Watching
    from tidegate.holds.inside import TaskSockets

_DETACH = "ctrl-^,ctrl-\\,ctrl-^,ctrl-\\,ctrl-^"  # ctrl-p, which people type, would begin the default

_ENGINES_OWN = frozenset(code << 8 for code in (1, 125, 126, 127))
"""How `start` ends where it cannot start a container; commands may end so, too."""


class ContainerTask(RunningTask):
    """A command in a container. `pid` is the init that attends it; `kill` and `wait` end the containers, too."""

    def __init__(
        self,
        pid: int,
        control_fd: int,
        pty_master: int | None,
        watcher: int,
        keeper: Keeper,
        channel: Channel,
        way: Way,
    ) -> None:
        super().__init__(pid, control_fd, pty_master, watcher)
        self.way = channel.descriptor
        self.kept = channel.kept
        self.life = channel.life
        self.shut = channel.shut
        self.serve_again = self._serve_again
        self._wanted = way
        self._channel = channel  # what it holds open is the way: it lasts as long as the task
        self._keeper = keeper

    def _serve_again(
        self,
        deliver: Callable[[TaskSockets], None],
        met: tuple[tuple[str, int], ...],
        capture_ports: tuple[int, ...],
    ) -> None:
        self._channel.serve_again(self._wanted.replace(met=met, capture_ports=capture_ports), deliver)

    def wait(self) -> int:
        """Wait for the end of init and have the containers removed."""
        try:
            return super().wait()
        finally:
            self._keeper.end()


class ContainerHold:
    """One engine as a hold."""

    has_gate = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.engine = Engine(name)

    def probe(self) -> StartError | None:
        """Try the transport that this engine has with a real container."""
        try:
            return self._transport(Container("")).probe(self.engine)
        except StartError as error:
            return error

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None) -> RunningTask:
        """Make the containers and prove the way; see Hold.launch."""
        wish = spec.container
        if wish is None or deliver is None:
            raise StartError("a container needs an image", fix="--image IMAGE", code="container-image")
        if spec.ssh_agent:
            raise StartError(
                f"--ssh-key does not work with --hold {self.name}: the agent is outside the container",
                fix="leave --ssh-key out, or use --hold netns",
                code="container-agent",
            )
        if not linux.supported():
            raise messages.unknown_machine()
        if spec.capture == PORTS and capture.too_many(spec.capture_ports):
            raise messages.too_many_ports(capture.MOST_PORTS)
        if spec.stdio is None:
            from tidegate.holds.stdio import plan_stdio

            spec = spec.replace(stdio=plan_stdio())
        engine = self.engine
        if not engine.has_image(wish.image):
            raise engine.without_image(wish.image)
        self.sweep(wish.state)
        plan = make_plan(spec.replace(trust=()), os.geteuid())
        name = f"tidegate-{spec.run_id or os.getpid()}-{os.urandom(3).hex()}"
        transport = self._transport(wish)
        labels = {LABEL_RUN: spec.run_id, LABEL_OWNER: owner.me()}
        folder = WorkFolder(wish.state)
        channel: Channel | None = None
        watching: Watching | None = None
        try:
            way = _way(spec, name, labels, folder.path)
            channel = transport.open(engine, way, deliver)
            watching = _watching(engine, spec, folder.path)
            worker = create_worker(
                engine, spec, plan, channel, name=name, labels=labels, folder=folder.path, watching=watching
            )
        except BaseException as error:
            if watching is not None:
                watching.close()
            if channel is not None:
                channel.close()
            folder.remove()
            failed = isinstance(error, StartError) and error.code not in relays.NOT_CARRIED
            if failed and channel is None and not wish.transport:
                from tidegate.holds.container.choice import forget

                forget(engine, wish.state)
            raise
        return self._attend(spec, worker, channel, folder, way, watching)

    def sweep(self, state: str = "") -> None:
        """Remove the containers whose owner has ended."""
        from tidegate.holds.container.sweep import sweep

        sweep(self.engine, state=state)

    def _transport(self, wish: Container) -> Transport:
        from tidegate.holds.container.choice import choose

        return choose(self.engine, wish.transport, state=wish.state, image=wish.relay_image)

    def _attend(
        self,
        spec: LaunchSpec,
        worker: str,
        channel: Channel,
        folder: WorkFolder,
        way: Way,
        watching: Watching | None,
    ) -> ContainerTask:
        def finish() -> None:
            channel.close(worker)
            folder.remove()

        keeper = Keeper(finish)
        watcher = watching.begin() if watching is not None else 0
        ours, theirs = control.pair()
        pid = os.fork()
        if pid == 0:
            keeper.let_go()
            os.close(ours)
            self._be_init(theirs, spec, worker, watching)
        os.close(theirs)
        if watching is not None:
            watching.close()
        master: int | None = None
        while (received := control.receive(ours)) is not None:
            message, descriptors = received
            if message == "pty":
                master = descriptors[0]
            elif message == "probed":
                task = ContainerTask(pid, ours, master, watcher, keeper, channel, way)
                task.mounted = trust_sources(spec.trust, folder.path)
                return task
            elif message.startswith("failed "):
                break
        for child in (pid, watcher) if watcher else (pid,):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(ours)
        keeper.end()
        raise messages.explain(*control.parse_failed(message)) if received else messages.ended_early()

    def _be_init(self, wire: int, spec: LaunchSpec, worker: str, watching: Watching | None) -> NoReturn:
        from tidegate.holds.init import run_init

        engine = self.engine
        attach = ["start", "--attach", "--interactive", f"--detach-keys={_DETACH}"]
        if engine.name == PODMAN:
            attach.append("--sig-proxy=false")

        def passed_on(number: int) -> None:
            engine.signal(worker, number)

        def ran(status: int) -> bool:
            if watching is not None and not watching.has_begun():
                return False
            return status not in _ENGINES_OWN or engine.has_begun(worker)

        run_init(
            wire,
            argv=(*engine.command, *attach, worker),
            env=engine.environ,
            cwd="/",
            stdio=spec.stdio,
            pass_on=passed_on,
            ran=ran,
        )


def _watching(engine: Engine, spec: LaunchSpec, folder: str) -> Watching | None:
    """What the worker is given so that its connections are watched; where that cannot be, the person is told."""
    from tidegate.holds.container import watching

    why = watching.why_not(engine)
    if not why:
        return watching.Watching(engine, folder, [os.path.realpath(share.path) for share in spec.shares])
    relays.warn(f"{watching.UNWATCHED} ({why}; docs/holds.md)")
    return None


def _way(spec: LaunchSpec, name: str, labels: dict[str, str], folder: str) -> Way:
    return Way(
        name=name,
        labels=labels,
        folder=folder,
        port=spec.port,
        capture=spec.capture,
        capture_ports=spec.capture_ports,
        met=spec.met,
        published=spec.published,
        selftest=spec.selftest,
        state=spec.container.state if spec.container is not None else "",
    )
