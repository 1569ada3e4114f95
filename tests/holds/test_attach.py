"""`tidegate attach` and `exec` with real containers, and a server that is started anew meanwhile (HLD-4, HLD-8)."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from typing import IO, TYPE_CHECKING

import pytest

from tests.engines import IMAGE
from tests.holds.late import NEEDS, PYTHON, serve
from tests.holds.launcher import PATIENCE
from tests.product import PYTHON as TOOLS_PYTHON
from tests.served import Served, hear
from tests.tools_kit import called, declare, tool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.holds.launcher import Launcher
    from tests.lab.api import Lab

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_container_keeps_its_gate_over_a_restart(launcher: Launcher, lab: Lab, end: str) -> None:
    """Behind the gate, without a route while the server is gone, and behind the same policy when it is back.

    What changed meanwhile for new tasks changes nothing for this one (HLD-4, HLD-7, HLD-8).
    """
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    other = lab.origin("http", "1.2.3.5", 80, body="it is b.test\n")
    made = launcher.product.tidegate("task", "create", "--allow", "a.test:80", "--print-args", launcher.name)
    task, line = made.stdout.splitlines()
    container = launcher.launch(*shlex.split(line))
    look = ("exec", container, "sh", "-c")
    script = "wget -q -O- http://a.test/; unset http_proxy; wget -q -O- http://a.test/; wget -q -O- http://b.test/"
    assert "it is a.test" not in launcher.engine(*look, script)
    attached = launcher.attach(container, task)
    assert attached.stderr is not None
    try:
        assert launcher.engine(*look, script).count("it is a.test") == 2
        getattr(launcher.server, end)()
        hear(attached.stderr, "no route")
        assert "it is a.test" not in launcher.engine(*look, script)
        config = launcher.product.home / ".config" / "tidegate"
        config.mkdir(parents=True, exist_ok=True)
        (config / "allow").write_text("b.test\n")
        launcher.server = Served(launcher.product)
        assert "again" in attached.stderr.readline()
        assert launcher.engine(*look, script).count("it is a.test") == 2
        assert other.connections == 0
        launcher.remove(container)
        assert attached.wait(PATIENCE) == 0
        assert "a.test:80" in attached.stderr.read()
    finally:
        attached.kill()
        attached.wait()
        attached.stderr.close()


def test_a_server_that_is_stopped_leaves_nobody_in_it_waiting(launcher: Launcher, lab: Lab) -> None:
    """SIGSTOP: `attach` says so and connections are refused; SIGCONT: as before; killed meanwhile: as any other end.

    HLD-7, HLD-8, B95.
    """
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    made = launcher.product.tidegate("task", "create", "--allow", "a.test:80", "--print-args", launcher.name)
    task, line = made.stdout.splitlines()
    container = launcher.launch(*shlex.split(line))
    attached = launcher.attach(container, task)
    assert attached.stderr is not None
    stderr = attached.stderr
    script = "wget -q -O- http://a.test/ 2>&1; unset http_proxy; wget -q -O- http://a.test/ 2>&1; echo over"

    def look() -> str:
        return launcher.engine("exec", container, "sh", "-c", script)

    try:
        assert look().count("it is a.test") == 2
        for number in (signal.SIGCONT, signal.SIGKILL):
            os.kill(launcher.server.pid, signal.SIGSTOP)
            hear(stderr, "the server does not answer")
            assert "it is a.test" not in look()
            if number == signal.SIGCONT:
                os.kill(launcher.server.pid, number)
                hear(stderr, "the server answers again")
                assert look().count("it is a.test") == 2
        launcher.server.kill()
        hear(stderr, "no route")
        launcher.server = Served(launcher.product)
        hear(stderr, "again")
        assert look().count("it is a.test") == 2
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(launcher.server.pid, signal.SIGCONT)
        attached.kill()
        attached.wait()
        stderr.close()


CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as wire:
        print(wire.connect_ex(path))
"""


def test_what_its_launcher_mounted_is_named_and_a_container_without_is_not_warned_of(
    launcher: Launcher, tmp_path: Path
) -> None:
    """HLD-14: sockets there are reached, those from before and later ones; that is what the warning says, and where."""
    made = launcher.product.tidegate("task", "create", "--print-args", launcher.name)
    task, line = made.stdout.splitlines()
    mounts = [word for path in (*NEEDS, str(tmp_path)) for word in ("-v", f"{path}:{path}:ro")]
    container, bare = launcher.launch(*shlex.split(line), *mounts), launcher.launch(*shlex.split(line))
    with serve(tmp_path, "early"):
        attached = launcher.attach(container, task)
        assert attached.stderr is not None
        try:
            warning = attached.stderr.readline()
            assert "warning: it can reach whoever listens at a unix socket below" in warning
            assert str(tmp_path) in warning
            with serve(tmp_path, "late"):
                places = [str(tmp_path / name) for name in ("early", "late", "none")]
                assert launcher.engine("exec", container, *PYTHON, CONNECT, *places).split() == ["0", "0", "2"]
        finally:
            attached.kill()
            attached.wait()
            attached.stderr.close()
    other = launcher.attach(bare, task)
    assert other.stderr is not None
    launcher.remove(bare)
    assert other.wait(PATIENCE) == 0
    assert other.stderr.read() == ""
    other.stderr.close()


def test_what_goes_wrong_is_said_as_it_is(launcher: Launcher) -> None:
    """A container that has its gate, one that does not run, a task that ends, an image that is missing (HLD-7)."""
    tidegate = launcher.product.tidegate
    task, line = tidegate("task", "create", "--print-args", launcher.name).stdout.splitlines()
    container = launcher.launch(*shlex.split(line))
    created = launcher.engine("create", "--network", "none", IMAGE, "true").split()[-1]
    launcher.containers.append(created)
    attached = launcher.attach(container, task)
    assert attached.stderr is not None
    try:
        again = tidegate("attach", "--container", container, "--task", task)
        assert (again.returncode, "another `tidegate attach` to it" in again.stderr) == (78, True), again.stderr
        idle = tidegate("attach", "--container", created, "--task", task)
        assert (idle.returncode, f"{launcher.name} start {created[:20]}" in idle.stderr) == (78, True), idle.stderr
        words = ("--print-args", launcher.name, "--hold", launcher.name, "--image", "example.test/no:1")
        none = tidegate("task", "create", "--secret", "nothing", *words)
        assert none.returncode != 0
        assert none.stdout == ""
        assert [one["id"] for one in launcher.server.json("task", "list")] == [task]
        assert tidegate("task", "end", task).returncode == 0
        assert attached.wait(PATIENCE) == 70
        said = attached.stderr.read()
        assert "this task was ended from outside" in said
        assert "the container has no route any more" in said
        assert "the server is gone" not in said
    finally:
        attached.kill()
        attached.wait()
        attached.stderr.close()


WEAK = [
    (("--network", "none", "--pid", "host"), "processes"),
    (("--network", "none", "--cap-add", "NET_ADMIN"), "NET_ADMIN"),
    (("--network", "none", "-v", "/run:/host-run"), "/run of this machine"),
    (("--network", "host"), "network"),
    (("--network", "none", "--security-opt", "seccomp=unconfined"), "no filter of system calls"),
]


@pytest.mark.parametrize(("options", "says"), WEAK)
def test_a_container_with_a_way_around_is_refused(launcher: Launcher, options: tuple[str, ...], says: str) -> None:
    """Rights, namespaces, sockets and networks of this machine: refused by name, nothing served (HLD-4, B79)."""
    task = launcher.product.tidegate("task", "create").stdout.strip()
    container = launcher.launch(*options)
    done = launcher.product.tidegate("attach", "--container", container, "--task", task)
    assert done.returncode == 78, done.stderr
    assert says in done.stderr


def test_exec_runs_in_a_container(launcher: Launcher, lab: Lab) -> None:
    """A command of a created task, in a container, under the task's policy (HLD-4, HLD-5)."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    task = launcher.product.tidegate("task", "create", "--allow", "a.test:80").stdout.strip()
    words = ("exec", task, "--hold", launcher.name, "--image", IMAGE, "--")
    done = launcher.product.tidegate(*words, "sh", "-c", "unset http_proxy; wget -q -O- http://a.test/; exit 3")
    assert (done.returncode, done.stdout) == (3, "it is a.test\n"), done.stderr


def test_a_task_is_created_for_containers(launcher: Launcher) -> None:
    """What `task create` was told holds for each `exec`, also after a restart of the server; `--hold` says otherwise.

    HLD-4, HLD-5, HLD-8.
    """
    tidegate = launcher.product.tidegate
    made = tidegate("task", "create", "--hold", launcher.name, "--image", IMAGE, "--container-option", "shm-size=7m")
    task = made.stdout.strip()
    assert task, made.stderr
    look = ("grep", " /dev/shm ", "/proc/mounts")
    assert "size=7168k" in tidegate("exec", task, "--", *look).stdout
    launcher.server.kill()
    launcher.server = Served(launcher.product)
    assert "size=7168k" in tidegate("exec", task, "--", *look).stdout
    assert "size=7168k" not in tidegate("exec", task, "--hold", "netns", "--", *look).stdout


def test_an_engine_and_an_image_go_together(launcher: Launcher) -> None:
    """One without the other is a mistake of usage, and no task is made (HLD-16)."""
    for words in (("--hold", launcher.name), ("--image", IMAGE), ("--container-option", "memory=1g")):
        done = launcher.product.tidegate("task", "create", *words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr


def test_doctor_names_the_transport(launcher: Launcher) -> None:
    """A row for each engine, found out with a real container (SRV-5)."""
    done = launcher.product.tidegate("doctor")
    assert f"ok    hold {launcher.name}: transport enter, root's" in done.stdout


HELD = {"apply_task_hosts": True}
SHOUT = tool("print(text.upper())", text={"type": "string", "maxLength": 100})
TELL = (  # busybox sends a GET for --post-data through a proxy
    "wget -q -O- ${TIDEGATE_TOOLS}shout 2>&1; unset http_proxy;"
    " wget -q -O- --header 'Content-Type: application/json' --post-data '{\"text\": \"hey\"}'"
    " ${TIDEGATE_TOOLS}shout 2>&1"
)


def test_a_container_has_the_tools_of_its_task(launcher: Launcher) -> None:
    """SRV-6, HLD-8: by proxy and capture, one held to the task's hosts, behind the next server, and none without."""
    product = launcher.product
    declare(product, shout=SHOUT, held=tool("import socket; print(socket.if_nameindex())", more=HELD))
    launcher.server.stop()
    launcher.server = Served(product, "--tool", "shout", "--tool", "held")
    words = ("--tool", "shout", "--tool", "held", "--print-args", launcher.name)
    made = product.tidegate("task", "create", *words)
    task, line = made.stdout.splitlines()
    container = launcher.launch(*shlex.split(line))
    in_its_hold = TELL.partition("; unset")[2].replace("shout", "held").replace('{"text": "hey"}', "{}")

    def look() -> list[str]:
        return launcher.engine("exec", container, "sh", "-c", TELL).splitlines()

    attached, stderr = _attached(launcher, container, task)
    try:
        assert [look()[0][:16], look()[-1]] == ['{"name": "shout"', "HEY"]
        launcher.server.kill()
        hear(stderr, "no route")
        launcher.server = Served(product, "--tool", "shout", "--tool", "held")
        assert "again" in stderr.readline()
        assert launcher.engine("exec", container, "sh", "-c", f"unset{in_its_hold}") == "[(1, 'lo')]\n"
        assert [look()[0][:16], look()[-1]] == ['{"name": "shout"', "HEY"]
        assert [one["result"] for one in called(product)] == ["ok"] * 5
        launcher.remove(container)
        assert attached.wait(PATIENCE) == 0
        assert "tool: shout · 4 calls\n" in stderr.read()
        stderr.close()
        container = launcher.launch(*shlex.split(line))
        attached, stderr = _attached(launcher, container, task)
        launcher.server.kill()
        launcher.server = Served(product)
        assert "'shout', which this server does not offer" in stderr.read()
        assert attached.wait(PATIENCE) == 78
        assert "HEY" not in look()
    finally:
        attached.kill()
        attached.wait()
        stderr.close()


def _attached(launcher: Launcher, container: str, task: str) -> tuple[subprocess.Popen[str], IO[str]]:
    process = launcher.attach(container, task)
    assert process.stderr is not None
    return process, process.stderr


def test_a_container_that_could_change_its_tool_gets_no_gate(launcher: Launcher) -> None:
    """SRV-6, HLD-15: what its launcher mounted to be written decides; the same folder to be read is its neighbour."""
    product = launcher.product
    folder = os.path.dirname(TOOLS_PYTHON)
    declare(product, shout=SHOUT)
    launcher.server.stop()
    launcher.server = Served(product, "--tool", "shout")
    made = product.tidegate("task", "create", "--tool", "shout", "--print-args", launcher.name)
    task, line = made.stdout.splitlines()
    for place in (folder, os.path.dirname(folder)):
        could = launcher.launch(*shlex.split(line), "-v", f"{place}:/mine")
        done = product.tidegate("attach", "--container", could, "--task", task)
        said = f"would run '{TOOLS_PYTHON}', which a task can write: move it out of '{place}'"
        assert (done.returncode, said in done.stderr) == (78, True), done.stderr
        launcher.remove(could)
    container = launcher.launch(*shlex.split(line), "-v", f"{folder}:/mine:ro")
    attached = launcher.attach(container, task)
    attached.kill()
    attached.wait()
    assert attached.stderr is not None
    attached.stderr.close()


@pytest.mark.parametrize("readonly", [False, True])
def test_what_is_mounted_below_a_read_only_folder_can_be_written(launcher: Launcher, *, readonly: bool) -> None:
    """SRV-6, HLD-15: an engine's `ro` is the top's alone: what lies below it and is the tool's is seen; its neighbour.

    The folder below is the program's own, bound there, so that its name outside is another.
    """
    product = launcher.product
    programs = os.path.dirname(TOOLS_PYTHON)
    top = product.home / "top"
    below = top / "below"
    below.mkdir(parents=True)
    declare(product, shout=SHOUT)
    launcher.server.stop()
    launcher.server = Served(product, "--tool", "shout")
    made = product.tidegate("task", "create", "--tool", "shout", "--print-args", launcher.name)
    task, line = made.stdout.splitlines()
    subprocess.run(["mount", "--bind", programs, str(below)], check=True)
    try:
        if readonly:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(below)], check=True)
        container = launcher.launch(*shlex.split(line), "-v", f"{top}:/mine:ro")
        if readonly:
            attached = launcher.attach(container, task)
            attached.kill()
            attached.wait()
            assert attached.stderr is not None
            attached.stderr.close()
        else:
            done = product.tidegate("attach", "--container", container, "--task", task)
            said = f"would run '{TOOLS_PYTHON}', which a task can write"
            assert (done.returncode, said in done.stderr) == (78, True), done.stderr
        launcher.remove(container)
    finally:
        subprocess.run(["umount", str(below)], check=True)


def test_a_container_has_one_attach_in_its_life(launcher: Launcher) -> None:
    """HLD-4, HLD-7: what its network was told stays, so a second one is refused, and says what to do instead."""
    task, line = launcher.product.tidegate("task", "create", "--print-args", launcher.name).stdout.splitlines()
    container = launcher.launch(*shlex.split(line))
    attached = launcher.attach(container, task)
    attached.kill()
    attached.wait()
    assert attached.stderr is not None
    attached.stderr.close()
    done = launcher.product.tidegate("attach", "--container", container, "--task", task)
    assert done.returncode == 78
    assert "told of a gate before, by a `tidegate attach` that has ended: start the container anew" in done.stderr
