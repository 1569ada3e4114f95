"""What a task can do to the server it runs behind: nothing. The same attempts pass outside, where the operator is."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.lab.api import Lab
from tests.product import LAUNCHER, PYTHON, Product
from tests.served import Served, until

# Each attempt says "done" where it got what it wanted. STATE, SERVER and LAUNCHER are filled in.
ATTEMPTS = {
    "connect_to_the_front_door": "os.chdir(STATE + '/run'); s = socket.socket(socket.AF_UNIX); s.connect('front.sock')",
    "connect_by_another_way_there": (
        "with tempfile.TemporaryDirectory() as way: os.symlink(STATE, way + '/to'); "
        "s = socket.socket(socket.AF_UNIX); s.connect(way + '/to/run/front.sock')"
    ),
    "connect_through_the_servers_root": (
        "os.chdir('/proc/%d/root%s/run' % (SERVER, STATE)); s = socket.socket(socket.AF_UNIX); s.connect('front.sock')"
    ),
    "read_where_the_server_is": "open(STATE + '/run/server.json').read()",
    "read_the_database": "open(STATE + '/tidegate.db', 'rb').read(16)[15]",
    "read_the_action_log": "open(STATE + '/log/actions.jsonl').read()[1]",
    "read_the_key": "open(STATE + '/keys/actions.key', 'rb').read()[0]",
    "list_the_state": "os.listdir(STATE)[0]",
    "put_a_file_into_the_state": "open(STATE + '/run/planted', 'w').close(); open(STATE + '/run/lock').close()",
    "signal_the_server": "os.kill(SERVER, 0)",
    "look_at_the_servers_memory": "open('/proc/%d/mem' % SERVER, 'rb').close()",
    "trace_the_server": "assert ctypes.CDLL(None).ptrace(0x4206, SERVER, 0, 0) == 0",
    "get_a_descriptor_of_the_server": (
        "handle = os.pidfd_open(SERVER); assert ctypes.CDLL(None).syscall(438, handle, 0, 0) >= 0"
    ),
    "list_tasks_by_the_command": "subprocess.run([LAUNCHER, 'task', 'list'], check=True, capture_output=True)",
    "move_its_own_phase": (
        "subprocess.run([LAUNCHER, 'task', 'phase', os.environ['TIDEGATE_TASK'], 'install'], check=True, "
        "capture_output=True)"
    ),
    "answer_by_the_command": "command('answer', '1', 'allow')",
    "read_questions_by_the_command": "command('questions')",
    "make_a_token_by_the_command": "command('token', 'create', '--owner', 'mine-%d' % os.getpid())",
    "allow_a_host_by_the_command": "command('allow', 'evil.test', '--task', os.environ['TIDEGATE_TASK'])",
    "trust_its_folder_by_the_command": (
        "open('tidegate.yaml', 'w').write('network: {runtime: {allow: [evil.test]}}'); "
        "command('policy', 'trust', '--yes')"
    ),
    "ask_the_api_by_its_socket": (
        "os.chdir(STATE + '/run'); s = socket.socket(socket.AF_UNIX); s.connect('api.sock'); "
        "s.sendall(b'GET /api/tasks HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'); assert b' 200 ' in s.recv(64)"
    ),
    "reach_the_api_on_loopback": "assert status('127.0.0.1')",
    "reach_the_api_by_the_unspecified_address": "assert status('0.0.0.0')",
    "use_the_api_on_loopback": "assert status('127.0.0.1') == 200",
    "use_the_api_by_ipv6": "assert status('::1') or status('::ffff:127.0.0.1') == 200",
    "use_the_api_by_the_machines_name": "assert status(socket.gethostbyname(socket.gethostname())) == 200",
    "reach_the_api_through_the_gate": "assert status('127.0.0.1', tunnel=True)",
    "reach_the_api_in_clear_text_through_the_gate": "assert forwarded()",
    "find_a_token": "assert any(sha256(found).hexdigest() == TOKEN for found in tokens())",
    "find_a_connection_to_the_server": "assert any(b'tidegate' in name(fd) for fd in os.listdir('/proc/self/fd'))",
}
# A hold without a fence has the machine's loopback; what is reached there wants a token.
REACHED_IN_OPEN = {"reach_the_api_on_loopback", "reach_the_api_by_the_unspecified_address"}
# Outside these need a task, or are another matter for a process of the same user (ptrace scopes differ by machine).
NOT_OUTSIDE = {
    *("move_its_own_phase", "trace_the_server", "get_a_descriptor_of_the_server", "look_at_the_servers_memory"),
    *("answer_by_the_command", "allow_a_host_by_the_command"),
    *("use_the_api_on_loopback", "use_the_api_by_ipv6", "use_the_api_by_the_machines_name"),
    *("reach_the_api_through_the_gate", "reach_the_api_in_clear_text_through_the_gate"),
    *("find_a_token", "find_a_connection_to_the_server"),
}

PROGRAM = """
import ctypes, http.client, json, os, re, socket, subprocess, tempfile, urllib.parse
from glob import glob
from hashlib import sha256
STATE, SERVER, LAUNCHER, PORT, TOKEN = {state!r}, {server!r}, {launcher!r}, {port!r}, {token!r}
PROXY = urllib.parse.urlsplit(os.environ.get('HTTP_PROXY', 'http://127.0.0.1:1'))

def command(*words):
    subprocess.run([LAUNCHER, *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)

def status(host, tunnel=False):
    wire = http.client.HTTPConnection(*((PROXY.hostname, PROXY.port) if tunnel else (host, PORT)), timeout=10)
    if tunnel:
        wire.set_tunnel(host, PORT)
    wire.request('GET', '/api/tasks', headers={{'Host': '127.0.0.1:%d' % PORT}})
    return of_the_api(wire.getresponse())

def of_the_api(answer):
    return answer.status if answer.getheader('Content-Security-Policy') else 0  # or it is the gate's

def forwarded():
    wire = http.client.HTTPConnection(PROXY.hostname, PROXY.port, timeout=10)
    wire.request('GET', 'http://127.0.0.1:%d/api/tasks' % PORT)
    return of_the_api(wire.getresponse())

def tokens():
    for path in glob('/proc/[0-9]*/environ') + glob('/proc/[0-9]*/cmdline') + glob(STATE + '/*'):
        try:
            yield from re.findall(rb'tg_[A-Za-z0-9_-]{{40,}}', open(path, 'rb').read())
        except OSError:
            pass

def name(fd):
    try:
        return os.fsencode(str(socket.socket(fileno=os.dup(int(fd))).getpeername()))
    except OSError:
        return b''

said = {{}}
for name, code in {attempts!r}.items():
    try:
        exec(code)
        said[name] = "done"
    except BaseException as error:
        said[name] = type(error).__name__
print(json.dumps(said))
"""


def _program(server: Served) -> str:
    secret = server.tidegate("token", "create", "--owner", "a person").stdout.strip()
    assert secret.startswith("tg_"), secret
    return PROGRAM.format(
        state=str(server.state), server=server.pid, launcher=LAUNCHER, attempts=ATTEMPTS, port=_port(server),
        token=sha256(secret.encode()).hexdigest(),
    )  # fmt: skip


def _port(server: Served) -> int:
    return int(until(lambda: json.loads((server.state / "run" / "server.json").read_text())["api_port"]))


@pytest.fixture(scope="module", params=["root", "user"] if os.geteuid() == 0 else ["user"])
def user(request: pytest.FixtureRequest) -> str:
    """Who runs it."""
    return str(request.param)


@pytest.mark.parametrize("hold", ["", "--no-network", "--open-network", "exec"])
def test_no_hold_lets_a_task_reach_its_server(user: str, hold: str, tmp_path: Path, lab: Lab) -> None:
    """SRV-1, HLD-15, POL-7, B95: the server's sockets, files, memory and commands are out of a task's reach."""
    assert lab
    product = Product(tmp_path, user=user == "user")
    with Served(product) as server:
        allow = ["--allow", f"127.0.0.1:{_port(server)}"]  # no rule leads to a port that is protected (ADR-1)
        if hold == "exec":
            task = server.tidegate("task", "create", *allow).stdout.strip()
            words = ["exec", task]
        else:
            words = ["run", *([hold] if hold else allow)]
        done = server.tidegate(*words, "--", PYTHON, "-c", _program(server))
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        assert set(said) == set(ATTEMPTS)
        done_inside = {name for name, how in said.items() if how == "done"}
        assert done_inside == (REACHED_IN_OPEN if hold == "--open-network" else set())
        assert not (server.state / "run" / "planted").exists()
        # A task moved nothing, and the server is as it was.
        changed = {"task.phase", "task.changed", "question.answered", "trust.added"}
        assert [line["type"] for line in server.actions() if line["type"] in changed] == []
        made = [line["name"] for line in server.actions() if line["type"] == "token.created"]
        assert made == ["a person"]
        assert server.json("task", "list", "--all")


def test_the_same_attempts_pass_outside(user: str, tmp_path: Path, lab: Lab) -> None:
    """The neighbour: the operator's own process can do all of that, so the refusals inside are the hold's work."""
    assert lab
    product = Product(tmp_path, user=user == "user")
    with Served(product) as server:
        argv = product.argv("x")[:-2]  # as the product's user, without the launcher
        import subprocess

        done = subprocess.run(
            [*argv, PYTHON, "-c", _program(server)],
            cwd=product.folder,
            env=product.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        said = json.loads(done.stdout.splitlines()[-1])
        assert {name for name, how in said.items() if how != "done"} <= NOT_OUTSIDE
        (server.state / "run" / "planted").unlink()
