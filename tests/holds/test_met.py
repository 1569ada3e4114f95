"""Services of this machine met inside, whole: a real command, a real hold, real servers outside (HLD-10)."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.product import PATIENCE, PYTHON, Product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
MODES = ["on", "ports", "off"]
NOTE = "tidegate: note: met inside by the gate, unless the command listens there itself: "
CURL = ["curl", "-sS", "--max-time", "10"]


class Greeter:
    """A server of this machine that says a word to whoever comes, and counts them."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._server = socket.create_server((address, 0), family=family)
        self.port: int = self._server.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                wire, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            with wire, contextlib.suppress(ConnectionError):  # who came may have left
                wire.sendall(b"machine")

    def close(self) -> None:
        """End it, and its thread; once is enough."""
        if self._server.fileno() < 0:
            return
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def greeter(isolated: None) -> Iterator[Greeter]:
    """One on 127.0.0.1."""
    assert isolated is None
    server = Greeter()
    yield server
    server.close()


@pytest.fixture(params=USERS)
def product(request: pytest.FixtureRequest, tmp_path: Path, isolated: None) -> Product:
    """The product, as root and as an ordinary user."""
    assert isolated is None
    return Product(tmp_path, user=request.param == "user")


HEARS = (
    "import socket, sys",
    "def hears(address, port, blocking=True):",
    "    with socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET) as wire:",
    "        wire.settimeout(10)",
    "        wire.setblocking(blocking)",
    "        code = wire.connect_ex((address, port))",
    "        if code not in (0, 115): return code",
    "        wire.settimeout(10)",
    "        try: return wire.recv(99).decode()",
    "        except OSError as error: return error.errno",
    "port = int(sys.argv[1])",
)


def python(greeter: Greeter, *lines: str) -> list[str]:
    """The command line of a program that can hear."""
    return [PYTHON, "-I", "-c", "\n".join((*HEARS, *lines)), str(greeter.port)]


@pytest.mark.parametrize("capture", MODES)
def test_a_rule_for_a_service_is_met_at_its_place(product: Product, greeter: Greeter, capture: str) -> None:
    """HLD-10, ADR-2, B134: without a proxy, by each loopback address, waiting or not; start and journal say so."""
    code = python(
        greeter,
        "print(*(hears(where, port) for where in ('127.0.0.1', '::1', '::ffff:127.0.0.1')))",
        "print(hears('127.0.0.1', port, False), hears('::1', port, False))",
    )
    rule = f"localhost:{greeter.port}"
    done = product.run("--capture", capture, "--allow", rule, "--", *code)
    assert done.stdout == "machine machine machine\nmachine machine\n", done.stderr
    assert done.stderr == f"{NOTE}{rule}\nnet: {rule} · captured (command-line) ×5\n"
    assert greeter.connections == 5
    quiet = product.run("--quiet", "--capture", capture, "--allow", rule, "--", *code)
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


@pytest.mark.parametrize("capture", MODES)
@pytest.mark.parametrize("where", ["127.0.0.1", "::1", "0.0.0.0"])
def test_the_tasks_own_listener_wins(product: Product, greeter: Greeter, capture: str, where: str) -> None:
    """HLD-10: it can have the port, is reached by `localhost`, and when it is gone the machine's is met again."""
    code = python(
        greeter,
        "first = hears('localhost', port)",
        "family = socket.AF_INET6 if ':' in sys.argv[2] else socket.AF_INET",
        "server = socket.create_server((sys.argv[2], port), family=family)",
        "import threading",
        "def serve():",
        "    with server.accept()[0] as wire: wire.sendall(b'own')",
        "thread = threading.Thread(target=serve)",
        "thread.start()",
        "with socket.create_connection(('localhost', port)) as wire: second = wire.recv(99).decode()",
        "thread.join()",
        "server.close()",
        "print(first, second, hears('localhost', port))",
    )
    done = product.run("--capture", capture, "--allow", f"localhost:{greeter.port}", "--", *code, where)
    assert done.stdout == "machine own machine\n", done.stderr
    assert greeter.connections == 2


def test_a_literal_is_met_at_itself_only(product: Product, greeter: Greeter) -> None:
    """ADR-6: 127.0.0.1 is not ::1, nor the next address or port."""
    code = python(
        greeter,
        "print(hears('127.0.0.1', port), hears('::1', port), hears('127.0.0.2', port), hears('127.0.0.1', port ^ 1))",
    )
    done = product.run("--allow", f"127.0.0.1:{greeter.port}", "--", *code)
    assert done.stdout == "machine 111 111 111\n", done.stderr
    assert greeter.connections == 1


@pytest.mark.parametrize("capture", MODES)
def test_without_a_rule_loopback_is_the_tasks_alone(product: Product, greeter: Greeter, capture: str) -> None:
    """ADR-2, HLD-1: no rule, a rule without a port, a wildcard, a preset's profile: refused as nobody's port."""
    code = python(greeter, "print(*(hears(where, port) for where in ('127.0.0.1', '::1', '127.116.103.1')))")
    for options in ([], ["--allow", "localhost"], ["--allow", f"*:{greeter.port}"], ["--profile", "audit"]):
        done = product.run("--capture", capture, *options, "--", *code)
        assert "machine" not in done.stdout, options
        assert set(done.stdout.split()) <= {"111", "104"}, options
    assert greeter.connections == 0


def test_a_rule_without_a_port_is_told_at_the_start(product: Product) -> None:
    """HLD-10: what admits nothing says what to write."""
    done = product.run("--allow", "localhost", "--", "true")
    assert done.stderr == "tidegate: note: the rule localhost admits nothing: name the port, localhost:PORT\n"


def test_protected_and_denied_ports_are_never_met(product: Product, greeter: Greeter) -> None:
    """ADR-1, POL-5: what the policy protects or denies; the neighbour in the same policy is met."""
    other = Greeter()
    code = python(greeter, "print(hears('127.0.0.1', port), hears('127.0.0.1', int(sys.argv[2])))")
    allow = ["--allow", f"localhost:{greeter.port}", "--allow", f"localhost:{other.port}"]
    done = product.run(*allow, "--deny", f"127.0.0.1:{greeter.port}", "--", *code, str(other.port))
    assert done.stdout == "111 machine\n", done.stderr
    policy = product.folder / "policy.yaml"
    policy.write_text(f"protected_ports: [{greeter.port}]\ndefault: deny\n")
    done = product.run("--policy", str(policy), *allow, "--", *code, str(other.port))
    assert done.stdout == "111 machine\n", done.stderr
    assert greeter.connections == 0
    other.close()


def test_a_service_that_is_not_there_is_told_in_the_journal(product: Product, greeter: Greeter) -> None:
    """JRN-1: the machine's own is down: reset, and on record as what it was."""
    greeter.close()
    done = product.run(
        "--allow", f"localhost:{greeter.port}", "--", *python(greeter, "print(hears('127.0.0.1', port))")
    )
    assert done.stdout == "104\n", done.stderr
    assert f"net: localhost:{greeter.port} · refused, the destination refused the connection" in done.stderr


@pytest.mark.parametrize("url", ["http://localhost:{}/", "http://127.0.0.1:{}/"])
def test_http_by_either_name(product: Product, url: str) -> None:
    """GAT-9: whichever of loopback's names stands in the Host, it is the service that the rule names."""
    lines = (
        "import http.server as h",
        "server = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)",
        "print(server.server_port, flush=True)",
        "server.serve_forever()",
    )
    (product.folder / "page").write_text("here")
    argv = [PYTHON, "-c", "\n".join(lines)]
    server = subprocess.Popen(argv, cwd=product.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        done = product.run("--allow", f"localhost:{port}", "--", *CURL, url.format(port) + "page")
        assert done.stdout == "here", done.stderr
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("capture", MODES)
def test_redis_cli(product: Product, tmp_path: Path, capture: str) -> None:
    """HLD-10: redis-cli inside against a real server of the machine, with nothing but a rule."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = str(sock.getsockname()[1])
    argv = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while subprocess.run(["redis-cli", "-p", port, "ping"], capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        script = f"redis-cli -p {port} set tide gate && redis-cli -h localhost -p {port} get tide"
        done = product.run("--capture", capture, "--allow", f"localhost:{port}", "--", "sh", "-c", script)
        assert done.stdout == "OK\ngate\n", done.stderr
        assert product.run("--capture", capture, "--", "redis-cli", "-p", port, "ping").returncode == 1
    finally:
        server.kill()
        server.wait()
