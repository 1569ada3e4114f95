"""What a task can do to the server it runs behind: nothing. The same attempts pass outside, where the operator is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.lab.api import Lab
from tests.product import LAUNCHER, PYTHON, Product
from tests.served import Served

# Each attempt says "done" where it got what it wanted. STATE, SERVER and LAUNCHER are filled in.
ATTEMPTS = {
    "connect_to_the_front_door": "os.chdir(STATE + '/run'); s = socket.socket(socket.AF_UNIX); s.connect('front.sock')",
    "connect_by_another_way_there": (
        "os.symlink(STATE, '/tmp/way-%d' % os.getpid()); s = socket.socket(socket.AF_UNIX); "
        "s.connect('/tmp/way-%d/run/front.sock' % os.getpid())"
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
}
# Outside these need a task, or are another matter for a process of the same user (ptrace scopes differ by machine).
NOT_OUTSIDE = {"move_its_own_phase", "trace_the_server", "get_a_descriptor_of_the_server", "look_at_the_servers_memory"}

PROGRAM = """
import ctypes, json, os, socket, subprocess
STATE, SERVER, LAUNCHER = {state!r}, {server!r}, {launcher!r}
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
    return PROGRAM.format(state=str(server.state), server=server.pid, launcher=LAUNCHER, attempts=ATTEMPTS)


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
        if hold == "exec":
            task = server.tidegate("task", "create").stdout.strip()
            words = ["exec", task]
        else:
            words = ["run", *([hold] if hold else [])]
        done = server.tidegate(*words, "--", PYTHON, "-c", _program(server))
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        assert set(said) == set(ATTEMPTS)
        assert [name for name, how in said.items() if how == "done"] == []
        assert not (server.state / "run" / "planted").exists()
        # A task moved nothing, and the server is as it was.
        assert not [line for line in server.actions() if line["type"] == "task.phase"]
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
