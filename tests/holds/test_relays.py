"""The transports `relay` and `vm` with real engines, a real gate and the toy internet (HLD-4 (b) and (c), HLD-7)."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import BOTH, IMAGE
from tests.product import Product
from tests.stalls import Stopwatch
from tests.unit.gate.kit import Serving, policy_of, wait
from tidegate.cli.main import main
from tidegate.holds.container import door_link, owner, relay_image, relays, vm_transport
from tidegate.holds.container.engine import LABEL_OWNER, LABEL_RUN, Engine
from tidegate.holds.container.relay_transport import RelayTransport
from tidegate.holds.container.transport import Way
from tidegate.holds.container.vm_transport import VmTransport
from tidegate.holds.inside import OFF
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tidegate.holds.container.engine import Facts
    from tidegate.holds.container.transport import Channel
    from tidegate.holds.inside import TaskSockets

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]
PATIENCE = 60.0
NAMED = (vm_transport.VARIABLE, "DOCKER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")
TRANSPORTS = ("relay", "vm")


class World:
    """One engine with the relay's image, and what leads tasks in it to the gate."""

    def __init__(self, name: str, environ: dict[str, str], folder: Path) -> None:
        # The default network of these engines leads nowhere, as is right for a test; this machine's own does.
        self.engine = Engine(name, {**os.environ, **environ, vm_transport.VARIABLE: "host,127.0.0.1"})
        self.state = folder / "state"
        self.state.mkdir(0o700)
        self.folder = folder
        self.channels: list[Channel] = []
        self.tasks = 0
        self._before = self._all()

    def way(self, **more: Any) -> Way:
        """What one task wants."""
        self.tasks += 1
        place = self.folder / f"task{self.tasks}"
        place.mkdir(0o700)
        fields: dict[str, Any] = {
            "name": f"tidegate-test-{os.getpid()}-{self.tasks}",
            "labels": {LABEL_RUN: f"t{self.tasks}", LABEL_OWNER: owner.me()},
            "folder": str(place),
            "port": 3128,
            "capture": OFF,
            "state": str(self.state),
        }
        return Way(**(fields | more))

    def open(self, transport: str, gate: Serving, way: Way | None = None, **more: Any) -> Channel:
        """Open a way to the gate's task."""
        one = {"relay": RelayTransport, "vm": VmTransport}[transport](**more)

        def deliver(sockets: TaskSockets) -> None:
            (fd,) = sockets.descriptors
            gate.on_thread(lambda: gate.gate.add_listener(os.dup(fd), gate.task))

        channel = one.open(self.engine, way or self.way(), deliver)
        self.channels.append(channel)
        return channel

    def sh(self, channel: Channel, script: str) -> str:
        """What a shell script prints in a worker's container behind the channel."""
        words = ["run", "--rm", "--pull=never", *channel.network, IMAGE, "sh", "-c", script]
        return self.engine.run(*words)

    def left(self) -> list[str]:
        """Every container and volume of tidegate's that this engine has, but for what another test left."""
        return [one for one in self._all() if one not in self._before]

    def _all(self) -> list[str]:
        mark = ("--filter", f"label={LABEL_OWNER}")
        containers = self.engine.run("ps", "--all", "--quiet", "--no-trunc", *mark).split()
        return [*containers, *self.engine.run("volume", "ls", "--quiet", *mark).split()]

    def close(self) -> None:
        """End all of it."""
        for channel in self.channels:
            channel.close()
        for process in door_link._started:
            process.kill()
            process.wait(PATIENCE)
        door_link._started.clear()


@pytest.fixture
def world(engine: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An engine with the relay's image, built by the command; all that was made is gone afterwards."""
    name, environ = engine
    with tempfile.TemporaryDirectory(prefix="tidegate-relays-", dir="/var/tmp") as folder:
        found = World(name, environ, Path(folder))
        if not found.engine.has_image(relay_image.default_image()):
            for key, value in environ.items():
                monkeypatch.setenv(key, value)
            assert main(["relay-image", "build", "--engine", name]) == 0
            assert main(["relay-image", "show", "--engine", name]) == 0
        try:
            yield found
        finally:
            found.close()
        assert found.left() == []


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Start gates: `serve("a.test:80")`; stopped and checked at the end."""
    with contextlib.ExitStack() as running:  # one that does not stop keeps no other from it

        def start(*allow: str, **options: Any) -> Serving:
            serving = Serving(policy_of(*allow), **options)
            running.callback(serving.stop)
            return serving

        yield start


@pytest.fixture
def gate(lab: Lab, serve: Callable[..., Serving]) -> Serving:
    """A gate that lets one name pass, which answers."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    lab.origin("http", "1.2.3.5", 80, body="it is b.test\n")
    return serve("a.test:80")


class Person:
    """A person's folder, and `tidegate run` in one engine by one transport."""

    def __init__(self, world: World, transport: str) -> None:
        self.product = Product(world.folder / "person", user=False)
        self.product.environment |= {name: world.engine.environ[name] for name in NAMED if name in world.engine.environ}
        self.words = ["--hold", world.engine.name, "--image", IMAGE, "--transport", transport]

    def start(self, script: str, *options: str) -> subprocess.Popen[str]:
        """Start a shell script."""
        return self.product.start(*self.words, "--capture", "off", *options, "--", "sh", "-c", script)

    def run(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script to its end."""
        words = ("--capture", "off", *options, "--", "sh", "-c", script)
        return self.product.run(*self.words, *words, timeout=120)


def is_told(channel: Channel, seconds: float) -> bool:
    """Whether the owner of a channel hears within so many seconds that it is broken."""
    return bool(select.select([channel.descriptor], [], [], seconds)[0])


THROUGH = "export http_proxy=http://127.0.0.1:3128;"


def assert_closed(world: World, channel: Channel) -> None:
    """What a worker asks of the gate has no answer: its client ends by itself (1), not by a signal or our patience."""
    said = world.sh(channel, f"{THROUGH} timeout 30 wget -q -O- http://a.test/ 2>&1; echo ended with $?")
    assert said.splitlines()[-1] == "ended with 1", said
    assert "it is a.test" not in said


def until_it_serves(world: World, gate: Serving) -> Channel:
    """A way whose certificate lasts just so long that it is still good once a worker has asked by it.

    How long that takes is the machine's matter: where it was too short, it is tried with a longer one.
    """
    for life in (8.0, 20.0, 60.0):
        try:
            channel = world.open("vm", gate, life=life)
        except StartError:
            continue
        if "it is a.test" in world.sh(channel, f"{THROUGH} wget -q -O- http://a.test/ 2>&1; true"):
            return channel
        channel.close()
    raise AssertionError("no way served within a minute")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_gate_is_all_there_is(world: World, gate: Serving, transport: str) -> None:
    """HLD-4: what is allowed answers, what is not is refused by the gate, and loopback is the only interface."""
    channel = world.open(transport, gate)
    said = world.sh(
        channel,
        f"ip link | grep -c mtu; {THROUGH} wget -q -O- http://a.test/; wget -q -O- http://b.test/ 2>&1;"
        " unset http_proxy; timeout 10 wget -q -O- http://1.2.3.5/ 2>&1; echo directly: $?",
    )
    assert said.splitlines()[:2] == ["1", "it is a.test"], said
    assert "403" in said
    assert said.splitlines()[-2:] == [
        "wget: can't connect to remote host (1.2.3.5): Network is unreachable",
        "directly: 1",
    ]
    assert "it is b.test" not in said
    assert not is_told(channel, 0)
    channel.close()
    channel.close()
    assert world.left() == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_much_passes_and_as_it_was(world: World, lab: Lab, gate: Serving, transport: str) -> None:
    """GAT-5: 8 MiB down through the whole way, byte for byte."""
    lab.dns.set("a.test", A=["1.2.3.6"])
    lab.origin("download", "1.2.3.6", 80, size=8 << 20)
    channel = world.open(transport, gate)
    assert world.sh(channel, f"{THROUGH} wget -q -O- http://a.test/ | wc -c").split() == [str(8 << 20)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_task_has_a_way_of_its_own(
    world: World, gate: Serving, serve: Callable[..., Serving], transport: str
) -> None:
    """GAT-2: two tasks in one engine, with two policies; neither sees what the other's lets pass."""
    other = serve("b.test:80", task="t2")
    one, two = world.open(transport, gate), world.open(transport, other)
    script = f"{THROUGH} wget -q -O- http://a.test/; wget -q -O- http://b.test/"
    assert world.sh(one, script + "; true").strip() == "it is a.test"
    assert world.sh(two, script + "; true").strip() == "it is b.test"


def test_the_worker_has_nothing_of_the_way_but_its_port(world: World, gate: Serving) -> None:
    """HLD-4 (c): no certificate, no socket, no volume, no mount, no network of either relay, nor the listener."""
    channel = world.open("vm", gate)
    assert isinstance(channel, vm_transport.Carried)
    assert channel.route is not None
    port = channel.route.port
    said = world.sh(
        channel,
        "ls /run/keys /run/tidegate /relay 2>/dev/null; grep -cE ' /run/(keys|tidegate)' /proc/mounts;"
        f" nc -w 2 127.0.0.1 {port} </dev/null && echo reached; grep -c @ /proc/net/unix; ls /sys/class/net",
    )
    assert said.split() == ["0", "0", "lo"], said
    for name in (channel.relay, channel.carrier):
        assert world.engine.inspect(name)["HostConfig"]["ReadonlyRootfs"]
    near, far = world.engine.inspect(channel.relay), world.engine.inspect(channel.carrier)
    assert near["HostConfig"]["NetworkMode"] == "none"
    assert [one["Destination"] for one in near["Mounts"]] == ["/run/tidegate"]
    assert sorted(one["Destination"] for one in far["Mounts"]) == ["/run/keys", "/run/tidegate"]


def test_the_listener_is_protected_from_every_task(world: World, gate: Serving, serve: Callable[..., Serving]) -> None:
    """ADR-1: a task whose policy names exactly that port of this machine does not reach it."""
    channel = world.open("vm", gate)
    assert isinstance(channel, vm_transport.Carried)
    assert channel.route is not None
    port = channel.route.port
    other = serve(f"127.0.0.1:{port}", task="t2")
    answer = other.raw(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 "), answer


@pytest.mark.parametrize(
    ("transport", "part"), [("relay", "relay"), ("vm", "relay"), ("vm", "carrier"), ("vm", "listener")]
)
def test_the_task_is_told_at_once_that_its_way_is_broken(
    world: World, gate: Serving, transport: str, part: str
) -> None:
    """HLD-7: whatever of the way ends, its owner hears of it at once, and nothing passes any more."""
    channel = world.open(transport, gate)
    assert not is_told(channel, 0.1)
    if part == "listener":
        door_link._started[-1].kill()
    else:
        pid = world.engine.pid(getattr(channel, "container", "") if transport == "relay" else getattr(channel, part))
        os.kill(pid, 9)
    with Stopwatch() as watch:
        assert is_told(channel, 30)
        assert watch.seconds < 3.0
    if part in ("carrier", "listener"):
        assert_closed(world, channel)


def test_after_its_days_the_route_is_gone(world: World, gate: Serving) -> None:
    """HLD-4 (c), HLD-7: the certificate expires while the task runs: the owner is told, and nothing passes."""
    channel = until_it_serves(world, gate)
    assert is_told(channel, 120)
    assert_closed(world, channel)
    log = (world.state / door_link.LOG).read_text()
    assert "seven days" in log


@pytest.mark.parametrize(
    ("transport", "image", "fix"),
    [
        ("relay", "", "tidegate relay-image build --engine "),
        ("vm", "example.test/relay:1", " pull example.test/relay:1"),
    ],
)
def test_a_missing_image_names_the_command_that_makes_it(
    world: World, gate: Serving, monkeypatch: pytest.MonkeyPatch, transport: str, image: str, fix: str
) -> None:
    """HLD-7: exit 78, one line, nothing is left; the neighbour with the image is above."""
    monkeypatch.setattr(relay_image, "default_image", lambda: "localhost/tidegate-relay:not-built")
    with pytest.raises(StartError) as caught:
        world.open(transport, gate, world.way(image=image))
    assert fix in str(caught.value)
    assert caught.value.exit_status == 78
    assert "\n" not in str(caught.value)
    assert world.left() == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_relay_that_does_not_start_stops_the_start(world: World, gate: Serving, transport: str) -> None:
    """HLD-7: an image without the program, or one that ends: a line, and nothing is left."""
    with pytest.raises(StartError) as caught:
        world.open(transport, gate, world.way(image=IMAGE))
    assert caught.value.exit_status == 78
    assert world.left() == []


def test_a_gate_that_lets_everything_pass_stops_the_start(world: World) -> None:
    """HLD-11: what answers at the end of the way has to refuse a name that is never allowed."""

    def deliver(sockets: TaskSockets) -> None:
        program = (
            "import socket\nsock = socket.socket(fileno=0)\nwhile True:\n one = sock.accept()[0]\n one.recv(1000)\n"
            " one.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')\n one.close()"
        )
        processes.append(subprocess.Popen([sys.executable, "-c", program], stdin=sockets.descriptors[0]))

    processes: list[subprocess.Popen[bytes]] = []
    try:
        with pytest.raises(StartError) as caught:
            RelayTransport().open(world.engine, world.way(), deliver)
    finally:
        for process in processes:
            process.kill()
            process.wait(PATIENCE)
    assert caught.value.code == "self-test"
    assert world.left() == []


class Elsewhere(Engine):
    """An engine that says it runs in a virtual machine."""

    def facts(self) -> Facts:
        """What it says."""
        return super().facts().replace(in_vm=True)


def test_the_socket_check_is_a_real_container(world: World) -> None:
    """HLD-4: one that connects; nothing of it stays."""
    assert RelayTransport().probe(world.engine) is None
    assert world.left() == []


@pytest.mark.parametrize(("vm", "code"), [(False, "socket-denied"), (True, "socket-vm")])
def test_a_container_that_cannot_connect_is_an_error_or_a_virtual_machine(
    world: World, monkeypatch: pytest.MonkeyPatch, vm: bool, code: str
) -> None:
    """HLD-4: on this kernel it is SELinux or permissions, a configuration error; `vm` is only for who says so."""
    listen = relays._listen

    def denied(folder: str, name: str) -> Any:
        sock = listen(folder, name)
        os.chmod(os.path.join(folder, name), 0o600)
        return sock

    monkeypatch.setattr(relays, "_listen", denied)
    engine = Elsewhere(world.engine.name, world.engine.environ) if vm else world.engine
    found = RelayTransport().probe(engine)
    assert found is not None
    assert (found.code, found.exit_status) == (code, 78)
    assert "EACCES" in found.what
    assert ("SELinux" in found.fix) is not vm
    assert world.left() == []


def test_a_socket_check_that_does_not_run_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7: an image that cannot try says nothing about sockets."""
    monkeypatch.setattr(relay_image, "default_image", lambda: IMAGE)
    found = RelayTransport().probe(world.engine)
    assert found is not None
    assert found.exit_status == 78
    assert found.code in ("socket-check", "engine")
    assert world.left() == []


def test_an_engine_in_no_virtual_machine_does_not_get_the_third_transport(world: World) -> None:
    """HLD-4: `vm` is taken only where the engine says so; forced, it is."""
    found = VmTransport().probe(world.engine)
    assert found is not None
    assert found.code == "transport-vm"
    assert VmTransport().probe(Elsewhere(world.engine.name, world.engine.environ)) is None


def test_relays_of_an_owner_that_was_killed_end_by_themselves(world: World, gate: Serving) -> None:
    """HLD-8: without an owner for a while both relays end, though nobody sweeps."""
    channel = world.open("vm", gate, grace=6.0)  # the second relay takes a while to start on a busy machine
    assert isinstance(channel, vm_transport.Carried)
    assert channel.wire is not None
    assert channel.route is not None
    assert channel.sockets is not None
    for one in (channel.route, channel.wire, channel.sockets):
        one.close()
    for part in (channel.relay, channel.carrier):
        wait(lambda part=part: not relays.is_running(world.engine, part), timeout=60)  # type: ignore[misc]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_command_runs_behind_its_gate(world: World, lab: Lab, transport: str) -> None:
    """HLD-4, HLD-16: `run --transport`: what is allowed answers, the rest is refused and in the record; its status."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    done = Person(world, transport).run(
        "wget -q -O- http://a.test/; wget -q -O- http://b.test/; exit 7", "--allow", "a.test:80"
    )
    assert (done.returncode, done.stdout) == (7, "it is a.test\n"), done.stderr
    assert "b.test:80" in done.stderr
    assert world.left() == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_task_whose_relay_dies_is_ended_with_70(world: World, transport: str) -> None:
    """HLD-7: told at once, in one line, and nothing is left of it."""
    process = Person(world, transport).start("echo ready; sleep 1000")
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        mark = ("--filter", "label=tidegate.part=relay")
        (relay,) = set(world.engine.run("ps", "--quiet", "--no-trunc", *mark).split()) & set(world.left())
        pid = world.engine.pid(relay)
        with Stopwatch() as watch:
            os.kill(pid, 9)
            assert process.stderr.readline().startswith("tidegate: the way to the gate is broken")
            assert watch.seconds < 3.0
        assert process.wait(PATIENCE) == 70
    finally:
        process.kill()
        process.communicate()
    wait(lambda: world.left() == [], timeout=PATIENCE)


def test_what_a_crash_left_is_swept_and_what_lives_is_kept(world: World, gate: Serving) -> None:
    """HLD-8: front and keeper killed: the next task removes containers, volume and keys; those of a living one stay."""
    living = world.open("vm", gate)
    assert isinstance(living, vm_transport.Carried)
    person = Person(world, "vm")
    process = person.start("echo ready; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    keepers = subprocess.run(
        ["pgrep", "-x", "tidegate-keep"], capture_output=True, text=True, check=False
    ).stdout.split()
    mine = [pid for pid in keepers if _parent(pid) == process.pid or _parent(_parent(pid)) == process.pid]
    for pid in (*mine, process.pid):
        os.kill(int(pid), 9)
    process.wait(PATIENCE)
    process.stdout.close()  # the engine's own program still has the other end
    assert process.stderr is not None
    process.stderr.close()
    keys = person.product.state / vm_transport.PLACE
    assert len(os.listdir(keys)) == 1
    assert len(world.left()) > 3
    assert person.run("true").returncode == 0
    assert os.listdir(keys) == []
    assert len(world.left()) == 3  # two relays and a volume of the one that lives
    assert os.path.isdir(living.keys)
    assert "a.test" in world.sh(living, f"{THROUGH} wget -q -O- http://a.test/")
    living.close()


def _parent(pid: object) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.mark.parametrize("engine", BOTH[:1], indirect=True)
def test_a_user_of_roots_docker_gets_a_relay(world: World, lab: Lab) -> None:
    """HLD-4, HLD-6: who may not enter a container's network and named no transport gets the second, capture too.

    It is remembered.
    """
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    socket_path = world.engine.environ["DOCKER_HOST"].removeprefix("unix://")
    mode = os.stat(socket_path).st_mode & 0o777
    os.chmod(socket_path, 0o666)
    world.folder.chmod(0o755)
    try:
        product = Product(world.folder / "user", user=True)
        product.environment["DOCKER_HOST"] = world.engine.environ["DOCKER_HOST"]
        words = ["--hold", "docker", "--image", IMAGE, "--allow", "a.test:80", "--"]
        script = "id -u; wget -q -O- http://a.test/; unset http_proxy HTTP_PROXY; wget -q -O- http://a.test/"
        done = product.run(*words, "sh", "-c", script, timeout=120)
    finally:
        os.chmod(socket_path, mode)
    assert (done.returncode, done.stdout) == (0, "12345\nit is a.test\nit is a.test\n"), done.stderr
    assert "can be reached by it (docker is root's, and you are not" in done.stderr  # nobody can watch: it is said
    assert '"relay"' in (product.state / "run" / "transports.json").read_text()
