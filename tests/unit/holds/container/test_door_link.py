"""The listener for relays as tasks use it: a real process, real TLS, and the far relay at its other end."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import wait
from tests.unit.holds.container.relay.running import PATIENCE, argv, listen
from tidegate.gate.marks import Marks
from tidegate.holds.container import door_link
from tidegate.holds.container.certificates import open_authority
from tidegate.holds.container.door_link import LOG, Route, register
from tidegate.holds.container.relay.ends import Framed, Plain, connect_unix
from tidegate.holds.container.relay.pairs import Loop, Pair
from tidegate.holds.container.relay.words import AUTHORITY, CERTIFICATE, GATE, SERVER_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.holds.container.certificates import TaskKeys


class World:
    """A state folder with tasks that the listener knows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = str(root / "state")
        os.mkdir(self.state, 0o700)
        self.authority = open_authority(self.state, door_link.now())
        self.warnings: list[str] = []
        self.routes: list[Route] = []
        self.processes: list[subprocess.Popen[Any]] = []
        self.sockets: list[socket.socket] = []
        self.threads: list[threading.Thread] = []
        self.closing = threading.Event()

    def folder(self, task: str) -> Path:
        """The folder of a task's sockets."""
        found = self.root / task
        found.mkdir(exist_ok=True)
        return found

    def keys(self, task: str, **options: Any) -> TaskKeys:
        """A certificate for a task, on the disk of its second relay."""
        keys = self.authority.task(task, door_link.now(), **options)
        self.write(task, keys.pem, keys.authority)
        return keys

    def write(self, task: str, pem: bytes, authority: bytes) -> Path:
        """Put keys where the second relay has them."""
        folder = self.root / f"{task}-keys"
        folder.mkdir(exist_ok=True)
        (folder / CERTIFICATE).write_bytes(pem)
        (folder / AUTHORITY).write_bytes(authority)
        return folder

    def listening(self, task: str) -> tuple[socket.socket, socket.socket]:
        """The gate's sockets of a task."""
        pair = listen(self.folder(task) / "gate.sock"), listen(self.folder(task) / "life.sock")
        self.sockets += pair
        return pair

    def register(self, task: str, keys: TaskKeys) -> Route:
        """Tell the listener of a task."""
        route = register(
            self.state,
            task,
            keys,
            str(self.folder(task)),
            self.authority,
            now=door_link.now(),
            warn=self.warnings.append,
        )
        self.routes.append(route)
        return route

    def far(self, task: str, port: int, grace: float = 20.0) -> Path:
        """Start the second relay of a task; return the folder of its sockets."""
        folder = self.root / f"{task}-volume"
        folder.mkdir()
        words = ["far", str(folder), f"127.0.0.1:{port}", str(self.root / f"{task}-keys"), str(grace)]
        process = subprocess.Popen(argv(*words), stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "tidegate-relay 1 listening\n"
        return folder

    def client(self, folder: Path) -> socket.socket:
        """Connect as the first relay does."""
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE)
        self.sockets.append(ours)
        far = Framed(connect_unix(str(folder / "gate.sock")), None, GATE)

        def move() -> None:
            loop = Loop()
            Pair(loop, Plain(theirs), far)
            while loop.pairs and not self.closing.is_set():
                loop.turn(0.05)
            loop.close()

        thread = threading.Thread(target=move)
        self.threads.append(thread)
        thread.start()
        return ours

    def log(self) -> list[str]:
        """Why connections were refused."""
        path = Path(self.state, LOG)
        return [json.loads(line)["why"] for line in path.read_text().splitlines()] if path.exists() else []

    def refused(self, port: int, task: str, why: str) -> None:
        """See that the listener lets nobody in with what the task's second relay has, and says why."""
        before = len(self.log())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.root / f"{task}-keys" / AUTHORITY)
        context.load_cert_chain(self.root / f"{task}-keys" / CERTIFICATE)
        raw = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        try:
            with context.wrap_socket(raw, server_hostname=SERVER_NAME) as sock:
                sock.sendall(b"\0\1G")
                assert sock.recv(10) == b""
        except (ssl.SSLError, ConnectionError):
            pass
        finally:
            raw.close()
        wait(lambda: len(self.log()) > before, lambda: f"nothing is recorded: {self.log()}")
        assert why in self.log()[-1]

    def close(self) -> None:
        """End all of it; the listener ends by itself."""
        for route in self.routes:
            route.close()
        for process in self.processes:
            process.kill()
            process.wait(PATIENCE)
            assert process.stdout is not None
            process.stdout.close()
        self.closing.set()
        for thread in self.threads:
            thread.join(PATIENCE)
        for sock in self.sockets:
            sock.close()
        for process in door_link._started:
            process.kill()
            process.wait(PATIENCE)
        door_link._started.clear()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A state folder of its own; its listener is ended afterwards."""
    found = World(tmp_path)
    try:
        yield found
    finally:
        found.close()


def test_what_a_task_says_arrives_at_its_own_socket_and_at_no_other(world: World) -> None:
    """HLD-4 (c), GAT-2: two tasks behind one listener, each led by its certificate; half-close is kept."""
    gates = {task: world.listening(task)[0] for task in ("a", "b")}
    ports = {world.register(task, world.keys(task)).port for task in gates}
    assert len(ports) == 1
    for task, gate in gates.items():
        client = world.client(world.far(task, ports.copy().pop()))
        client.sendall(task.encode())
        client.shutdown(socket.SHUT_WR)
        with gate.accept()[0] as taken:
            taken.settimeout(PATIENCE)
            assert taken.recv(10) == task.encode()
            assert taken.recv(10) == b""
            taken.sendall(b"for " + task.encode())
        assert client.recv(100) == b"for " + task.encode()
        assert client.recv(100) == b""


def test_much_passes_whole_and_is_not_hoarded(world: World) -> None:
    """GAT-5: 16 MiB through both hops, to a gate that begins to read late."""
    gate, _life = world.listening("a")
    client = world.client(world.far("a", world.register("a", world.keys("a")).port))
    content = os.urandom(1 << 20) * 16
    taken = gate.accept()[0]
    taken.settimeout(PATIENCE)
    client.setblocking(False)
    sent = 0
    quiet = 0
    while quiet < 10:
        try:
            sent += client.send(content[sent : sent + 65536])
        except BlockingIOError:
            quiet += 1
            time.sleep(0.05)
    assert sent < len(content)
    parts = []
    client.setblocking(True)
    thread = threading.Thread(target=lambda: (client.sendall(content[sent:]), client.shutdown(socket.SHUT_WR)))
    thread.start()
    while data := taken.recv(1 << 18):
        parts.append(data)
    thread.join(PATIENCE)
    taken.close()
    assert b"".join(parts) == content


def test_a_certificate_of_no_living_task_is_refused_and_recorded(world: World) -> None:
    """HLD-4, HLD-7: of a task that never was, of one that has ended, of another authority, and one that is none."""
    world.listening("a")
    route = world.register("a", world.keys("a"))
    world.keys("nobody")
    world.refused(route.port, "nobody", "of no task that lives")
    other = open_authority(str(world.root / "other"), door_link.now())
    world.write("foreign", other.task("a", door_link.now()).pem, world.authority.pem)
    world.refused(route.port, "foreign", "not good")
    ended = world.register("ended", world.keys("ended"))
    ended.close()
    world.refused(route.port, "ended", "of no task that lives")
    with socket.create_connection(("127.0.0.1", route.port), timeout=PATIENCE) as plain:
        plain.sendall(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP" not in plain.recv(100)
    wait(lambda: any("TLS" in why for why in world.log()), lambda: str(world.log()))


def _ask(sock: ssl.SSLSocket) -> bytes:
    sock.sendall(b"\0\1G")
    return sock.recv(10)


def test_without_a_certificate_nobody_comes_in(world: World) -> None:
    """HLD-4: TLS is mutual, and 1.3."""
    world.listening("a")
    route = world.register("a", world.keys("a"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=world.authority.pem.decode())
    raw = socket.create_connection(("127.0.0.1", route.port), timeout=PATIENCE)
    with context.wrap_socket(raw, server_hostname=SERVER_NAME) as sock:
        assert sock.version() == "TLSv1.3"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            _ask(sock)  # with TLS 1.3 a client hears of its certificate when it reads
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    raw = socket.create_connection(("127.0.0.1", route.port), timeout=PATIENCE)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(raw, server_hostname=SERVER_NAME)
    raw.close()


def test_when_its_days_are_over_the_route_is_gone(world: World) -> None:
    """HLD-4: what is open is cut, the owner is told, and the certificate lets nobody in any more."""
    gate, _life = world.listening("a")
    world.listening("b")
    port = world.register("b", world.keys("b")).port
    route = world.register("a", world.keys("a", life=6.0))
    client = world.client(world.far("a", port))
    client.sendall(b"before")
    with gate.accept()[0] as taken:
        assert taken.recv(10) == b"before"
        assert client.recv(10) == b""  # cut: nobody had ended it
    with socket.socket(fileno=os.dup(route.descriptor)) as told:
        told.settimeout(PATIENCE)
        assert told.recv(1) == b""
    assert any("seven days of a are over" in why for why in world.log())
    world.refused(port, "a", "not good")


def test_when_the_owner_ends_the_task_what_is_open_is_cut(world: World) -> None:
    """HLD-4: revoked when the task ends; the neighbour goes on."""
    gates = {task: world.listening(task)[0] for task in ("a", "b")}
    routes = {task: world.register(task, world.keys(task)) for task in gates}
    clients = {task: world.client(world.far(task, routes[task].port)) for task in gates}
    taken = {}
    for task, client in clients.items():
        client.sendall(b"x")
        taken[task] = gates[task].accept()[0]
        assert taken[task].recv(1) == b"x"
    routes["a"].close()
    assert clients["a"].recv(1) == b""
    taken["b"].sendall(b"still")
    assert clients["b"].recv(10) == b"still"
    for sock in taken.values():
        sock.close()


def test_the_owner_sees_at_once_that_the_listener_ended(world: World) -> None:
    """HLD-7: and the next task starts another one, on the same port."""
    world.listening("a")
    route = world.register("a", world.keys("a"))
    process = door_link._started[-1]
    process.kill()
    process.wait(PATIENCE)
    with socket.socket(fileno=os.dup(route.descriptor)) as told:
        told.settimeout(PATIENCE)
        assert told.recv(1) == b""
    assert world.register("b", world.keys("b")).port == route.port
    assert not world.warnings


def test_a_port_that_is_taken_is_left_with_a_warning(world: World) -> None:
    """HLD-4, HLD-8: the listener moves, and says what that means for older tasks."""
    route = world.register("a", world.keys("a"))
    door_link._started[-1].kill()
    door_link._started[-1].wait(PATIENCE)
    route.close()
    with socket.create_server(("127.0.0.1", route.port)):
        moved = world.register("a", world.keys("a"))
    assert moved.port != route.port
    assert len(world.warnings) == 1
    assert f"port {route.port} of 127.0.0.1 is taken" in world.warnings[0]
    assert str(moved.port) in world.warnings[0]


def test_no_task_reaches_its_port(world: World) -> None:
    """ADR-1: gates of this machine see the mark of it, as of a port that is published."""
    marks = Marks()
    try:
        route = world.register("a", world.keys("a"))
        assert route.port in marks
        assert route.port + 1 not in marks
    finally:
        marks.close()


def test_it_listens_on_loopback_only(world: World) -> None:
    """HLD-4: on 127.0.0.1, and nowhere else."""
    route = world.register("a", world.keys("a"))
    with open("/proc/net/tcp", encoding="ascii") as file:
        lines = [line.split() for line in file]
    at = [words[1] for words in lines[1:] if words[1].endswith(f":{route.port:04X}") and words[3] == "0A"]
    assert at == [f"0100007F:{route.port:04X}"]


def test_its_process_does_not_have_the_authoritys_key(world: World) -> None:
    """HLD-4: neither in its arguments and environment nor in a file it has open."""
    world.register("a", world.keys("a"))
    pid = door_link._started[-1].pid
    key = Path(world.state, "run/ca/authority.pem").read_text().splitlines()[1]
    for name in ("cmdline", "environ"):
        assert key.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    open_files = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert not [path for path in open_files if "authority" in path]


def test_many_that_begin_at_once_share_one_listener(world: World) -> None:
    """HLD-4: one listener for all tasks, also where none ran before."""
    keys = {f"t{number}": world.keys(f"t{number}") for number in range(8)}
    threads = [threading.Thread(target=world.register, args=item) for item in keys.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len({route.port for route in world.routes}) == 1
    assert len(world.routes) == 8
    assert len(door_link._started) == 1


_STARTER = """
import sys
sys.path[:0] = [sys.argv[1]]
from tidegate.holds.container import door_link
from tidegate.holds.container.certificates import open_authority
state, folder = sys.argv[2:]
now = door_link.now()
authority = open_authority(state, now)
keys = authority.task("first", now)
route = door_link.register(state, "first", keys, folder, authority, now=now, warn=print)
print(route.port, door_link._started[-1].pid, flush=True)
sys.stdin.readline()
"""


def test_it_outlives_whoever_started_it(world: World) -> None:
    """HLD-8: the task that began it is over, or its server was killed; another task keeps its route."""
    argv = [sys.executable, "-c", _STARTER, door_link._SOURCE, world.state, str(world.folder("first"))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        port, pid = map(int, starter.stdout.readline().split())
        try:
            gate, _life = world.listening("a")
            assert world.register("a", world.keys("a")).port == port
            assert door_link._started == []
            starter.kill()
            starter.wait(PATIENCE)
            client = world.client(world.far("a", port))
            client.sendall(b"still")
            with gate.accept()[0] as taken:
                taken.settimeout(PATIENCE)
                assert taken.recv(10) == b"still"
        finally:
            os.kill(pid, 9)
