"""tidegate.cli.run: the product, started as a person starts it, in the lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.api import Lab
from tests.product import LAUNCHER, PATIENCE, PYTHON, Product
from tests.talker import Talker
from tidegate.holds import landlock
from tidegate.journal.open_lines import left_lines

GET = "import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).status)"


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab, as root and as an ordinary user."""
    assert lab
    return Product(tmp_path, user=request.param == "user")


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _tree(pid: int) -> list[int]:
    found = [pid]
    for child in _children(pid):
        found += _tree(child)
    return found


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def _wait(condition: object, what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["true"], 0),
        (["false"], 1),
        (["sh", "-c", "exit 77"], 77),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["no-such-command-here"], 127),
        (["./no/such/file"], 127),
        (["/etc/passwd"], 126),
        (["/etc"], 126),
    ],
)
def test_exit_codes_pass_through(product: Product, command: list[str], status: int) -> None:
    """HLD-9, HLD-16: the command's own code, 126, 127 and 128+n; what could not be executed is one line."""
    done = product.run("--", *command)
    assert done.returncode == status
    lines = done.stderr.splitlines()
    assert len(lines) == (1 if status in (126, 127) else 0), done.stderr


def test_streams_are_the_commands(product: Product) -> None:
    """HLD-9: standard input and output are the command's and nothing of ours is in them."""
    done = product.run("sh", "-c", "cat; echo err >&2", stdin=subprocess.PIPE)
    assert (done.stdout, done.stderr) == ("", "err\n")
    with product.start("cat", stdin=subprocess.PIPE) as process:
        out, err = process.communicate("through\n", timeout=PATIENCE)
    assert (out, err) == ("through\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stay_sensible(product: Product, closed: str) -> None:
    """HLD-9: a closed standard stream never becomes a descriptor of ours, and the command's status passes through."""
    argv = product.argv("run", "--allow", "a.test", "--", "sh", "-c", "exit 5")
    command = " ".join(f"'{word}'" for word in argv)
    done = subprocess.run(
        ["sh", "-c", f"{command} {closed}"],
        cwd=product.folder,
        env=product.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert done.stderr == ""


def test_an_allowed_host_passes_and_everything_else_is_refused(product: Product, lab: Lab) -> None:
    """POL-10, JRN-1, GAT-1: the rule opens one host; the other is refused with what would let it through."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    lab.origin("http", "1.2.3.4", 80)
    other = lab.origin("http", "1.2.3.5", 80)
    done = product.run("--allow", "a.test:80", "--", PYTHON, "-c", GET, "http://a.test/")
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
    assert done.stderr == "net: a.test:80 · forwarded (command-line)\n"
    done = product.run("--allow", "a.test:80", "--", PYTHON, "-c", GET, "http://b.test/")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "net: b.test:80 · refused, would wait for approval; the command line asks no one (no-rule)",
        "net: to let it through: --allow b.test:80",
    ]
    assert other.connections == 0
    assert lab.dns.count("b.test", "A") == 0


def test_a_private_address_names_the_line_that_lets_it_through(product: Product, lab: Lab) -> None:
    """ADR-2: a preset's host with a private address is refused with exactly the option that then works."""
    lab.dns.set("pypi.org", A=["10.9.8.7"])
    lab.origin("http", "10.9.8.7", 443, tls="pypi.org")
    probe = [PYTHON, "-c", "import urllib.request as u; u.urlopen('https://pypi.org/')"]
    done = product.run("--", *probe)
    assert "net: to let it through: --allow pypi.org:443" in done.stderr.splitlines()
    done = product.run("--allow", "pypi.org:443", "--", *probe)
    assert "net: pypi.org:443 · tunneled (command-line)" in done.stderr.splitlines()


@pytest.mark.parametrize("capture", ["on", "ports", "off"])
def test_a_direct_connection_fails_at_once_and_reaches_nothing(product: Product, lab: Lab, capture: str) -> None:
    """HLD-1, HLD-6, B71, B77: without the proxy variables: refused by the gate at once, by name where it is captured.

    Without capture there is no network at all. Either way not one byte gets outside.
    """
    origin = lab.origin("http", "1.2.3.4", 80)
    canary = lab.canary("127.0.0.1")
    code = (
        "import errno, socket, sys, time\n"
        "began = time.monotonic()\n"
        "here = ('127.0.0.1', int(sys.argv[1]))\n"
        "for target in (('1.2.3.4', 80), ('10.77.0.2', 22), here, ('169.254.169.254', 80)):\n"
        "    try:\n"
        "        with socket.create_connection(target, 5) as wire:\n"
        "            wire.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
        "            said = wire.recv(4096)\n"
        "            print('403' if b' 403 ' in said else 'SSH' if said[:4] == b'SSH-' else said)\n"
        "    except OSError as error:\n"
        "        print(errno.errorcode[error.errno])\n"
        "print(time.monotonic() - began < 4)\n"  # nothing was waited for
    )
    done = product.run("--capture", capture, "--", "env", "-i", PYTHON, "-c", code, str(canary.port))
    refused = ["ENETUNREACH"] * 3 if capture == "off" else ["403", "SSH", "403"]
    assert done.stdout.split() == [*refused[:2], "ECONNREFUSED", refused[2], "True"], done.stderr
    assert origin.connections == canary.connections == 0
    lines = done.stderr.splitlines()
    recorded = [line for line in lines if line.startswith(("net: 1.2.3.4:80 · r", "net: 10.77.0.2:22 · r"))]
    assert len(recorded) == (0 if capture == "off" else 2), done.stderr


def test_names_fail_fast(product: Product) -> None:
    """B88: a program that resolves before it asks the proxy is told at once, not after its resolver's patience.

    Without capture whatever the name is, with it where no rule could let the name through.
    """
    code = (
        "import socket, time\n"
        "began = time.monotonic()\n"
        "try:\n    socket.getaddrinfo('a.test', 80)\n"
        "except socket.gaierror as error:\n    print('failed', time.monotonic() - began < 4.5)\n"
    )
    assert product.run("--capture", "off", "--", PYTHON, "-c", code).stdout == "failed True\n"
    closed = ("--profile", "closed", "--")
    assert product.run(*closed, PYTHON, "-c", code).stdout == "failed True\n"


def test_fail_on_refusal_makes_the_status_say_it(product: Product) -> None:
    """HLD-16: 77 only when the command itself ended with 0 and something was refused."""
    ask = "curl -s -o /dev/null http://c.test/; exit $0"
    assert product.run("--fail-on-refusal", "--", "sh", "-c", ask, "0").returncode == 77
    assert product.run("--fail-on-refusal", "--", "sh", "-c", ask, "3").returncode == 3
    assert product.run("--fail-on-refusal", "--", "true").returncode == 0
    assert product.run("--", "sh", "-c", ask, "0").returncode == 0


def test_a_race_of_addresses_is_no_refusal(product: Product, lab: Lab) -> None:
    """HLD-16, RFC 8305: a client that drops its connections to an allowed host before they are made ends with 0."""
    lab.dns.set("slow.test", A=["1.2.3.4"], delay=1.0)
    code = (
        "import socket, struct\n"
        "found = socket.getaddrinfo('slow.test', 80, type=socket.SOCK_STREAM)\n"
        "for family, _, _, _, address in found:\n"
        "    with socket.socket(family) as sock:\n"
        "        sock.connect(address)\n"
        "        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n"
    )
    done = product.run("--allow", "slow.test", "--fail-on-refusal", "--", PYTHON, "-c", code)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines
    assert all(line.startswith("net: slow.test:80 · not connected, the ") for line in lines)
    lab.dns.set("gone.test", rcode="NXDOMAIN")
    done = product.run("--allow", "gone.test", "--fail-on-refusal", "--", "curl", "-s", "http://gone.test/")
    assert done.returncode == 77, done.stderr


def test_quiet_says_nothing_and_the_record_is_still_kept(product: Product) -> None:
    """JRN-1: --quiet silences the lines, never the journal."""
    done = product.run("--quiet", "--", "sh", "-c", "curl -s -o /dev/null http://c.test/; true")
    assert done.stderr == ""
    (task,) = (product.state / "tasks").iterdir()
    (line,) = (task / "network.jsonl").read_text().splitlines()
    assert json.loads(line)["host"] == "c.test"


def test_report_status_and_log_are_where_they_were_asked_for(product: Product) -> None:
    """JRN-1, HLD-7: for machines: what was reached, whose exit status it is, and the journal itself."""
    done = product.run(
        "--report", "r.json", "--status-file", "s.json", "--log", "n.jsonl", "--", "sh", "-c",
        "curl -s -o /dev/null http://c.test/; kill -TERM $$",
    )  # fmt: skip
    assert done.returncode == 143
    report = json.loads((product.folder / "r.json").read_text())
    assert [(one["host"], one["how"]) for one in report["connections"]] == [("c.test", "refused")]
    status = json.loads((product.folder / "s.json").read_text())
    assert (status["source"], status["exit"], status["signal"]) == ("command", 143, 15)
    assert json.loads((product.folder / "n.jsonl").read_text())["host"] == "c.test"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--policy", "absent.yaml", "true"], 2, "absent.yaml"),
        (["--policy", ".", "true"], 2, "is a folder"),
        (["--policy", "bad.yaml", "true"], 2, "bad.yaml:1:10: "),
        (["--policy", "binary.yaml", "true"], 2, "binary.yaml:1:1: "),
        (["--allow", "https://a.test/", "true"], 2, "--allow"),
        (["--bogus", "true"], 2, "--bogus"),
        (["--log", "no/such/log", "true"], 78, "--log"),
        (["--report", "no/such/report", "true"], 78, "--report"),
        (["--share", "absent", "true"], 2, "--share"),
    ],
)
def test_bad_input_is_one_line_and_runs_nothing(product: Product, words: list[str], status: int, says: str) -> None:
    """Bad input anywhere: one clear line (what, where, what to write instead), the status of its kind, no traceback."""
    (product.folder / "bad.yaml").write_text("default: perhaps\n")
    (product.folder / "binary.yaml").write_bytes(bytes(range(256)))
    done = product.run(*words[:-1], "--", "touch", "ran")
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(("tidegate: ", "bad.yaml:", "binary.yaml:"))
    assert says in done.stderr
    assert not (product.folder / "ran").exists()


def test_a_deny_that_leaves_nothing_of_an_allow_is_warned_of(product: Product) -> None:
    """B13: `deny *` beside an allow: the run goes on, and one warning names what it shadows."""
    done = product.run("--profile", "closed", "--allow", "a.test", "--deny", "*", "--", "true")
    assert done.returncode == 0
    assert done.stderr.count("warning: ") == 1
    assert "'a.test'" in done.stderr


def test_tidegates_own_status_is_told_from_the_commands(product: Product) -> None:
    """HLD-7: --status-file says whose 78 it was."""
    (product.folder / "tidegate.yaml").write_text("network: {runtime: {allow: [a.test]}}\n")
    done = product.run("--status-file", "s.json", "--", "true")
    assert done.returncode == 78
    assert "--trust-folder" in done.stderr
    status = json.loads((product.folder / "s.json").read_text())
    assert (status["source"], status["exit"]) == ("tidegate", 78)
    assert product.run("--trust-folder", "--status-file", "s.json", "--", "sh", "-c", "exit 78").returncode == 78
    assert json.loads((product.folder / "s.json").read_text())["source"] == "command"


def test_what_confines_the_task_is_out_of_its_reach(product: Product) -> None:
    """HLD-15, POL-8: inside, the records are not visible, and policy, log and tidegate itself cannot be changed."""
    (product.folder / "p.yaml").write_text("network: {runtime: {deny: [a.test]}}\n")
    if product.user:
        os.chown(product.folder / "p.yaml", 12345, 12345)
    tries = [
        "echo x >> p.yaml", "mv p.yaml q.yaml", "rm -f p.yaml", "echo x >> n.jsonl", "rm -f n.jsonl",
        f": >> {LAUNCHER}", f": >> {PYTHON}", "mv $HOME/.local $HOME/old", "mkdir -p $HOME/.config/tidegate/x",
        "ls $HOME/.local/state/tidegate/tasks",
    ]  # fmt: skip
    script = "\n".join(f"if ({one}) >/dev/null 2>&1; then echo 'DID: {one}'; fi" for one in tries)
    done = product.run("--policy", "p.yaml", "--log", "n.jsonl", "--", "sh", "-c", f"{script}\ntouch made")
    assert done.stdout == "", done.stdout
    assert (product.folder / "made").exists()
    assert (product.folder / "p.yaml").read_text().startswith("network")


def test_the_gates_death_ends_the_task_with_70(product: Product) -> None:
    """HLD-7, B95: kill -9 of the gate: the route is gone at once, run says so, exits 70 and leaves nothing behind."""
    process = product.start("--status-file", "s.json", "--", "sh", "-c", "echo up; sleep 100")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    front = _front(process.pid)
    tree = _tree(front)
    gate = next(pid for pid in _children(front) if os.getsid(pid) == pid and _is_gate(pid))
    began = time.monotonic()
    os.kill(gate, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 70
    assert time.monotonic() - began < 60  # of a hundred
    assert "gate" in err
    assert json.loads((product.folder / "s.json").read_text())["source"] == "tidegate"
    _wait(lambda: all(_gone(pid) for pid in tree), "something was left behind")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_what_was_open_when_the_gate_died_is_on_record(product: Product, lab: Lab, number: signal.Signals) -> None:
    """HLD-7, JRN-1: exit 70 and why; a line for each that was open, with its bytes, beside those that had ended."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)
    task = Talker.alone(product, "--allow", "a.test")
    assert task.process.stderr is not None
    for _ in range(3):
        assert task.says("open a.test:443") == "200"
    assert task.says("send 500") == "sent"
    assert task.says("close 2") == "closed"
    assert task.says("open b.test:443") == "403"
    front = _front(task.process.pid)
    gate = next(pid for pid in _children(front) if os.getsid(pid) == pid and _is_gate(pid))
    (log,) = (product.state / "tasks").glob("*/network.jsonl")
    _wait(lambda: len(log.read_bytes().splitlines()) == 2, "what has ended has no line")
    _wait(lambda: sorted(_kept(front)) == [0, 500], "what is open was not written down")
    os.kill(gate, number)
    task.process.wait(PATIENCE)  # with its input still open: the task must not end by itself meanwhile
    _, err = task.process.communicate(timeout=PATIENCE)
    assert task.process.returncode == 70
    assert err.splitlines()[0] == "tidegate: the gate is gone; the task's network is cut off and it is being ended"
    assert "net: a.test:443 · tunneled (command-line)\n" in err
    assert "net: a.test:443 · tunneled, the gate ended without a word while this was open (command-line) ×2\n" in err
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    found = sorted((line["host"], line["how"], line["reason"], line["bytes_up"]) for line in lines)
    assert found == [
        ("a.test", "tunneled", "allowed", 0), ("a.test", "tunneled", "gate-lost", 0),
        ("a.test", "tunneled", "gate-lost", 500), ("b.test", "refused", "no-approver", 0),
    ]  # fmt: skip


def _kept(front: int) -> list[int]:
    """Bytes up of the connections that the front would find if its gate died now."""
    for fd in os.listdir(f"/proc/{front}/fd"):
        if "tidegate-open" in os.readlink(f"/proc/{front}/fd/{fd}"):
            memory = os.open(f"/proc/{front}/fd/{fd}", os.O_RDONLY)
            try:
                return [json.loads(line)["bytes_up"] for line in left_lines(memory)]
            finally:
                os.close(memory)
    return []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_watchers_death_ends_the_task_with_70(product: Product, number: signal.Signals) -> None:
    """HLD-7: what makes the task's connections was killed or stopped: said at once, exit 70, nothing hangs or stays."""
    process = product.start("--", "sh", "-c", "echo up; sleep 100")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    front = _front(process.pid)
    tree = _tree(front)
    watcher = next(pid for pid in _children(front) if Path(f"/proc/{pid}/comm").read_text() == "tidegate-watch\n")
    os.kill(watcher, number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 70
    assert "connections is gone" in err
    _wait(lambda: all(_gone(pid) for pid in tree), "something was left behind")


def test_the_fronts_death_ends_everything(product: Product) -> None:
    """HLD-8, B98: kill -9 of the front: gate, init, the command and what it left in the background all end."""
    process = product.start("--", "sh", "-c", "setsid sleep 100 & (sleep 100 &) ; echo up; sleep 100")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    front = _front(process.pid)
    tree = _tree(front)
    assert len(tree) >= 4
    os.kill(front, signal.SIGKILL)
    _wait(lambda: all(_gone(pid) for pid in tree), "something outlived the front")
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    process.wait(PATIENCE)


def test_background_processes_end_with_the_command(product: Product) -> None:
    """HLD-9, B98: the command's code is returned at once and nothing it left behind survives."""
    marker = str(product.folder / "alive")
    done = product.run("--", "sh", "-c", f"setsid sh -c 'sleep 1; touch {marker}' & exit 3")
    assert done.returncode == 3
    time.sleep(1.3)
    assert not os.path.exists(marker)


def test_a_read_only_home_says_where_to_put_the_record(product: Product) -> None:
    """Bad input: a home that cannot be written: 78 and the variable that helps; with it, the run goes on."""
    blocker = product.home / ".local"
    blocker.write_text("")
    done = product.run("--", "true")
    assert done.returncode == 78
    assert "XDG_STATE_HOME" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("length", [60, 95, 107, 200])
def test_long_paths_are_no_limit(product: Product, length: int) -> None:
    """B97: no path of ours is in a socket address, so a long home, runtime or temporary folder changes nothing."""
    name = "ü" * 20 + "x" * (length - 40)
    folder = product.home / name
    folder.mkdir()
    if product.user:
        os.chown(folder, 12345, 12345)
    product.environment |= {"TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder)}
    done = product.run("--", "sh", "-c", "curl -s -o /dev/null http://c.test/; exit 4")
    assert done.returncode == 4, done.stderr
    assert "net: c.test:80 · refused" in done.stderr


@pytest.mark.parametrize("outer", ["netns", "landlock", "open", "offline"])
def test_a_run_inside_a_run_says_what_to_do(product: Product, outer: str) -> None:
    """HLD-12, HLD-16, B92: one line and 78, whichever hold is in which; nothing is tried or made before it is said."""
    if outer == "landlock" and landlock.abi() < landlock.SCOPE_ABI:
        pytest.skip("this kernel's Landlock scopes no signals")
    inner = f"for hold in netns landlock open offline; do {LAUNCHER} run --hold $hold -- true; echo $?; done"
    done = product.run("--quiet", "--hold", outer, "--", "sh", "-c", inner)
    assert done.stdout.split() == ["78"] * 4, done.stderr
    said = [line for line in done.stderr.splitlines() if "no gate and no policy" not in line]  # `open` says it always
    line = "tidegate: this is a task of tidegate already, and there is no hold inside a hold: run the command as it is"
    assert said == [f"{line}; the gate around it stays"] * 4


def test_the_holds_without_a_gate(product: Product, lab: Lab) -> None:
    """HLD-5: offline reaches nothing at all, its own localhost included; open says so each time and reaches all."""
    origin = lab.origin("http", "1.2.3.4", 80)
    code = (
        "import socket, sys\n"
        "try:\n    socket.create_connection(('1.2.3.4', 80), 5)\n    print('connected')\n"
        "except OSError as error:\n    print(type(error).__name__, error.errno)\n"
    )
    done = product.run("--no-network", "--", PYTHON, "-c", code)
    assert done.stdout == "OSError 97\n", done.stderr  # EAFNOSUPPORT: no INET socket can be made
    assert origin.connections == 0
    done = product.run("--open-network", "--", PYTHON, "-c", code)
    assert done.stdout == "connected\n"
    assert "--open-network" in done.stderr


def _is_gate(pid: int) -> bool:
    # Gate and watcher are in the front's PID namespace, init is PID 1 of one of its own; the watcher has a name.
    def depth(of: int | str) -> int:
        status = Path(f"/proc/{of}/status").read_text().splitlines()
        return len(next(line for line in status if line.startswith("NSpid:")).split())

    return depth(pid) == depth("self") and Path(f"/proc/{pid}/comm").read_text() != "tidegate-watch\n"


def _front(pid: int) -> int:
    """The front itself: what was started, or the child of what became the user."""
    while True:
        children = _children(pid)
        if len(children) >= 2:
            return pid
        if not children:
            time.sleep(0.01)
            continue
        pid = children[0]


def test_a_machine_that_gives_out_is_not_the_commands_exit_status(tmp_path: Path) -> None:
    """HLD-16: no descriptor left is 78, not 1 and not a complaint about the output; the status file says whose."""
    status = tmp_path / "status.json"
    script = f"ulimit -n 16; exec {LAUNCHER} run --status-file {status} -- true"
    done = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78, done.stderr
    assert done.stderr.startswith("tidegate: this machine did not give what is needed: Too many open files")
    assert done.stderr.count("\n") == 1
    assert json.loads(status.read_text())["source"] == "tidegate"


def test_a_home_too_deep_is_78(tmp_path: Path) -> None:
    """HLD-16: what Python raises for it is no traceback."""
    done = subprocess.run(
        [LAUNCHER, "run", "--", "true"],
        env={**os.environ, "HOME": f"{tmp_path}/" + "d/" * 2100},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr.count("\n")) == (78, 1), done.stderr


def test_a_home_that_is_not_there_is_78_and_is_not_made(tmp_path: Path) -> None:
    """HLD-16: nothing of it is made, by root neither; its neighbour: with the state elsewhere the command runs."""
    home = tmp_path / "none" / "home"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}

    def start(**more: str) -> subprocess.CompletedProcess[str]:
        command = [LAUNCHER, "run", "--", "echo", "ran"]
        env = clean | {"HOME": str(home)} | more
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)

    done = start()
    assert (done.returncode, done.stdout) == (78, "")
    assert (
        done.stderr
        == f"tidegate: the home folder '{home}' is not there: set HOME to a folder that is, or XDG_STATE_HOME\n"
    )
    assert not home.parent.exists()
    done = start(XDG_STATE_HOME=str(tmp_path / "state"))  # what a task must not make there is made then (HLD-15)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert not (home / ".npm").exists()
    assert not (home / ".cache/pip").exists()


def _attempts(tmp_path: Path, *options: str, script: str) -> str:
    """Run a script that says what it could do, in tmp_path/work with tmp_path as home; what it said."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [LAUNCHER, "run", "--quiet", *options, "--", "sh", "-c", script],
        cwd=work,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_link_to_the_policy_cannot_be_led_elsewhere(tmp_path: Path) -> None:
    """HLD-15: `--policy LINK`: neither the file nor the link says something else to the next run."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "real.yaml").write_text("network: {}\n")
    (work / "link.yaml").symlink_to("real.yaml")
    script = "rm link.yaml && echo link; mv link.yaml x && echo moved; echo >>real.yaml && echo file; rm other; true"
    (work / "other").touch()
    assert _attempts(tmp_path, "--policy", "link.yaml", script=script) == ""
    assert os.readlink(work / "link.yaml") == "real.yaml"
    assert not (work / "other").exists()


def test_a_users_policy_kept_among_the_dotfiles_is_read_only(tmp_path: Path) -> None:
    """HLD-15: ~/.config/tidegate is not visible, but its policy.yaml may be a link to a file that is."""
    for folder in (".config/tidegate", "dotfiles"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "dotfiles/policy.yaml").write_text("network: {}\n")
    (tmp_path / ".config/tidegate/policy.yaml").symlink_to(tmp_path / "dotfiles/policy.yaml")
    script = "cd ~/dotfiles; echo >>policy.yaml && echo file; rm policy.yaml && echo rm; mv . ../d && echo up; touch b"
    assert _attempts(tmp_path, "--files", "normal", script=script) == ""
    assert (tmp_path / "dotfiles/b").exists()


def test_a_log_that_is_no_file_is_no_mount(tmp_path: Path) -> None:
    """JRN-1: `--log /dev/null` keeps no record, and the task has its /dev/null."""
    assert _attempts(tmp_path, "--log", "/dev/null", script="echo x >/dev/null && echo fine") == "fine\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_status_file_that_cannot_be_written_does_not_hide_what_stopped_the_start(tmp_path: Path) -> None:
    """HLD-16: cannot start is 78 on a full disk too."""
    done = subprocess.run(
        [LAUNCHER, "run", "--status-file", "/dev/full", "--log", str(tmp_path), "--", "true"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78, done.stderr
    assert "Is a directory" in done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    ("options", "file", "status"),
    [
        ((), "tidegate", 78),
        (("--policy", "p.yaml"), "p.yaml", 78),
        (("--log", "l.jsonl"), "l.jsonl", 78),
        ((), "p.yaml", 0),
    ],
)
def test_a_protected_file_is_no_standard_stream(
    tmp_path: Path, options: tuple[str, ...], file: str, status: int
) -> None:
    """HLD-13, HLD-15: a task could open it again by its descriptor, for writing and past the read-only mounts."""
    (tmp_path / "p.yaml").write_text("network: {}\n")
    (tmp_path / "l.jsonl").touch()
    with open(LAUNCHER if file == "tidegate" else tmp_path / file, encoding="utf-8") as stream:
        done = subprocess.run(
            [LAUNCHER, "run", *options, "--", "cat"],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            stdin=stream,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == status, done.stderr
    assert ("use a pipe" in done.stderr) == bool(status)


def test_the_usual_folders_are_hidden_where_variables_name_others(tmp_path: Path) -> None:
    """HLD-15: a policy that a task of such a run leaves in ~/.config would be read by the next run without them."""
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [LAUNCHER, "run", "--", "sh", "-c", "mkdir -p ~/.config/tidegate; echo 'x' > ~/.config/tidegate/policy.yaml"],
        cwd=work,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "XDG_CONFIG_HOME": f"{tmp_path}/c",
            "XDG_STATE_HOME": f"{tmp_path}/s",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0, done.stderr
    assert not (tmp_path / ".config/tidegate/policy.yaml").exists()
