"""tidegate.cli.exec: commands of a task in real holds, behind a real server, in the lab."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.lab.api import Lab
from tests.product import PATIENCE, PYTHON, Product
from tests.served import Served, until
from tidegate.cli.main import main

GET = "import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).status)"

# Says what it is, waits, and in the end looks for the other one.
NEIGHBOUR = """
import os, socket, sys, time
print(os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/user"), flush=True)
server = socket.socket(); server.bind(("127.0.0.1", 8099)); server.listen()
open("up", "w").close()
while not os.path.exists("go"): time.sleep(0.01)
"""
LOOKS = """
import os, socket
print(os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/user"))
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: command = open(f"/proc/{pid}/cmdline").read()
    except OSError: continue
    if "NEI" + "GH" in command and pid != str(os.getpid()): found.append(pid)
print("processes", found)
try: socket.create_connection(("127.0.0.1", 8099), 2); print("reached")
except OSError as error: print("not reached")
"""


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab, as root and as an ordinary user."""
    assert lab
    return Product(tmp_path, user=request.param == "user")


def test_a_command_runs_under_the_tasks_policy_and_in_its_folder(product: Product, lab: Lab) -> None:
    """HLD-5, HLD-16: what passes, what is refused, what is said and the status are those of `run`."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    with Served(product) as server:
        task = server.tidegate("task", "create", "--allow", "a.test:80").stdout.strip()
        done = server.tidegate("exec", task, "--", PYTHON, "-c", GET, "http://a.test/", cwd="/")
        assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
        assert done.stderr == "net: a.test:80 · forwarded (command-line)\n"
        done = server.tidegate(
            "exec", task, "--fail-on-refusal", "--", "sh", "-c", f"{PYTHON} -c '{GET}' http://b.test/; :"
        )
        assert done.returncode == 77
        assert "net: b.test:80 · refused, would wait for approval" in done.stderr
        where = server.tidegate("exec", task, "--", "sh", "-c", "echo $PWD $TIDEGATE_TASK; exit 9", cwd="/")
        assert (where.returncode, where.stdout) == (9, f"{product.folder} {task}\n")
        assert server.json("task", "show", task)["refused"] == 1


@pytest.mark.parametrize("network", ["", "--no-network", "--open-network"])
def test_two_commands_of_a_task_cannot_touch_one_another(product: Product, network: str) -> None:
    """HLD-5: namespaces of their own, whatever network each has: no process seen, no socket reached."""
    with Served(product) as server:
        task = server.tidegate("task", "create").stdout.strip()
        neighbour = server.start("exec", task, "--", PYTHON, "-c", "#NEIGH\n" + NEIGHBOUR)
        until((product.folder / "up").exists)
        words = [word for word in (network,) if word]
        looks = server.tidegate("exec", task, *words, "--", PYTHON, "-c", LOOKS)
        (product.folder / "go").touch()
        out, err = neighbour.communicate(timeout=PATIENCE)
        assert neighbour.returncode == 0, err
        first, second = out.split(), looks.stdout.splitlines()
        assert looks.returncode == 0, looks.stderr
        assert not set(first) & set(second[0].split())
        assert second[1] == "processes []"
        assert second[2] == "not reached"


def test_a_task_that_ends_takes_its_commands_along(product: Product) -> None:
    """HLD-8: exit 70 and who ended it; a command without a gate as well."""
    with Served(product) as server:
        task = server.tidegate("task", "create").stdout.strip()
        running = [
            server.start("exec", task, *words, "--", "sh", "-c", "echo up; exec sleep 600")
            for words in ((), ("--no-network",))
        ]
        for one in running:
            assert one.stdout is not None
            assert one.stdout.readline() == "up\n"
        assert server.tidegate("task", "end", task).returncode == 0
        for one in running:
            _out, err = one.communicate(timeout=PATIENCE)
            assert one.returncode == 70
            assert "ended from outside" in err


@pytest.mark.parametrize(
    ("argv", "status", "says"),
    [
        (["exec"], 2, ""),
        (["exec", "--", "true"], 2, "the task comes first"),
        (["exec", "t", "--allow", "a.test", "--", "true"], 2, "unknown option"),
        (["exec", "t", "--policy", "p", "--", "true"], 2, "unknown option"),
        (["exec", "t"], 2, "no command"),
        (["exec", "t", "--", "true"], 78, "tidegate serve"),
    ],
)
def test_mistakes_are_one_line(
    argv: list[str],
    status: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """HLD-16: the policy is the task's, so options of a policy have no place here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(argv) == status
    assert says in capsys.readouterr().err


def test_help_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """--help goes to standard output."""
    assert main(["exec", "--help"]) == 0
    assert "usage: tidegate exec TASK" in capsys.readouterr().out


def test_a_folder_in_the_place_of_the_tasks_folder_is_not_entered(product: Product, tmp_path: Path) -> None:
    """HLD-7, ASK-8: moved, replaced, or led elsewhere by a link: exit 78 and why, and nothing has run."""
    folder = product.folder / "work"
    other = product.folder / "precious"
    for path in (folder, other):
        path.mkdir()
        if product.user:
            os.chown(path, 12345, 12345)
    with Served(product) as server:
        task = server.tidegate("task", "create", "--folder", str(folder)).stdout.strip()
        touch = ("exec", task, "--", "touch", "touched")
        assert server.tidegate(*touch).returncode == 0
        folder.rename(tmp_path / "home" / "moved")
        gone = server.tidegate(*touch)
        assert (gone.returncode, gone.stderr.count("\n")) == (78, 1)
        assert "cannot be " in gone.stderr
        folder.symlink_to(other)
        linked = server.tidegate(*touch)
        folder.unlink()
        folder.mkdir()
        folder.chmod(0o777)
        replaced = server.tidegate(*touch)
        for done in (linked, replaced):
            assert (done.returncode, done.stderr.count("\n")) == (78, 1)
            assert "is another folder than when the task was created: tidegate task create" in done.stderr
        assert not list(other.iterdir())
        assert not list(folder.iterdir())


def test_the_set_up_command_runs_once_before_the_first_command(product: Product, lab: Lab) -> None:
    """POL-7: in the phase install, once per task; one that failed runs again; others wait for it to end; exit 78."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    setup = (
        f"echo set up >> ran; {PYTHON} -c '{GET}' http://a.test/ && until [ -e go ]; do sleep 0.1; done && [ -e ok ]"
    )
    (product.folder / "set-up").write_text(setup)
    policy = product.folder / "p.yaml"
    policy.write_text(
        "setup: [sh, set-up]\nnetwork: {install: {allow: ['a.test:80']}, runtime: {allow: ['b.test:80']}}\n"
    )
    with Served(product) as server:
        made = server.tidegate("task", "create", "--policy", "p.yaml")
        assert made.stderr == "tidegate: note: the policy's set-up command runs once, before the task's first command\n"
        task = made.stdout.strip()
        assert server.tidegate("exec", task, "--no-network", "--", "true").returncode == 0
        assert not (product.folder / "ran").exists()
        first = server.start("exec", task, "--", "sh", "-c", f"{PYTHON} -c '{GET}' http://a.test/ || echo ran")
        until((product.folder / "ran").exists)
        assert server.json("task", "show", task)["phase"] == "install"
        second = server.tidegate("exec", task, "--", "true")
        assert (second.returncode, second.stderr.count("\n")) == (78, 1)
        assert "is being set up" in second.stderr
        (product.folder / "go").touch()
        out, err = first.communicate(timeout=PATIENCE)
        assert (first.returncode, out) == (78, ""), err
        assert "the set-up command ended with 1, and the command was not run" in err
        assert server.json("task", "show", task)["phase"] == "runtime"
        (product.folder / "ok").touch()
        for _ in range(2):
            done = server.tidegate("exec", task, "--", "sh", "-c", f"{PYTHON} -c '{GET}' http://a.test/ || echo ran")
            assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
        assert (product.folder / "ran").read_text() == "set up\n" * 2
        phases = [line["phase"] for line in server.actions() if line["type"] == "task.phase"]
        assert phases == ["install", "runtime"] * 2


def test_streams_signals_and_statuses_are_the_commands(product: Product) -> None:
    """HLD-9, HLD-16: what is piped in arrives, Ctrl-C ends it as it would the command, and the task lives on."""
    with Served(product) as server:
        task = server.tidegate("task", "create").stdout.strip()
        piped = server.tidegate("exec", task, "--", "cat", input="piped\n", stdin=None)
        assert (piped.returncode, piped.stdout, piped.stderr) == (0, "piped\n", "")
        for command, status in (
            (("sh", "-c", "exit 3"), 3),
            (("sh", "-c", "kill -TERM $$"), 143),
            (("no-such-program",), 127),
            (("/etc/passwd",), 126),
        ):
            assert server.tidegate("exec", task, "--", *command).returncode == status
        running = server.start("exec", task, "--", "sh", "-c", "echo up; exec sleep 600")
        assert running.stdout is not None
        assert running.stdout.readline() == "up\n"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
        assert (running.returncode, err) == (-signal.SIGINT, "")
        until(lambda: server.json("task", "show", task)["execs"] == [])
