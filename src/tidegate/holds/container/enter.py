"""Transport `enter`: the gate's sockets are made inside the namespace of a holder, which the worker then joins (HLD-4).

    hold (front)                        a child, one thread                    engine
    create and start the holder ────────────────────────────────────────────► holder: network none
    fork ─────────────────────────────► join its user namespace (rootless), its network
                                        loopback, listeners, capture
    deliver ◄──── sockets + fds ─────── the gate serves from now on
    `served` ─────────────────────────► the self-test: canaries, capture, a name that is never allowed
    `proven` ◄────────────────────────  ends

Rules of the file: the child is single-threaded, since only such a process may join a user namespace (setns(2)), and
executes nothing; all that it needs is imported before it leaves this machine's network. Nothing of it stays inside. The
holder is looked at before (it is confined as the worker will be) and after (it still runs: holder.py).
"""

from __future__ import annotations

import _socket
import errno
import os

from tidegate.holds import capture, capture_proof, control, messages, network, selftest
from tidegate.holds.canaries import Canaries
from tidegate.holds.container import holder
from tidegate.holds.container.confinement import check_process, confining
from tidegate.holds.container.engine import LABEL_PART
from tidegate.holds.container.transport import ENTER
from tidegate.holds.inside import GATE4, MET, MOULD, OFF, ON, PROXY, TaskSockets, met_at
from tidegate.holds.namespaces import close_namespaces, go_into, open_network
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.life import Life
    from tidegate.holds.container.transport import Channel, Way
    from tidegate.holds.namespaces import Namespaces

_KNOCKED = (_socket.AF_INET, _socket.AF_INET6, _socket.AF_UNIX)  # the holder has tried the others
HOST = "tidegate"
"""The host name inside."""


class Entered:
    """A namespace that the gate serves."""

    descriptor = -1

    life: Life | None = None

    def __init__(self, engine: Engine, container: str, name_server: str, namespaces: Namespaces, way: Way) -> None:
        self.network: tuple[str, ...] = ("--network", f"container:{container}")
        self.name_server = name_server
        self.container = container
        self.kept = tuple(descriptor for descriptor, _ in namespaces)
        self._namespaces = namespaces
        self._ports = ports_of(way)
        self._engine = engine
        self._pid = os.getpid()

    def shut(self, *, shut: bool) -> bool:
        """Reset connections instead of leaving them with a gate that does not answer; or no more."""
        from tidegate.holds import pause

        return pause.refuse(self._namespaces, self._ports) if shut else pause.admit(self._namespaces)

    def serve_again(self, way: Way, deliver: Callable[[TaskSockets], None]) -> None:
        """Make the gate's sockets anew, in this very network; see Channel.serve_again."""
        serve_inside(self._namespaces, way, deliver, again=True)

    def close(self, *others: str) -> None:
        """Remove the holder, after or with the others. What served it is the gate's."""
        if os.getpid() == self._pid:
            close_namespaces(self._namespaces)
            self._namespaces = []
        self._engine.discard(*others, self.container)


class Entering:
    """See the head of the file."""

    name = ENTER
    captures = True

    def probe(self, engine: Engine) -> StartError | None:
        """Make a holder, go into its network and end it."""
        from tidegate.holds.container import owner
        from tidegate.holds.container.engine import LABEL_OWNER
        from tidegate.holds.container.transport import Way
        from tidegate.holds.container.work_folder import WorkFolder

        folder = WorkFolder()
        try:
            name = f"tidegate-probe-{os.getpid()}-{os.urandom(4).hex()}"
            labels = {LABEL_OWNER: owner.me()}
            way = Way(name=name, labels=labels, folder=folder.path, port=3128, capture=ON, selftest=False)
            self.open(engine, way, lambda _sockets: None).close()
        except StartError as error:
            return error
        finally:
            folder.remove()
        return None

    def open(self, engine: Engine, way: Way, deliver: Callable[[TaskSockets], None]) -> Channel:
        """Make the network, hand its sockets over and prove it; see Transport.open."""
        container = start_holder(engine, way)
        namespaces: Namespaces = []
        try:
            pid = engine.pid(container)
            check_here(engine, container, pid)
            namespaces = namespaces_of(pid, rootless=engine.facts().rootless)
            serve_inside(namespaces, way, deliver)
            check_process(engine.pid(container), pid)
        except BaseException:
            close_namespaces(namespaces)
            engine.remove(container)
            raise
        return Entered(engine, container, GATE4 if way.capture != OFF else "", namespaces, way)


ENTERING = Entering()


def ports_of(way: Way) -> tuple[int, ...]:
    """Where the gate is to be found in this network: its own port, and services of this machine that stand there."""
    return tuple(dict.fromkeys((way.port, *(port for _, port in way.met))))


def check_here(engine: Engine, container: str, pid: int) -> None:
    """See that the number an engine gave is this container's first process here, and nobody else's.

    An engine of another machine (DOCKER_HOST), or outside the PID namespace that we are in, counts its own processes:
    the same number is something else here, whose network must not be entered. The kernel's table of its mounts names
    the container, since every engine mounts files of a container's own into it; so does its control group.

    Raises:
        StartError: where it is not. What may not be looked at is left to `join`, which may not enter it either.
    """
    seen = ""
    try:
        for name in ("cgroup", "mountinfo"):
            with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
                seen += file.read()
    except PermissionError:
        return
    except OSError:
        pass  # there is none with this number
    if container not in seen:
        raise StartError(
            f"{engine.name} made a container whose processes are not to be seen from here: it runs on another machine,"
            " or outside the container that tidegate is in",
            fix=f"run tidegate where {engine.name} runs",
            code="engine-elsewhere",
        )


def start_holder(engine: Engine, way: Way) -> str:
    """Start the container that has the network of the task; its id."""
    labels = {**way.labels, LABEL_PART: holder.PART}
    options = [
        *("--name", f"{way.name}-net", "--hostname", HOST, "--network", "none", "--read-only"),
        *confining(engine, way.folder),
        *(part for name, value in labels.items() for part in ("--label", f"{name}={value}")),
        *("--log-driver", "none", "--restart", "no"),
    ]
    try:
        return engine.begin(holder.image_name(), options, (holder.PROGRAM,))
    except StartError as error:  # not asked before: it is missing once
        if error.code != "image-missing":
            raise
    holder.make_image(engine)
    return engine.begin(holder.image_name(), options, (holder.PROGRAM,))


def serve_inside(
    namespaces: Namespaces, way: Way, deliver: Callable[[TaskSockets], None], *, again: bool = False
) -> None:
    """Make the sockets in this network, hand them over, and have the fence tried from there.

    `again`: it was done before, and its sockets are gone with who served them.

    Raises:
        StartError: when that cannot be done, or the fence leaks.
    """
    canaries = Canaries((), frozenset(port for _, port in way.met)) if way.selftest else None
    ours, theirs = control.pair()
    child = os.fork()
    if child == 0:
        os.close(ours)
        targets = [one for one in canaries.targets if one[0] in _KNOCKED] if canaries else []
        _be_inside(theirs, namespaces, way, targets, canaries.word if canaries else b"", again=again)
    os.close(theirs)
    try:
        _attend(ours, deliver)
        heard = canaries.heard() if canaries else []
        if heard:
            raise messages.canary_heard(heard)
    finally:
        os.close(ours)
        os.waitpid(child, 0)
        if canaries:
            canaries.close()


def _attend(wire: int, deliver: Callable[[TaskSockets], None]) -> None:
    while True:
        received = control.receive(wire)
        if received is None:
            raise messages.ended_early()
        message, descriptors = received
        try:
            word, _, rest = message.partition(" ")
            if word == "failed":
                raise _explain(*control.parse_failed(message))
            if word == "proven":
                return
            if word == "sockets":
                deliver(TaskSockets(tuple(rest.split()), tuple(descriptors)))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if word == "sockets":
            control.send(wire, "served")


def _explain(stage: str, code: int, text: str) -> StartError:
    if stage == "join":
        return StartError(
            f"the container's network cannot be entered from here ({os.strerror(code) if code else text})",
            fix="that takes root for an engine of root's, or your own rootless engine; or --transport relay",
            code="transport-enter",
        )
    if stage == "listener" and code == errno.EADDRINUSE:
        return StartError(
            "somebody listens where the gate is to be, in the container's own network",
            fix="end that first: a program in the container, or another `tidegate attach` to it",
            code="hold-listener",
        )
    if stage == "capture" and code == errno.EEXIST:
        return StartError(
            "the container's network was told of a gate before, by a `tidegate attach` that has ended",
            fix="start the container anew, and attach to that",
            code="hold-listener",
        )
    return messages.explain(stage, code, text)


def _be_inside(
    wire: int,
    namespaces: Namespaces,
    way: Way,
    targets: Sequence[tuple[int, int, object]],
    word: bytes,
    *,
    again: bool,
) -> NoReturn:
    stage = "join"
    try:
        from tidegate.holds.init import fresh_signals

        fresh_signals()
        control.close_all_but((wire, *(descriptor for descriptor, _ in namespaces)))
        go_into(namespaces)
        stage = "loopback"
        network.raise_loopback()
        stage = "listener"
        made = [(PROXY, network.listen(way.port))]
        made += [(MET, _met(way, number)) for number in range(len(way.met))]
        if way.published:
            made += [(MOULD, descriptor) for descriptor in network.moulds()]
        if way.capture != OFF:
            stage = "capture"
            made += capture.capture(way.capture, way.port, way.capture_ports, again=again)
        control.send(wire, " ".join(["sockets", *(role for role, _ in made)]), [fd for _, fd in made])
        for _, descriptor in made:
            os.close(descriptor)
        if control.receive(wire) is not None:
            stage = "selftest"
            if way.selftest:
                _test(way, targets, word)
            control.send(wire, "proven")
    except BaseException as error:  # noqa: BLE001  (whatever it is, the front is told and this process ends)
        control.send_failed(wire, stage, error)
    os._exit(0)


def namespaces_of(pid: int, *, rootless: bool) -> Namespaces:
    """Open what leads into the network namespace of a process; for a rootless engine through its user namespace.

    Raises:
        StartError: where this user may not.
    """
    try:
        return open_network(pid, through_user=rootless)
    except OSError as error:
        raise _explain("join", error.errno or 0, "") from None


def join(pid: int, *, rootless: bool) -> None:
    """Go into the network namespace of a process.

    Raises:
        StartError, OSError: when the kernel does not let us.
    """
    namespaces = namespaces_of(pid, rootless=rootless)
    go_into(namespaces)


def _met(way: Way, number: int) -> int:
    """What stands for a service of this machine, at its own place: in a container nobody sees who connects to it.

    A place that a literal names is that one's, as in every hold; `localhost` beside it stands where nobody is led.
    """
    host, port = way.met[number]
    if ":" in host:
        return capture.listen(_socket.AF_INET6, host, port)
    if host != "localhost":
        return network.listen(port, host)
    if (network.LOOPBACK, port) in way.met:
        return network.listen(way.port, met_at(number))
    return network.listen(port)


def _test(way: Way, targets: Sequence[tuple[int, int, object]], word: bytes) -> None:
    captured = way.capture != OFF
    selftest.check_canaries(targets, word, captured=captured)
    if captured:
        capture_proof.check_capture()
    selftest.ask_gate(way.port)
