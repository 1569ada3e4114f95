"""enter.py: sockets made in the network of another process (tests/holds/test_containers.py has the containers)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container.engine import DOCKER, Engine
from tidegate.holds.container.enter import ENTERING, check_here, namespaces_of, serve_inside
from tidegate.holds.container.transport import ENTER, Way
from tidegate.holds.inside import MOULD, PROXY, TaskSockets
from tidegate.holds.namespaces import close_namespaces
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can enter a network that an engine of root's made")


@pytest.fixture
def other() -> Iterator[int]:
    """A process in a network of its own."""
    program = "import os; os.unshare = None"
    del program
    child = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep 1000"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait()
    child.stdout.close()


def way(**more: object) -> Way:
    """A way without capture."""
    whole = {"name": "n", "labels": {}, "folder": "/", "port": 3128, "capture": "off"} | more
    return Way(**whole)


def refusing(made: list[TaskSockets], status: bytes = b"403 Forbidden") -> Callable[[TaskSockets], None]:
    """Be a gate that answers this to everything."""

    def deliver(sockets: TaskSockets) -> None:
        copies = TaskSockets(sockets.roles, tuple(os.dup(fd) for fd in sockets.descriptors))
        made.append(copies)
        server = socket.socket(fileno=os.dup(copies.of(PROXY)[0]))

        def serve() -> None:
            with server, server.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()

    return deliver


def serve(pid: int, wanted: Way, deliver: Callable[[TaskSockets], None]) -> None:
    """Serve the network of a process."""
    namespaces = namespaces_of(pid, rootless=False)
    try:
        serve_inside(namespaces, wanted, deliver)
    finally:
        close_namespaces(namespaces)


def close(made: list[TaskSockets]) -> None:
    """Close what a gate was given."""
    for sockets in made:
        for fd in sockets.descriptors:
            os.close(fd)


@AS_ROOT
def test_the_gate_listens_in_there(other: int) -> None:
    """The socket is at 127.0.0.1:3128 of that network and of no other, and the fence is tried from there (HLD-4)."""
    made: list[TaskSockets] = []
    try:
        serve(other, way(published=(80,)), refusing(made))
        (sockets,) = made
        assert set(sockets.roles) == {PROXY, MOULD}
        seen = subprocess.run(
            ["nsenter", f"--net=/proc/{other}/ns/net", sys.executable, "-c", CONNECT], check=False, timeout=60
        )
        assert seen.returncode == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 3128), 5)
    finally:
        close(made)


CONNECT = "import socket; socket.create_connection(('127.0.0.1', 3128), 5)"


@AS_ROOT
@pytest.mark.parametrize("answer", [b"200 OK", b"204 No Content"])
def test_a_gate_that_lets_pass_stops_the_start(other: int, answer: bytes) -> None:
    """A name that no policy lets through must be refused by the gate (HLD-11)."""
    made: list[TaskSockets] = []
    try:
        with pytest.raises(StartError, match="did not refuse"):
            serve(other, way(), refusing(made, answer))
    finally:
        close(made)


@AS_ROOT
def test_a_network_that_is_this_machines_own_is_found_out() -> None:
    """Where the container shares this machine's network, the canaries hear of it and nothing starts (HLD-11)."""
    made: list[TaskSockets] = []
    try:
        with pytest.raises(StartError, match="self-test"):
            serve(os.getpid(), way(port=0), refusing(made))
    finally:
        close(made)


def test_a_process_that_is_gone_is_an_error() -> None:
    """Nobody to enter: one line that names the other ways (HLD-7)."""
    with pytest.raises(StartError, match="cannot be entered"):
        serve(1 << 22, way(), lambda _sockets: None)


def test_a_process_that_is_another_ones_is_not_entered(other: int) -> None:
    """An engine elsewhere counts its own processes: the same number here is nobody of its (HLD-4, HLD-7, B79)."""
    for pid in (other, 1 << 22):
        with pytest.raises(StartError, match="not to be seen from here") as caught:
            check_here(Engine(DOCKER), "0123456789abcdef" * 4, pid)
        assert caught.value.code == "engine-elsewhere"


def test_it_is_the_transport_that_captures() -> None:
    """Of the three it is the one with capture (HLD-6)."""
    assert (ENTERING.name, ENTERING.captures) == (ENTER, True)
