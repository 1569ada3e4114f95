"""tidegate.cli.serve: the server as a child, and real tasks of the product behind it, in the lab."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab.api import Lab
from tests.product import LAUNCHER, PATIENCE, PYTHON, Product
from tests.served import Served

GET = "import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).status)"
TUNNEL = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", 3128))
sock.sendall(b"CONNECT 1.2.3.4:443 HTTP/1.1\\r\\nHost: 1.2.3.4:443\\r\\n\\r\\n")
print(sock.recv(4096).split()[1].decode(), flush=True)
print(sock.recv(1), flush=True)
"""


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab, as root and as an ordinary user."""
    assert lab
    return Product(tmp_path, user=request.param == "user")


def _sleeper(server: Served, *words: str) -> subprocess.Popen[str]:
    """Start a command that waits, and return when it does."""
    task = server.start("run", *words, "--", "sh", "-c", "echo up; exec sleep 600")
    assert task.stdout is not None
    assert task.stdout.readline() == "up\n"
    return task


def _shape(text: str) -> str:
    """A journal without what differs from run to run."""
    return re.sub(r'"(at|task)":"[^"]*"|"duration":[0-9.]*', "", text)


def test_run_says_and_writes_the_same_with_and_without_a_server(product: Product, lab: Lab) -> None:
    """JRN-1, HLD-16: output, exit status, journal and report are those of a run alone."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    told = []
    for extra in (["--no-server"], []):
        server = Served(product) if not extra else None
        for url, status in (("http://a.test/", 0), ("http://b.test/", 1)):
            log, report = product.home / "log", product.home / "report"
            more = ["--log", str(log), "--report", str(report), *extra]
            done = product.run("--allow", "a.test:80", *more, "--", PYTHON, "-c", GET, url)
            assert done.returncode == status, done.stderr
            told.append((done.stdout, done.stderr, _shape(log.read_text()), report.read_text()))
            log.unlink()
            report.unlink()
        if server is not None:
            assert len([one for one in server.json("task", "list", "--all") if one["state"] == "ended"]) == 2
            server.stop()
    assert told[:2] == told[2:]
    assert "b.test:80 · refused" in told[1][1]


def test_twenty_tasks_at_once_are_kept_apart(product: Product, lab: Lab) -> None:
    """GAT-2, GAT-11: each reaches its own host and no other's, with its own record."""
    for number in range(20):
        lab.dns.set(f"n{number}.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    program = (
        "import sys,urllib.request as u\nfor n in range(20):\n try: print(n, u.urlopen(f'http://n{n}.test/').status)\n"
        " except Exception: pass"
    )

    def one(number: int) -> None:
        log = product.home / f"log{number}"
        words = ("run", "--allow", f"n{number}.test:80", "--log", str(log), "--", PYTHON, "-c", program)
        done = server.tidegate(*words)
        assert (done.returncode, done.stdout) == (0, f"{number} 200\n"), done.stderr
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        passed = {line["host"] for line in lines if line["how"] != "refused"}
        assert passed == {f"n{number}.test"}
        assert len(lines) == 20
        assert len({line["task"] for line in lines}) == 1

    with Served(product) as server:
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(one, range(20)))
        assert server.json("task", "list") == []


def test_kill_9_of_the_server_ends_its_tasks_with_a_clear_line(product: Product) -> None:
    """HLD-7, HLD-8: exit 70 within a second or so; the next start marks it as ended, in the store and in the log."""
    server = Served(product)
    task = _sleeper(server)
    (living,) = server.json("task", "list")
    server.kill()
    began = time.monotonic()
    _out, err = task.communicate(timeout=PATIENCE)
    assert task.returncode == 70
    assert err.splitlines()[0] == "tidegate: the server is gone; the task's network is cut off and it is being ended"
    assert time.monotonic() - began < 60
    done = product.run("--", "true")
    assert (done.returncode, done.stderr) == (0, "")  # alone again: what it left is in nobody's way
    with Served(product) as again:
        assert again.json("task", "list") == []
        shown = again.json("task", "show", living["id"])
        assert (shown["state"], "without a word" in shown["outcome"]) == ("ended", True)
        ends = [line for line in again.actions() if line["type"] == "task.ended"]
        assert (ends[-1]["task"], ends[-1]["outcome"]) == (living["id"], shown["outcome"])
    assert again.tidegate("log", "verify").returncode == 0


def test_a_second_server_is_refused(product: Product) -> None:
    """HLD-7: exit 78 with the pid of the first, which serves on."""
    with Served(product) as server:
        done = server.tidegate("serve")
        assert done.returncode == 78
        assert f"pid {server.pid}" in done.stderr
        assert server.json("task", "list") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(product: Product, number: int) -> None:
    """HLD-8: tasks end with a line that says why; nothing says that a server runs; the status is 0."""
    server = Served(product)
    task = _sleeper(server)
    os.kill(server.pid, number)
    server.process.communicate(timeout=PATIENCE)
    assert server.process.returncode == 0
    _out, err = task.communicate(timeout=PATIENCE)
    assert task.returncode == 70
    assert "the server is stopping" in err
    assert {path.name for path in (server.state / "run").iterdir()} == {"lock", "port"}
    assert server.actions()[-1]["type"] == "server.stopped"


def test_a_tunnel_is_cut_with_its_phase(product: Product, lab: Lab) -> None:
    """POL-7: from the operator's side only; --cut closes what is open, without it the journal marks what stayed."""
    lab.origin("raw", "1.2.3.4", 443)
    policy = product.home / "policy.yaml"
    policy.write_text("network:\n  runtime:\n    allow: ['1.2.3.4:443']\n")
    with Served(product) as server:
        made = server.tidegate("task", "create", "--policy", str(policy))
        task = made.stdout.strip()
        first = server.start("exec", task, "--", PYTHON, "-c", TUNNEL)
        assert first.stdout is not None
        assert first.stdout.readline() == "200\n"
        assert server.tidegate("task", "phase", task, "install").returncode == 0
        refused = server.tidegate("exec", task, "--", PYTHON, "-c", TUNNEL)
        assert refused.stdout.startswith("403\n")
        assert first.poll() is None
        assert server.tidegate("task", "phase", task, "runtime").returncode == 0
        assert "1 connections were closed" in server.tidegate("task", "phase", task, "install", "--cut").stderr
        assert first.communicate(timeout=PATIENCE)[0] == "b''\n"
        assert first.returncode == 0


def test_without_wanting_it_a_run_is_alone(product: Product) -> None:
    """--no-server: the server hears nothing of it."""
    with Served(product) as server:
        assert product.run("--no-server", "--", "true").returncode == 0
        assert server.json("task", "list", "--all") == []
        assert product.run("--", "true").returncode == 0
        assert len(server.json("task", "list", "--all")) == 1


def test_wait_needs_a_server_and_somebody_there(product: Product) -> None:
    """ASK-4: exit 78 where none runs; where one does and nobody looks, an immediate no."""
    done = product.run("--wait", "--", "true")
    assert done.returncode == 78
    assert "tidegate serve" in done.stderr
    with Served(product):
        done = product.run("--wait", "--", PYTHON, "-c", GET, "http://b.test/")
        assert done.returncode == 1
        assert "nobody is there to answer" in done.stderr


@pytest.mark.parametrize("option", ["--no-network", "--open-network"])
def test_a_run_without_a_gate_is_known_and_does_not_need_the_server(product: Product, option: str) -> None:
    """HLD-5: it is listed and on record, `open` as an event; it can be ended; the end of the server is not its own."""
    server = Served(product)
    task = _sleeper(server, option)
    (one,) = server.json("task", "list")
    assert one["network"] == option.removeprefix("--").replace("no-network", "offline").replace("-network", "")
    opened = [line for line in server.actions() if line["type"] == "open.network"]
    assert len(opened) == (option == "--open-network")
    second = _sleeper(server, option)
    assert server.tidegate("task", "end", one["id"]).returncode == 0
    assert task.wait(PATIENCE) == 70
    server.kill()
    time.sleep(0.5)
    assert second.poll() is None
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=PATIENCE)
    task.communicate(timeout=PATIENCE)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be two users")
def test_another_users_run_does_not_come_in(tmp_path: Path, lab: Lab) -> None:
    """SRV-1: a front of another uid that can reach the socket is refused, root too."""
    assert lab
    owner = Product(tmp_path, user=True)
    with Served(owner) as server:
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(owner.state.parent)}
        for words in (("task", "list"), ("exec", "x", "--", "true")):
            done = subprocess.run(
                [owner.argv("x")[-2], *words], env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 78
            assert "another user's" in done.stderr
        assert server.json("task", "list") == []


def test_a_unit_is_printed_and_nothing_is_served(product: Product) -> None:
    """SRV-5: with the program as it was started; nothing is made."""
    for kind, target in (("user", "default.target"), ("system", "multi-user.target")):
        done = subprocess.run(
            product.argv("serve", "--print-unit", kind), env=product.environment, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert f'ExecStart="{LAUNCHER}" serve\n' in done.stdout
        assert done.stdout.endswith(f"WantedBy={target}\n")
    assert not product.state.exists()
