"""`setup:` of a policy in the product: real holds, as root and as an ordinary user, in the lab (POL-7)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.api import Lab
from tests.product import PATIENCE, PYTHON, Product
from tests.unit.runtime.pty_session import Session

GET = f"{PYTHON} -c 'import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).status)'"
TRY = f"""{PYTHON} -c 'import sys,urllib.request as u
for one in sys.argv[1:]:
    try: print(one, u.urlopen(one).status)
    except u.HTTPError as error: print(one, error.status)
'"""


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab, as root and as an ordinary user."""
    for number, name in enumerate(("install.test", "runtime.test"), 1):
        lab.dns.set(name, A=[f"1.2.3.{number}"])
        lab.origin("http", f"1.2.3.{number}", 80)
    return Product(tmp_path, user=request.param == "user")


def _policy(product: Product, setup: Any, *, name: str = "p.yaml", network: Any = None) -> str:
    rules = {"install": {"allow": ["install.test:80"]}, "runtime": {"allow": ["runtime.test:80"]}}
    text = json.dumps({"setup": setup, "network": rules if network is None else network})
    (product.folder / name).write_text(text)
    return str(product.folder / name)


def _net(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("net: ") and "let" not in line]


def test_each_phase_reaches_its_own_hosts(product: Product) -> None:
    """POL-7, JRN-1: the install host in the set-up only, the runtime host only after it; the record says so."""
    both = "http://install.test/ http://runtime.test/"
    policy = _policy(product, f"{TRY} {both} >setup.txt")
    done = product.run("--policy", policy, "--log", "log.jsonl", "--", "sh", "-c", f"{TRY} {both}")
    assert done.returncode == 0, done.stderr
    assert (product.folder / "setup.txt").read_text() == "http://install.test/ 200\nhttp://runtime.test/ 403\n"
    assert done.stdout == "http://install.test/ 403\nhttp://runtime.test/ 200\n"
    assert _net(done.stderr) == [
        "net: install.test:80 · forwarded (policy) · install",
        "net: runtime.test:80 · refused, no rule allows it (no-rule) · install",
        "net: install.test:80 · refused, no rule allows it (no-rule)",
        "net: runtime.test:80 · forwarded (policy)",
    ]
    lines = [json.loads(line) for line in (product.folder / "log.jsonl").read_text().splitlines()]
    said = [(line["phase"], line["host"], line["verdict"]) for line in lines if line["type"] == "net.connection"]
    assert sorted(said) == [
        ("install", "install.test", "allow"),
        ("install", "runtime.test", "deny"),
        ("runtime", "install.test", "deny"),
        ("runtime", "runtime.test", "allow"),
    ]
    assert len({line["task"] for line in lines}) == 1


def test_programs_that_know_no_proxy_have_the_same_phases(product: Product) -> None:
    """POL-7, HLD-6: captured connections too, by a name that was looked up in either phase."""
    code = (
        "import socket,sys\n"
        "for name in ('install.test', 'runtime.test'):\n"
        "    try:\n"
        "        s = socket.create_connection((name, 80), 10)\n"
        "        s.sendall(b'GET / HTTP/1.1\\r\\nHost: ' + name.encode() + b'\\r\\nConnection: close\\r\\n\\r\\n')\n"
        "        print(name, s.recv(12).decode())\n"
        "    except OSError as error:\n"
        "        print(name, type(error).__name__)\n"
    )
    (product.folder / "direct.py").write_text(code)
    done = product.run("--policy", _policy(product, f"{PYTHON} direct.py >setup.txt"), "--", PYTHON, "direct.py")
    assert (product.folder / "setup.txt").read_text() == "install.test HTTP/1.1 200\nruntime.test gaierror\n"
    assert done.stdout == "install.test gaierror\nruntime.test HTTP/1.1 200\n", done.stderr


def test_a_policy_without_an_install_phase_sets_up_with_nothing_reachable(product: Product) -> None:
    """POL-7: a phase that is missing allows nothing, and its set-up command runs all the same."""
    network = {"runtime": {"allow": ["runtime.test:80"]}}
    policy = _policy(product, f"{TRY} http://runtime.test/ >setup.txt", network=network)
    done = product.run("--policy", policy, "--", "sh", "-c", f"cat setup.txt; {GET} http://runtime.test/")
    assert (done.returncode, done.stdout) == (0, "http://runtime.test/ 403\n200\n"), done.stderr


def test_it_runs_once_before_the_command_and_confined_like_it(product: Product) -> None:
    """POL-7, HLD-5: the same folder and environment, a hold of its own, and nothing of it lives on."""
    setup = (
        "echo $TIDEGATE_TASK >>task; readlink /proc/self/ns/net >net; echo x >/tmp/left; setsid sleep 1000 & pwd >where"
    )
    policy = _policy(product, setup)
    script = (
        'test "$(cat task)" = "$TIDEGATE_TASK" && echo same; test -e /tmp/left || echo own-tmp; cat where;'
        'test "$(cat net)" = "$(readlink /proc/self/ns/net)" || echo other-net;'
        "cat /proc/[0-9]*/comm | grep -c sleep"
    )
    done = product.run("--policy", policy, "--", "sh", "-c", script)
    assert done.stdout.splitlines() == ["same", "own-tmp", str(product.folder), "other-net", "0"], done.stderr


def test_arguments_are_not_a_shells(product: Product) -> None:
    """POL-7: a list is the program and its arguments."""
    policy = _policy(product, ["touch", "a b", "$HOME", "*"])
    done = product.run("--policy", policy, "--", "ls")
    assert done.stdout.splitlines() == ["$HOME", "*", "a b", "p.yaml"], done.stderr


def test_streams(product: Product) -> None:
    """HLD-9: what is piped in is the command's whole, and nothing of the set-up is in what is piped out."""
    policy = _policy(product, "echo out; echo err >&2; cat; readlink /proc/self/fd/0")
    done = product.run("--policy", policy, "--", "cat", stdin=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "out\nerr\n/dev/null\n")
    with product.start("--policy", policy, "--", "cat", stdin=subprocess.PIPE) as process:
        out, err = process.communicate("through\n", timeout=PATIENCE)
    assert (out, err) == ("through\n", "out\nerr\n/dev/null\n")


@pytest.mark.parametrize(
    ("setup", "line"),
    [
        ("exit 3", "the set-up command ended with 3, and the command was not run"),
        ("kill -SEGV $$", "the set-up command was ended by signal 11, and the command was not run"),
        ("exit 130", "the set-up command ended with 130, and the command was not run"),
        (["no-such-program"], "the set-up command cannot be run: no-such-program: command not found"),
        (["./p.yaml"], "the set-up command cannot be run: ./p.yaml: permission denied"),
    ],
)
def test_a_set_up_that_fails_is_78_and_the_command_does_not_run(product: Product, setup: Any, line: str) -> None:
    """HLD-16, POL-7: one line, 78 because any other status is the command's own; the status file says whose it is."""
    status = product.folder / "status"
    done = product.run("--policy", _policy(product, setup), "--status-file", "status", "--", "touch", "ran")
    assert (done.returncode, done.stderr) == (78, f"tidegate: {line}\n")
    assert not (product.folder / "ran").exists()
    assert json.loads(status.read_text()) == {"source": "tidegate", "exit": 78, "signal": None, "what": line}


def test_what_a_failed_set_up_was_refused_is_said(product: Product) -> None:
    """JRN-1: the reason of the failure is among the `net:` lines, with what would let it through."""
    done = product.run("--policy", _policy(product, f"{GET} http://runtime.test/ 2>&-"), "--", "true")
    assert done.returncode == 78
    assert done.stderr.splitlines()[-3:] == [
        "tidegate: the set-up command ended with 1, and the command was not run",
        "net: runtime.test:80 · refused, no rule allows it (no-rule) · install",
        "net: to let it through: --allow runtime.test:80",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("trapped", [False, True])
def test_a_signal_in_the_set_up_ends_all(product: Product, number: int, trapped: bool) -> None:
    """HLD-9: who ends `run` means all of it, also where the set-up command would go on."""
    trap = f"trap 'echo caught; exit 0' {int(number)}; " if trapped else ""
    policy = _policy(product, f"{trap}touch here; while :; do sleep 0.1; done")
    with product.start("--policy", policy, "--", "touch", "ran") as process:
        deadline = time.monotonic() + PATIENCE
        while not (product.folder / "here").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # The product's own process: with another user there is one around it.
        pid = process.pid
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert pid
    assert process.returncode in (-number, 128 + number), err
    assert f"tidegate: the set-up command was ended by signal {int(number)}, and the command was not run" in err
    assert not (product.folder / "ran").exists()


def test_both_layers_have_one_and_the_nearest_runs(product: Product) -> None:
    """POL-8: the user's config runs where no other is named; a --policy file's goes before it, and a note says so."""
    config = product.home / ".config" / "tidegate"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text("setup: echo of the user\n")
    done = product.run("--", "true")
    assert (done.returncode, done.stderr) == (0, "of the user\n")
    done = product.run("--policy", _policy(product, "echo of the file"), "--", "true")
    assert done.returncode == 0
    note, said = done.stderr.splitlines()
    assert note.startswith(f"tidegate: note: the set-up command is that of {product.folder}/p.yaml; that of ")
    assert said == "of the file"


def test_the_folders_file_may_not_have_one(product: Product) -> None:
    """POL-9: trusted or not, a command in a file that tasks write does not run; the line says where it stands."""
    (product.folder / "tidegate.yaml").write_text("setup: touch ran\n")
    done = product.run("--trust-folder", "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith("tidegate.yaml:1:1: a folder's policy may not hold this: 'setup'")
    assert not (product.folder / "ran").exists()


def test_phase_install_is_the_set_up_by_hand(product: Product) -> None:
    """POL-7: with --phase install the command is the set-up; the policy's own does not run before it."""
    policy = _policy(product, "echo never")
    done = product.run("--policy", policy, "--phase", "install", "--", "sh", "-c", f"{GET} http://install.test/")
    assert (done.returncode, done.stdout) == (0, "200\n")
    note, line = done.stderr.splitlines()
    assert note.startswith("tidegate: note: with --phase install the command is the set-up, and the policy's own")
    assert line == "net: install.test:80 · forwarded (policy) · install"


@pytest.mark.parametrize("option", ["--no-network", "--open-network"])
def test_without_a_gate_no_policy_is_read_and_nothing_set_up(product: Product, option: str) -> None:
    """HLD-5: those holds have no policy, so no set-up command either: offline it could only fail."""
    config = product.home / ".config" / "tidegate"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text("setup: touch ran\n")
    assert product.run(option, "--", "true").returncode == 0
    assert not (product.folder / "ran").exists()


def test_a_shared_folder_led_elsewhere_ends_the_run(product: Product) -> None:
    """HLD-14: what a person shared is what the command gets, not what the set-up command made of its name."""
    data = product.folder / "outer" / "data"
    data.mkdir(parents=True)
    (data / "mine").touch()
    if product.user:
        os.chown(data.parent, 12345, 12345)
    policy = _policy(product, "mv outer old && mkdir outer && ln -s /run outer/data")
    done = product.run("--share", str(data), "--policy", policy, "--", "touch", "ran")
    line = f"tidegate: the set-up command made a symbolic link of '{data}', and the command was not run\n"
    assert (done.returncode, done.stderr) == (78, line)
    assert not (product.folder / "ran").exists()
    done = product.run(
        "--share", f"{product.folder}/old/data", "--policy", _policy(product, "true"), "--", "ls", "old/data"
    )
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr


def test_nothing_is_left_and_two_set_ups_do_not_meet(product: Product) -> None:
    """HLD-1: two runs in one folder, each with its set-up: each has its own hold and gate."""
    policy = _policy(product, f"{GET} http://install.test/")
    runs = [product.start("--policy", policy, "--", "sh", "-c", f"{GET} http://runtime.test/") for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=PATIENCE)
        assert (run.returncode, out) == (0, "200\n"), err


def test_a_terminal_is_the_set_ups_and_then_the_commands(product: Product) -> None:
    """HLD-9: both have it as their terminal, and read from it one after the other."""
    policy = _policy(product, "tty; read a; echo set up $a")
    script = "test -t 0 && test -t 1 && echo now && read b; echo got $b"
    with Session(
        *product.argv("run", "--policy", policy, "--", "sh", "-c", script), env=product.environment
    ) as session:
        session.expect("/dev/pts/")
        session.type("one\r")
        session.expect("set up one.*now")
        session.type("two\r")
        session.expect("got two")
        assert session.wait() == 0


def test_ctrl_c_in_the_set_up_ends_all(product: Product) -> None:
    """HLD-9: the key leads to the set-up command, and the command does not run afterwards."""
    ran = product.folder / "ran"
    policy = _policy(product, [PYTHON, "-c", "import time; print('here', flush=True); time.sleep(1000)"])
    with Session(*product.argv("run", "--policy", policy, "--", "touch", "ran"), env=product.environment) as session:
        session.expect("here")
        session.type("\x03")
        session.expect("ended by signal 2")
        session.wait()
    assert not ran.exists()


def test_signals_ignored_for_the_terminal_are_not_the_commands(product: Product) -> None:
    """HLD-9: what a front ignores while it holds a terminal is not ignored in the command that follows."""
    code = "import signal as s; print([n for n in range(1, 32) if s.getsignal(n) is s.SIG_IGN])"
    with Session(
        *product.argv("run", "--policy", _policy(product, "true"), "--", PYTHON, "-c", code), env=product.environment
    ) as session:
        session.expect(r"\[13, 25\]")  # Python's own: SIGPIPE, SIGXFSZ
        session.wait()


def test_a_lost_gate_in_the_set_up_is_70(product: Product) -> None:
    """HLD-7: the gate is lost while setting up: said, exit 70, and the command does not run."""
    policy = _policy(product, "touch here; sleep 1000")
    with product.start("--policy", policy, "--", "touch", "ran") as process:
        deadline = time.monotonic() + PATIENCE
        while not (product.folder / "here").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        gates = [pid for pid in _family(process.pid) if _is_gate(pid)]
        assert len(gates) == 1
        os.kill(gates[0], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 70
    assert "the gate is gone" in err
    assert not (product.folder / "ran").exists()


def _family(pid: int) -> list[int]:
    found = [pid]
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += _family(int(child))
    return found


def _is_gate(pid: int) -> bool:
    """A session leader in the network namespace outside that polls epoll: the gate, of all processes of a run."""
    try:
        names = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
    except PermissionError:
        pytest.skip("which process of a run is its gate is for root to see: they are closed to their own user")
    return "anon_inode:[eventpoll]" in names
