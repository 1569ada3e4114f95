"""The API of `./tidegate serve` as people start it: commands, loopback, other users, tasks inside a hold."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.api import as_user
from tests.product import PYTHON, Product
from tests.served import Served, until
from tests.talker import Talker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of root's, or of whoever runs the tests."""
    with Served(Product(tmp_path, user=False)) as found:
        yield found


@pytest.fixture
def user_served(tmp_path: Path) -> Iterator[Served]:
    """A server of an ordinary user's."""
    with Served(Product(tmp_path, user=True)) as found:
        yield found


def _ask(served: Served, path: str, token: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", served.info["api_port"], timeout=20)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


@pytest.mark.parametrize("name", ["served", "user_served"])
def test_the_commands_reach_the_server_of_their_user(request: pytest.FixtureRequest, name: str) -> None:
    """SRV-1: tokens, questions, rules and portal over the socket, and a token over loopback."""
    served: Served = request.getfixturevalue(name)
    made = served.tidegate("token", "create", "tests", "--owner")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert _ask(served, "/api/health", token)[1]["role"] == "owner"
    assert _ask(served, "/api/health")[0] == 401
    for words in (("questions",), ("rules",), ("token", "list")):
        assert served.tidegate(*words).returncode == 0
    url = served.tidegate("portal", "--print").stdout.strip()
    assert url.startswith(f"http://127.0.0.1:{served.info['api_port']}/#code=")
    mode = os.stat(served.state / "run" / "api.sock").st_mode
    assert oct(mode & 0o777) == "0o600"


def test_no_server_is_one_line_and_78(tmp_path: Path) -> None:
    """HLD-16: without a server each command says so."""
    product = Product(tmp_path, user=False)
    for words in (("questions",), ("answer", "1", "allow"), ("rules",), ("pause",), ("token", "list"), ("portal",)):
        done = subprocess.run(
            product.argv(*words),
            cwd=product.folder,
            env=product.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (78, "")
        assert done.stderr == "tidegate: no server runs here: tidegate serve starts one\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another uid to connect with")
def test_another_user_reaches_nothing(served: Served) -> None:
    """SRV-1: uid 12345 cannot connect to root's socket, and without a token gets 401 on loopback."""
    program = (
        "import http.client, socket, sys\n"
        "import os\n"
        "try:\n    os.chdir(os.path.dirname(sys.argv[1]))\n"
        "    print(socket.socket(socket.AF_UNIX).connect_ex('api.sock') != 0)\n"
        "except PermissionError:\n    print(True)\n"
        "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[2]), timeout=20)\n"
        "c.request('GET', '/api/tasks')\nprint(c.getresponse().status)\n"
    )
    argv = [sys.executable, "-I", "-c", program, str(served.state / "run" / "api.sock"), str(served.info["api_port"])]
    done = subprocess.run(as_user(argv), capture_output=True, text=True, check=True, timeout=60, cwd="/")
    assert done.stdout.split() == ["True", "401"]


ATTEMPT = """
import os, socket, sys
path, port = sys.argv[1], int(sys.argv[2])
print("sees", os.path.lexists(path))
try:
    os.chdir(os.path.dirname(path))  # a path of a test may be too long for an address
    print("socket", socket.socket(socket.AF_UNIX).connect_ex("api.sock") == 0)
except OSError:
    print("socket", False)
for address in ("127.0.0.1", "localhost"):
    s = socket.socket()
    s.settimeout(10)
    try:
        s.connect((address, port))
        s.sendall(b"GET /api/health HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % port)
        print("tcp", s.recv(100)[:12])
    except OSError as error:
        print("tcp", "refused")
"""


@pytest.mark.parametrize("alone", [[], ["--no-server"]])
@pytest.mark.parametrize("name", ["served", "user_served"])
def test_a_task_reaches_none_of_it(request: pytest.FixtureRequest, name: str, alone: list[str]) -> None:
    """SRV-1, ADR-1: from inside a hold the socket is not there and the port is refused, even where a rule names it."""
    served: Served = request.getfixturevalue(name)
    port = str(served.info["api_port"])
    program = served.product.folder / "attempt.py"
    program.write_text(ATTEMPT)
    rules = ["--allow", f"127.0.0.1:{port}", "--allow", f"localhost:{port}"]
    argv = ["run", *alone, *rules, "--", PYTHON, "-I", str(program), str(served.state / "run" / "api.sock"), port]
    done = served.tidegate(*argv)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line != "tcp b''"][:2] == ["sees False", "socket False"]
    assert "HTTP/1.1 200" not in done.stdout
    assert "HTTP/1.1 401" not in done.stdout


def test_a_question_of_a_real_connection_is_answered_on_the_command_line(served: Served) -> None:
    """ASK-2, ASK-5: a real connection waits, `questions` shows it, `answer` refuses it, and the task is told."""
    program = (
        "import socket, os\n"
        "host, port = os.environ['HTTP_PROXY'].removeprefix('http://').rstrip('/').rsplit(':', 1)\n"
        "s = socket.create_connection((host, int(port)), timeout=60)\n"
        "s.sendall(b'CONNECT ask.test:443 HTTP/1.1\\r\\nHost: ask.test:443\\r\\n\\r\\n')\n"
        "print(s.recv(4096).decode().splitlines()[0])\n"
    )
    watching = served.start("questions", "--follow", "--json")
    try:
        assert watching.stdout is not None
        until(lambda: served.tidegate("questions").returncode == 0)  # somebody is there from now on
        task = served.start("run", "--wait", "--ask-for", "ask.test:443", "--", PYTHON, "-c", program)
        question = json.loads(watching.stdout.readline())
        assert (question["host"], question["state"]) == ("ask.test", "open")
        done = served.tidegate("answer", str(question["id"]), "deny")
        assert done.returncode == 0, done.stderr
        out, err = task.communicate(timeout=60)
        assert out.startswith("HTTP/1.1 403"), (out, err)
        again = served.tidegate("answer", str(question["id"]), "allow")
        assert again.returncode == 1
        assert "already" in again.stderr
    finally:
        watching.terminate()
        watching.communicate(timeout=120)


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    """SRV-1: with --port a taken port is exit 78 and one line; without it another one is taken."""
    product = Product(tmp_path, user=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        argv = product.argv("serve", "--port", str(taken.getsockname()[1]))
        done = subprocess.run(
            argv, cwd=product.folder, env=product.environment, capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 78
    assert "--port" in done.stderr
    assert not (product.state / "run" / "api.sock").exists()


def test_what_is_open_is_listed_and_one_of_it_cut(served: Served, lab: Lab) -> None:
    """POL-8, SRV-2: `task connections` has a number for each, `cut --connection` closes that one."""
    lab.origin("raw", "1.2.3.4", 443)
    with Talker.behind(served, "--allow", "1.2.3.4:443") as task:
        for _ in range(2):
            assert task.says("open 1.2.3.4:443") == "200"
        assert task.says("send 300") == "sent"
        first, second = served.tidegate("task", "connections", task.id).stdout.splitlines()
        assert first.split("  ")[1:3] == ["1.2.3.4:443", "tunneled (1.2.3.4:443)"]
        assert first.endswith("300 bytes up, 300 down")
        number = second.split()[0]
        assert [one["id"] for one in served.json("task", "connections", task.id)["open"]] == [
            int(first.split()[0]), int(number),
        ]  # fmt: skip
        done = served.tidegate("cut", "--connection", number)
        assert done.stdout == f"1 connection of {task.id} closed\n"
        assert task.says("read 1") == "end"
        assert task.says("send 5") == "sent"
        assert len(served.tidegate("task", "connections", task.id).stdout.splitlines()) == 1
        assert "0 connections of" in served.tidegate("cut", "--connection", number).stdout
    done = served.tidegate("task", "connections", task.id)
    assert done.returncode == 2  # it has ended
    assert done.stderr.count("\n") == 1
