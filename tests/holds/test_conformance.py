"""What every hold owes its task and its machine, whatever it is made of."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.holds import held

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = pytest.mark.parametrize("hold", held.HOLDS)
EVERYBODY = pytest.mark.parametrize("user", held.USERS)
GATED = pytest.mark.parametrize("hold", ["netns", "landlock"])
SHELL = "/bin/sh"


def sh(script: str, hold: str = "netns", **wishes: Any) -> dict[str, Any]:
    """Hold a shell script."""
    return held.hold(hold, [SHELL, "-c", script], **wishes)


@pytest.fixture
def in_tmp() -> Iterator[str]:
    """A folder in the machine's /tmp that everybody may write."""
    folder = tempfile.mkdtemp(prefix="tidegate-conformance-")
    os.chmod(folder, 0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@EVERY
@EVERYBODY
def test_the_command_is_itself(hold: str, user: str) -> None:
    """Arguments, folder, user, umask and exit status are the command's own (HLD-9, HLD-16)."""
    answer = sh('echo "$0|$*|$(pwd)|$(id -u)|$(umask)"; exit 37', hold, user=user)
    uid = 0 if user == "root" else 12345 if os.geteuid() == 0 else os.getuid()
    assert answer["status"] == 37, answer
    umask = os.umask(0o022)
    os.umask(umask)
    if hold == "uid":  # one of its own
        uid = int(answer["out"].split("|")[3])
        assert 30000 <= uid <= 39999
    assert answer["out"] == f"/bin/sh||{answer['held']['workspace']}|{uid}|{umask:04o}\n"
    assert answer["said"][0].startswith("started ")


@EVERYBODY
def test_files_show_their_owners(user: str) -> None:
    """Root sees files of other users as theirs; an ordinary user sees its own as its own (HLD-1)."""
    answer = sh("touch own; stat -c %u own /etc/passwd", user=user)
    owners = answer["out"].split()
    assert owners == (["0", "0"] if user == "root" else [owners[0], "65534"])
    if user != "root":
        assert owners[0] != "65534"


@EVERY
@EVERYBODY
def test_a_workspace_below_tmp_is_bound(hold: str, user: str, in_tmp: str) -> None:
    """The workspace is there also where it lies in a folder that the task gets its own of (HLD-14)."""
    workspace = f"{in_tmp}/deep/work"
    answer = sh("echo here > file; ls -A /tmp; true", hold, user=user, workspace=workspace)
    assert answer["status"] == 0, answer
    with open(f"{workspace}/file", encoding="ascii") as file:
        assert file.read() == "here\n"
    if hold == "landlock":  # the machine's /tmp stays where it is, and is refused
        assert "Permission denied" in answer["out"]
    else:
        assert os.path.basename(in_tmp) in answer["out"].split()
    assert os.listdir(in_tmp) == ["deep"]


@pytest.mark.parametrize("workspace", ["/tmp", "/run", "/dev/shm", "/proc/1", "/sys/kernel", "/dev"])
def test_a_workspace_that_is_replaced_is_refused(workspace: str) -> None:
    """Such a folder is refused with what to do; nothing runs (HLD-7, HLD-14)."""
    answer = sh("echo ran", workspace=workspace)
    assert answer["code"] == "workspace"
    assert "from a folder of its own" in answer["error"]
    assert answer["out"] == ""


def test_the_root_is_a_workspace_like_any() -> None:
    """The neighbour: a task may run in `/`; what it may write there is decided elsewhere."""
    assert sh("pwd", workspace="/")["out"] == "/\n"


def test_a_folder_that_the_task_does_not_see_is_named() -> None:
    """A working directory that is not there inside stops the start, naming the way (HLD-7)."""
    answer = sh("echo ran", cwd="/tmp/not-there", workspace="/")
    assert "--share PATH" in answer["error"], answer
    assert answer["out"] == ""


def test_tidegates_own_folder_is_no_workspace(in_tmp: str) -> None:
    """A task cannot run in a folder that no task sees (HLD-15)."""
    hidden = f"{in_tmp}/state"
    assert sh("echo ran", workspace=f"{hidden}/runs", hidden=[hidden])["code"] == "workspace"


def test_a_hidden_folder_in_a_bound_workspace_stays_hidden(in_tmp: str) -> None:
    """What is hidden is hidden wherever it is bound to (HLD-15)."""
    os.makedirs(f"{in_tmp}/work/state")
    with open(f"{in_tmp}/work/state/secret", "w", encoding="ascii") as file:
        file.write("secret")
    answer = sh(
        "ls -A state; mv state other; echo x > state/y", workspace=f"{in_tmp}/work", hidden=[f"{in_tmp}/work/state"]
    )
    assert "secret" not in answer["out"].split("mv:")[0]
    assert "busy" in answer["out"]
    assert os.listdir(f"{in_tmp}/work/state") == ["secret"]


def test_a_workspace_in_shared_memory_is_bound_with_its_masks() -> None:
    """/dev/shm is where CI puts fast workspaces: it is there, what is hidden in it is not, the rest is not (HLD-14)."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as there:
        os.makedirs(f"{there}/work/state")
        with open(f"{there}/work/state/secret", "w", encoding="ascii") as file:
            file.write("secret")
        answer = sh(
            "echo here > file; ls -A state; mv state other; ls -A /dev/shm; ls -A ..",
            workspace=f"{there}/work",
            hidden=[f"{there}/work/state"],
        )
        assert answer["status"] == 0, answer
        assert "busy" in answer["out"]
        assert sorted(os.listdir(f"{there}/work")) == ["file", "state"]
        assert "secret" not in answer["out"].split("mv:")[0]
        assert answer["out"].split("\n")[-3:-1] == [os.path.basename(there), "work"]


@EVERYBODY
def test_shares_bring_folders_files_and_sockets_in(user: str, in_tmp: str) -> None:
    """`--share` gives what it names, writable or read-only, and its neighbours stay out (HLD-14)."""
    for name in ("open", "closed", "other"):
        os.mkdir(f"{in_tmp}/{name}", 0o777)
        os.chmod(f"{in_tmp}/{name}", 0o777)
    with open(f"{in_tmp}/file", "w", encoding="ascii") as file:
        file.write("shared\n")
    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(f"{in_tmp}/open/s")
        wire.listen()
        os.chmod(f"{in_tmp}/open/s", 0o777)
        program = (
            "import os, socket, sys; d = sys.argv[1]; open(d + '/open/new', 'w').close();"
            "print(open(d + '/file').read().strip(), sorted(os.listdir(d)));"
            "socket.socket(socket.AF_UNIX).connect(d + '/open/s'); print('connected')\n"
            "try: open(d + '/closed/new', 'w')\nexcept OSError as error: print(error.errno)"
        )
        shares = [(f"{in_tmp}/open", False), (f"{in_tmp}/closed", True), (f"{in_tmp}/file", True)]
        answer = held.hold("netns", [held.PYTHON, "-I", "-c", program, in_tmp], user=user, shares=shares)
    assert answer["out"] == "shared ['closed', 'file', 'open']\nconnected\n30\n"
    assert os.path.exists(f"{in_tmp}/open/new")


def test_one_socket_can_be_shared(in_tmp: str) -> None:
    """Sharing a socket gives that one; another in the same folder stays covered (HLD-14)."""
    program = (
        "import socket, sys\nfor name in 'ab':\n"
        " try: socket.socket(socket.AF_UNIX).connect(sys.argv[1] + '/' + name); print('connected')\n"
        " except OSError as error: print(error.errno)"
    )
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for wire, name in ((one, "a"), (other, "b")):
            wire.bind(f"{in_tmp}/{name}")
            wire.listen()
            os.chmod(f"{in_tmp}/{name}", 0o777)
        argv = [held.PYTHON, "-I", "-c", program, in_tmp]
        answer = held.hold("netns", argv, shares=[(f"{in_tmp}/a", False)], workspace=in_tmp)
    assert answer["out"] == "connected\n111\n"


@pytest.mark.parametrize("path", ["/", "/proc/sys", "/sys", "/dev", "/tmp/tidegate-not-there"])
def test_what_cannot_be_shared_is_refused(path: str) -> None:
    """A share that is missing, or that would undo the hold, is refused by name (HLD-7)."""
    answer = sh("echo ran", shares=[(path, False)])
    assert answer["code"] == "share"
    assert path in answer["error"]


def test_a_device_can_be_shared() -> None:
    """The neighbour: a device is there when it is named, and only then (HLD-13)."""
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("no such device here")
    assert "loop-control" in sh("ls /dev", shares=[("/dev/loop-control", False)])["out"].split()
    assert "loop-control" not in sh("ls /dev")["out"].split()


@pytest.mark.parametrize(("gate", "says"), [("allows", "did not refuse"), ("silent", "does not answer")])
@EVERYBODY
@GATED
def test_a_gate_that_does_not_refuse_stops_the_start(gate: str, says: str, user: str, hold: str) -> None:
    """The self-test asks for a name that no policy lets through; without a 403 nothing starts (HLD-11, B73, B94)."""
    answer = sh("echo ran", hold, gate=gate, user=user)
    assert says in answer["error"]
    assert answer["out"] == ""


@GATED
def test_without_the_self_test_nobody_asks_the_gate(hold: str) -> None:
    """The neighbour: `--no-selftest` starts the task all the same (HLD-11)."""
    assert sh("echo ran", hold, gate="silent", selftest=False)["out"] == "ran\n"


@pytest.mark.parametrize("hole", ["network", "filter", "capabilities", "tmp"])
@pytest.mark.parametrize("user", held.USERS)
def test_a_hole_in_the_fence_stops_the_start(hole: str, user: str) -> None:
    """With one part of the hold taken out, the self-test sees it and the task does not start (HLD-11, B76)."""
    answer = sh("echo ran", hole=hole, user=user)
    assert "self-test" in answer.get("error", ""), answer
    assert answer["out"] == ""


def processes(mark: str) -> list[int]:
    """Processes whose command line holds this mark."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read()
            except OSError:
                continue
            if mark.encode() in words and int(name) != os.getpid():
                found.append(int(name))
    return found


def gone(pids: list[int]) -> bool:
    """Whether all of these end soon (zombies of somebody else count as ended)."""
    end = time.monotonic() + held.PATIENCE
    while time.monotonic() < end:
        left = []
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                        left.append(pid)
            except OSError:
                continue
        if not left:
            return True
        time.sleep(0.05)
    return False


@EVERY
@EVERYBODY
def test_nothing_survives_the_command(hold: str, user: str) -> None:
    """A double fork, a new session and ignored signals do not outlive the command (HLD-9, B98)."""
    mark = f"86{os.getpid()}{held.HOLDS.index(hold)}{held.USERS.index(user)}"
    script = f"trap '' HUP TERM INT; (setsid sh -c 'trap \"\" TERM HUP; sleep {mark}' &) & sleep 0.3; exit 3"
    assert sh(script, hold, user=user)["status"] == 3
    assert gone(processes(f"sleep\0{mark}"))


def leftovers(front: int) -> set[str]:
    """What this front could have left where a hold makes things: the socket of a canary."""
    found = set()
    for folder in ("/run", "/tmp", "/dev/shm", f"/run/user/{os.getuid()}", "/var/tmp"):
        if os.path.isdir(folder):
            found |= {f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(f"canary.{front}")}
    return found


class Held:
    """A task that sleeps, with its front and init known by pid."""

    def __init__(self, hold: str, user: str) -> None:
        self.base = held.new_base()
        self.mark = f"87{os.getpid()}{time.monotonic_ns() % 10**9}"
        wishes = {"hold": hold, "argv": ["/bin/sleep", self.mark], "wait_for_death": True, "listeners": False}
        self.runner = subprocess.Popen(held.command(user, self.base, wishes), stdout=subprocess.PIPE, text=True)
        assert self.runner.stdout is not None
        facts = json.loads(self.runner.stdout.readline())
        self.front, self.init = facts["front"], facts["init"]
        end = time.monotonic() + held.PATIENCE
        while time.monotonic() < end:
            if self.sleepers():
                return
            time.sleep(0.02)
        raise AssertionError("the command did not start")

    def sleepers(self) -> list[int]:
        """The command, seen from outside."""
        return processes(f"sleep\0{self.mark}")

    def close(self) -> None:
        """End whatever is left."""
        self.runner.kill()
        self.runner.wait()
        assert self.runner.stdout is not None
        self.runner.stdout.close()
        shutil.rmtree(self.base, ignore_errors=True)


@EVERY
@EVERYBODY
def test_the_task_ends_with_its_front(hold: str, user: str) -> None:
    """Kill -9 of the front takes the whole task along and leaves no file and no process (HLD-7, HLD-9)."""
    task = Held(hold, user)
    try:
        pids = [task.init, *task.sleepers()]
        os.kill(task.front, signal.SIGKILL)
        assert gone(pids)
        assert not leftovers(task.front)
    finally:
        task.close()


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.02, 0.03, 0.05])
@EVERYBODY
@GATED
def test_a_front_killed_while_it_builds_leaves_no_process(delay: float, user: str, hold: str) -> None:
    """Wherever kill -9 meets the construction, its half-made processes end by themselves (HLD-7)."""
    base = held.new_base()
    wishes = {"hold": hold, "argv": ["/bin/sleep", "1000"], "listeners": False, "say_when": True}
    runner = subprocess.Popen(held.command(user, base, wishes), stdout=subprocess.PIPE, text=True)
    try:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "building\n"
        time.sleep(delay)
        runner.kill()
        runner.wait()
        assert gone(processes(base))
    finally:
        runner.kill()
        runner.wait()
        assert runner.stdout is not None
        runner.stdout.close()
        shutil.rmtree(base, ignore_errors=True)


@EVERYBODY
@GATED
def test_the_task_ends_with_its_init(user: str, hold: str) -> None:
    """Kill -9 of init ends every process of the task; the front learns of it at once (HLD-7, HLD-9)."""
    task = Held(hold, user)
    try:
        sleepers = task.sleepers()
        os.kill(task.init, signal.SIGKILL)
        assert gone(sleepers)
        assert task.runner.stdout is not None
        answer = json.loads(task.runner.stdout.read())
        assert os.WTERMSIG(answer["init_status"]) == signal.SIGKILL
        assert "status" not in answer
    finally:
        task.close()


@EVERYBODY
def test_the_namespaces_end_with_the_task(user: str) -> None:
    """While a task runs, init's namespaces are its own; when it has ended nothing holds them (HLD-1)."""
    task = Held("netns", user)
    try:
        kinds = ("user", "mnt", "net", "pid_for_children", "ipc")
        for kind in kinds:
            if user == "root":
                assert os.readlink(f"/proc/{task.init}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
        inside = {_namespaces(pid) for pid in task.sleepers()} if os.geteuid() == 0 else set()
        os.kill(task.front, signal.SIGKILL)
        assert gone([task.init])
        patience = time.monotonic() + held.PATIENCE  # what the kernel kills with init goes a moment after it
        while inside & {_namespaces(name) for name in os.listdir("/proc") if name.isdigit()} - {()}:
            assert time.monotonic() < patience, "a process is left in the task's namespaces"
            time.sleep(0.01)
    finally:
        task.close()


def _namespaces(pid: int | str) -> tuple[str, ...]:
    """All of a process's namespaces: a number alone may be given anew, to another test's, as soon as it is free."""
    try:
        return tuple(os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "mnt", "net", "pid", "ipc"))
    except OSError:
        return ()


WRAPPERS = {
    "max_user_namespaces": "echo 0 > /proc/sys/user/max_user_namespaces",
    "max_net_namespaces": "echo 0 > /proc/sys/user/max_net_namespaces",
    "masked_proc": "mount -t tmpfs none /proc/sys",
}


@pytest.mark.parametrize(
    ("wrapper", "says"),
    [
        ("max_user_namespaces", "sysctl -w user.max_user_namespaces="),
        ("max_net_namespaces", "sysctl -w user.max_net_namespaces="),
        ("masked_proc", "systempaths=unconfined"),
    ],
)
def test_a_machine_that_forbids_it_is_told_what_to_change(wrapper: str, says: str) -> None:
    """In a namespace without user namespaces, or with a masked /proc, the message names the fix (HLD-12, B89, B92)."""
    answer = wrapped(WRAPPERS[wrapper])
    assert says in answer["error"], answer
    assert "\n" not in answer["error"]
    assert answer["out"] == ""


@pytest.mark.parametrize("preparation", [":", "(ip link set lo up || true)", "mount -t tmpfs none /mnt"])
def test_a_machine_that_is_a_namespace_itself_is_fine(preparation: str) -> None:
    """The neighbour: root of a plain user namespace, as in rootless containers, gets its hold (HLD-1, B92)."""
    assert wrapped(preparation).get("out") == "ran\n"


def wrapped(preparation: str) -> dict[str, Any]:
    """Hold a command from inside new user, mount and network namespaces, after this has been done there."""
    base = held.new_base()
    try:
        wishes = {"hold": "netns", "argv": ["/bin/echo", "ran"], "listeners": False}
        command = [sys.executable, held.RUNNER, json.dumps(wishes | {"base": base})]
        unshare = [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            SHELL,
            "-c",
            f'{preparation} && exec "$@"',
        ]
        done = subprocess.run([*unshare, SHELL, *command], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("call", ["unshare", "mount_setattr", "open_tree", "fsopen", "move_mount"])
@pytest.mark.parametrize("code", [1, 38])
def test_a_filter_around_us_is_named(call: str, code: int) -> None:
    """Where a container's filter refuses a call, the message says so and how to start the container (HLD-12, B89)."""
    answer = sh("echo ran", refuse={call: code})
    assert "seccomp=unconfined" in answer.get("error", ""), answer
    assert "\n" not in answer["error"]
    assert answer["out"] == ""


@GATED
def test_no_helper_program_is_needed(hold: str) -> None:
    """The hold is built with an empty PATH: no ip, mount, bwrap or newuidmap is called (B91)."""
    old = os.environ["PATH"]
    os.environ["PATH"] = "/nonexistent"
    try:
        assert sh("echo ran", hold)["out"] == "ran\n"
    finally:
        os.environ["PATH"] = old


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts things that only root may")
def test_other_doors_to_the_kernel_and_other_names_are_closed() -> None:
    """A second /proc and /sys, and a second name for the home folder, open nothing (HLD-13, HLD-15)."""
    base = held.new_base()
    script = (
        "mount --make-rprivate / && for d in proc sys home; do mkdir -p $0/$d.2; done"
        " && mount -t proc proc $0/proc.2 && mount -t sysfs sysfs $0/sys.2 && mkdir -p $0/home"
        ' && mount --bind $0/home $0/home.2 && exec "$@"'
    )
    inside = (
        f"ls {base}/proc.2; (echo x > {base}/proc.2/sys/kernel/core_pattern) 2>&1;"
        f" (echo x > {base}/sys.2/power/state) 2>&1;"
        f" cat {base}/home.2/.config/tidegate/secret; echo x > {base}/home.2/work/src/code.py;"
        f" rm {base}/home.2/work/pyproject.toml; mv {base}/home.2/.config {base}/home.2/c; true"
    )
    try:
        command = held.command("root", base, {"hold": "netns", "argv": [SHELL, "-c", inside]})
        done = subprocess.run(
            ["unshare", "--mount", SHELL, "-c", script, base, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        lines = json.loads(done.stdout)["out"].splitlines()
        assert len(lines) == 6, lines
        assert ["nonexistent" in lines[0] or "No such" in lines[0], "Read-only" in lines[1]] == [True, True]
        assert "No such" in lines[2]
        assert "Read-only" in lines[3]
        assert "busy" in lines[4]
        assert "busy" in lines[5]
    finally:
        shutil.rmtree(base, ignore_errors=True)


@EVERYBODY
def test_a_hold_inside_a_hold_is_refused_by_name(user: str) -> None:
    """Tidegate run by a task starts nothing and says that it is inside already (HLD-12, B92)."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tidegate.holds.hold import find_hold;"
        "print(find_hold('netns').probe())"
    )
    source = os.path.join(os.path.dirname(os.path.dirname(held.HERE)), "src")
    argv = [held.PYTHON, "-I", "-c", program, source]
    shares = [(source, True)]  # the clone may lie in /tmp
    answer = held.hold("netns", argv, user=user, env={"TIDEGATE_TASK": "x"}, shares=shares)
    assert "no hold inside a hold" in answer["out"], answer["out"]


@EVERY
def test_a_probe_says_whether_it_works(hold: str) -> None:
    """`probe` builds the hold around nothing and leaves nothing; it finds the same error that launch would (HLD-12)."""
    program = (
        "import sys, os; sys.path.insert(0, sys.argv[1]); from tidegate.holds.hold import find_hold;"
        "print(find_hold(sys.argv[2]).probe());\n"
        "try: os.wait()\nexcept ChildProcessError: print('nothing left')"
    )
    held.need(hold)
    source = os.path.join(os.path.dirname(os.path.dirname(held.HERE)), "src")
    argv = [sys.executable, "-I", "-c", program, source, hold]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "None\nnothing left\n"


@pytest.mark.parametrize("hold", ["netns", "offline"])
def test_the_first_call_of_a_command_finds_the_gate(hold: str) -> None:
    """The gate listens before the command runs; offline has none (HLD-5, B94)."""
    program = "import socket; print(socket.create_connection(('127.0.0.1', 3128), 5).getpeername()[1])"
    answer = held.hold(hold, [held.PYTHON, "-I", "-c", program])
    assert ("3128\n" in answer["out"]) == (hold == "netns")
    if hold == "offline":
        assert "Errno 97" in answer["out"]
