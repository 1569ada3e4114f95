"""Ports into a task: `--publish` with a real command in a real hold, and what other tasks may not do (HLD-10)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.product import PATIENCE, PYTHON, Product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
CURL = ["curl", "-sS", "--max-time", "10"]
# `-p` asks the gate for a tunnel, also for http:// and for names that programs reach without it.
BY_GATE = [*CURL, "-p", "-x", "http://127.0.0.1:3128", "--noproxy", "", "-o", "/dev/null"]
ECHO = (
    "import socket, sys",
    "where, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])",
    "family = socket.AF_INET6 if ':' in where else socket.AF_INET",
    "server = socket.create_server((where, port), family=family)",
    "print('listening', flush=True)",
    "for _ in range(count):",
    "    wire, _ = server.accept()",
    "    wire.sendall(b'got ' + wire.recv(99))",
    "    wire.close()",
)


@pytest.fixture(params=USERS)
def product(request: pytest.FixtureRequest, tmp_path: Path, isolated: None) -> Product:
    """The product, as root and as an ordinary user."""
    assert isolated is None
    return Product(tmp_path, user=request.param == "user")


@pytest.fixture
def port() -> int:
    """A port of this machine that is free."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        found: int = sock.getsockname()[1]
        return found


def echo(where: str, count: int, port: int = 3000) -> list[str]:
    """The command line of a server that answers so many clients."""
    return [PYTHON, "-I", "-c", "\n".join(ECHO), where, str(port), str(count)]


@pytest.fixture
def publishing(product: Product, port: int) -> Iterator[subprocess.Popen[str]]:
    """Another task that publishes `port`, and serves until it is ended."""
    task = product.start("--publish", f"{port}:3000", "--", *echo("127.0.0.1", 99))
    assert task.stdout is not None
    assert task.stdout.readline() == "listening\n"
    yield task
    task.send_signal(signal.SIGTERM)
    task.communicate(timeout=PATIENCE)


def said(address: str, port: int, word: bytes = b"hello") -> bytes:
    """What the server at this port of the machine answers."""
    with socket.create_connection((address, port), 10) as wire:
        wire.sendall(word)
        return wire.recv(99)


@pytest.mark.parametrize("capture", ["on", "ports", "off"])
@pytest.mark.parametrize("where", ["127.0.0.1", "::1", "0.0.0.0"])
def test_a_server_of_the_task_is_reached(product: Product, port: int, capture: str, where: str) -> None:
    """HLD-10: from both loopbacks, whatever the capture and the address it listens on; one `net:` line with a count."""
    if where == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this kernel has no IPv6")
    options = ["--capture", capture, "--publish", f"{port}:3000"]
    task = product.start(*options, "--", *echo(where, 3))
    assert task.stdout is not None
    assert task.stdout.readline() == "listening\n"
    assert said("127.0.0.1", port) == b"got hello"
    assert said("::1", port) == b"got hello"
    assert said("127.0.0.1", port, b"x" * 99) == b"got " + b"x" * 95
    out, err = task.communicate(timeout=PATIENCE)
    assert (task.returncode, out) == (0, "")
    assert err == f"net: localhost:{port} · published (command-line) ×3\n"
    with pytest.raises(ConnectionRefusedError):
        said("127.0.0.1", port)


def test_the_journal_has_each_visitor(product: Product, port: int) -> None:
    """JRN-1: a line for each connection, with bytes as they flowed: up is away from the task."""
    log = product.folder / "log"
    options = ["--log", str(log), "--publish", f"127.0.0.1:{port}:3000"]
    task = product.start(*options, "--", *echo("127.0.0.1", 1))
    assert task.stdout is not None
    task.stdout.readline()
    assert said("127.0.0.1", port) == b"got hello"
    task.communicate(timeout=PATIENCE)
    (line,) = [json.loads(text) for text in log.read_text().splitlines()]
    assert (line["host"], line["port"], line["how"]) == ("127.0.0.1", port, "published")
    assert (line["bytes_up"], line["bytes_down"]) == (9, 5)
    assert line["source"] == f"--publish 127.0.0.1:{port}:3000"


def test_before_the_server_listens_clients_are_refused(product: Product, port: int) -> None:
    """HLD-10: at once, as by a closed port; `curl --retry` and the like find it when it is there."""
    code = ["import time, os", "print('began', flush=True)", "while not os.path.exists('go'): time.sleep(0.01)", *ECHO]
    command = [PYTHON, "-I", "-c", "\n".join(code), "127.0.0.1", "3000", "1"]
    task = product.start("--publish", f"{port}:3000", "--", *command)
    assert task.stdout is not None
    assert task.stdout.readline() == "began\n"
    with pytest.raises(ConnectionResetError):
        said("127.0.0.1", port)
    (product.folder / "go").touch()
    assert task.stdout.readline() == "listening\n"
    assert said("127.0.0.1", port) == b"got hello"
    _, err = task.communicate(timeout=PATIENCE)
    assert f"net: localhost:{port} · published, the destination refused the connection (command-line)" in err
    assert task.returncode == 0


@pytest.mark.usefixtures("publishing")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_another_tasks_port_is_reached_by_no_rule(product: Product, port: int, host: str) -> None:
    """ADR-1: a rule of this task names it exactly, and the gate refuses; from outside it is reached all the same."""
    done = product.run("--allow", f"{host}:{port}", "--", *BY_GATE, f"http://{host}:{port}/")
    assert done.returncode == 56, done.stderr  # CURLE_RECV_ERROR: the tunnel was refused
    assert f"net: {host}:{port} · refused, it leads to a port of this machine that is protected" in done.stderr
    assert said("127.0.0.1", port) == b"got hello"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_ones_own_published_port_is_no_way_out(product: Product, port: int, host: str) -> None:
    """ADR-1: nor its own, by the gate; directly it is not there at all, because the task has its own loopback."""
    options = ["--publish", f"{port}:3000", "--allow", f"{host}:{port}"]
    done = product.run(*options, "--", *BY_GATE, f"http://{host}:{port}/")
    assert done.returncode == 56, done.stderr
    assert "it leads to a port of this machine that is protected" in done.stderr
    done = product.run(*options, "--", *CURL, "--noproxy", "*", f"http://{host}:{port}/")
    assert done.returncode == 7, done.stderr  # CURLE_COULDNT_CONNECT


@pytest.mark.usefixtures("publishing")
def test_a_port_that_is_taken_is_exit_78(product: Product, port: int) -> None:
    """HLD-7: by another task, or by anybody; one line, and the command does not run."""
    done = product.run("--publish", f"{port}:3000", "--", "touch", "ran")
    assert done.returncode == 78
    assert done.stderr == (
        f"tidegate: --publish {port}:3000: port {port} of this machine is taken: another, as in"
        f" --publish {port + 1}:3000\n"
    )
    assert not (product.folder / "ran").exists()
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        taken = server.getsockname()[1]
        assert product.run("--publish", f"{taken}:3000", "--", "true").returncode == 78
        assert product.run("--publish", f"127.0.0.1:{taken}:3000", "--", "true").returncode == 0


def test_a_port_that_the_gate_has_inside_is_exit_78(product: Product, port: int) -> None:
    """HLD-10: 3128 is the proxy's, with `--capture ports` the common ones are taken, too; with `on` they are free."""
    assert product.run("--publish", f"{port}:3128", "--", "true").returncode == 78
    assert product.run("--capture", "ports", "--publish", f"{port}:5432", "--", "true").returncode == 78
    assert product.run("--capture", "on", "--publish", f"{port}:5432", "--", "true").returncode == 0


def test_a_gate_that_is_lost_takes_the_port_with_it(product: Product, port: int) -> None:
    """HLD-7, HLD-8: the gate is killed: exit 70, the port is free at once, and its mark gone."""
    task = product.start("--publish", f"{port}:3000", "--", *echo("127.0.0.1", 99))
    assert task.stdout is not None
    assert task.stdout.readline() == "listening\n"
    os.kill(_owner(port), signal.SIGKILL)
    task.communicate(timeout=PATIENCE)
    assert task.returncode == 70
    assert product.run("--publish", f"{port}:3000", "--", "true").returncode == 0


def _owner(port: int) -> int:
    """The process that listens on this port: it has the socket among its descriptors."""
    done = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=True)
    return int(done.stdout.partition("pid=")[2].partition(",")[0])


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_web_server_of_node(product: Product, port: int) -> None:
    """HLD-10: what people publish: a server of a web application, asked over HTTP with keep-alive."""
    code = "require('http').createServer((q, r) => r.end(q.url)).listen(3000, () => console.log('listening'))"
    task = product.start("--publish", f"{port}:3000", "--", "node", "-e", code)
    assert task.stdout is not None
    assert task.stdout.readline() == "listening\n"
    urls = [f"http://localhost:{port}/{name}" for name in ("a", "b")]
    done = subprocess.run([*CURL, *urls], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout == "/a/b"
    task.send_signal(signal.SIGTERM)
    task.communicate(timeout=PATIENCE)


def test_while_a_task_is_set_up_its_ports_are_closed_and_its_own(product: Product, port: int) -> None:
    """HLD-10, POL-7: `setup` has no visitors, and nobody else can have the port meanwhile."""
    policy = product.folder / "policy.yaml"
    setup = "import os, time\nprint('setting up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)"
    policy.write_text(json.dumps({"setup": [PYTHON, "-I", "-c", setup], "default": "deny"}))
    task = product.start("--policy", str(policy), "--publish", f"{port}:3000", "--", *echo("127.0.0.1", 1))
    assert task.stdout is not None
    assert task.stderr is not None
    assert task.stderr.readline() == "setting up\n"
    with pytest.raises(ConnectionRefusedError):
        said("127.0.0.1", port)
    assert product.run("--publish", f"{port}:3000", "--", "true").returncode == 78
    (product.folder / "go").touch()
    assert task.stdout.readline() == "listening\n"
    assert said("::1", port) == b"got hello"
    _, err = task.communicate(timeout=PATIENCE)
    assert task.returncode == 0, err
