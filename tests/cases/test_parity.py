"""`tidegate run` behind a server and alone: the same words give the same output, record and abilities (HLD-16).

Each row of the table is run twice as a person runs it: in a home where no server is, and in one where `tidegate serve`
runs. What may differ is taken out before the two are compared: the home's path, a task's id, times and ports.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import signal
import socket
import subprocess
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.person import READY, Person
from tests.product import PYTHON, Product
from tests.served import Served
from tests.ssh_server import USER, SshServer, make_key, need

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.lab.api import Lab

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
WAYS = ("single", "served")  # of one length: what is cut to a width is cut at the same place
GET = 'curl -sS -o /dev/null -w "%{http_code}\\n"'
DIRECT = """\
import socket, sys
for name in sys.argv[1:]:
    try:
        wire = socket.create_connection((name, 80), 10)
        wire.sendall(b"GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % name.encode())
        print(name, wire.recv(12).decode())
    except OSError as error:
        print(name, error)
"""
TOUCH = 'for one in ~/.bashrc ~/.profile ~/notes ~/.ssh/config ./here /tmp/x /var/tmp/x; do \
  { echo x >>$one; } 2>/dev/null && echo "$one written" || echo "$one kept"; done'
INSIDE = """\
id -u; pwd; umask; env | sort; ulimit -a
grep -E "^(Cap|NoNewPrivs|Seccomp|NSpid)" /proc/self/status
awk '{print $5, $6}' /proc/self/mountinfo | sort; ls -a /dev /tmp /run ~; ls /proc/self/fd
"""
POLICY = 'network: {runtime: {allow: ["a.test:80"], ask: ["b.test"]}}\n'
SET_UP = f"""\
setup: {GET} http://a.test/ http://b.test/
network: {{install: {{allow: ["a.test:80"]}}, runtime: {{allow: ["b.test:80"]}}}}
"""


class Row(NamedTuple):
    """What is run, and what must be seen both ways so that two equal failures are no success."""

    name: str
    words: tuple[str, ...]
    status: int = 0
    says: tuple[str, ...] = ()
    files: Mapping[str, str] = MappingProxyType({})
    before: tuple[tuple[str, ...], ...] = ()
    after: tuple[tuple[str, ...], ...] = ()


def shell(name: str, options: tuple[str, ...], line: str, *says: str, **more: Any) -> Row:
    """Return a row that runs a line of shell."""
    return Row(name, (*options, "--", "sh", "-c", line), says=says, **more)


ALLOW = ("--allow", "a.test:80")
BOTH = f"{GET} http://a.test/; {GET} http://b.test/"
ALONE = ("env", "-i", PYTHON, "-c", DIRECT)
HARNESS = f"""\
name: agent
command: {os.path.basename(PYTHON)}
network: {{requires: [a.test]}}
proxy_aware: true
"""
NOTES = {"~/notes": ""}
ROWS = (
    shell("allow and refuse", ALLOW, BOTH, "200\n403\n", "net: a.test:80 · forwarded (command-line)", "no-rule"),
    shell("counts", ALLOW, f"{BOTH}; {BOTH}; {GET} http://c.test:81/", "×2", "net: to let them through"),
    shell("deny", (*ALLOW, "--deny", "*.test"), BOTH, "warning: ", "403\n403\n"),
    shell("profile closed", ("--profile", "closed"), BOTH, "no rule allows it"),
    shell("profile audit", ("--profile", "audit"), BOTH, "200\n200\n"),
    shell("an unknown name", ("--allow", "gone.test"), f"{GET} http://gone.test/", "50", "gone.test:80"),
    shell("ask for", ("--ask-for", "a.test"), BOTH, "the command line asks no one"),
    shell("quiet", ("--quiet", *ALLOW), BOTH, "200\n403\n"),
    shell("policy", ("--policy", "p.yaml"), BOTH, "forwarded (policy)", files={"p.yaml": POLICY}),
    Row(
        "policy with an error", ("--policy", "p.yaml", "--", "true"), 2, ("p.yaml:1:11",),
        {"p.yaml": "network: {runtim: {}}\n"},
    ),
    Row("policy that is not there", ("--policy", "none.yaml", "--", "true"), 2, ("none.yaml",)),
    Row("bad rule", ("--allow", "https://a.test/", "--", "true"), 2, ("--allow",)),
    Row("no command", ("--allow", "a.test"), 2, ("there is no command",)),
    shell("set-up", ("--policy", "p.yaml"), BOTH, " · install", "403\n200\n", files={"p.yaml": SET_UP}),
    Row(
        "set-up that fails", ("--policy", "p.yaml", "--status-file", "status.json", "--", "true"), 78, ("set-up",),
        {"p.yaml": SET_UP.replace("setup: curl", "setup: exit 5; curl")},
    ),
    shell(
        "set-up by hand", ("--policy", "p.yaml", "--phase", "install"), BOTH, "200\n403\n", "does not run",
        files={"p.yaml": SET_UP},
    ),
    Row(
        "untrusted folder file", ("--", "true"), 78, ("policy trust", "--trust-folder", "--no-folder-policy"),
        {"tidegate.yaml": POLICY},
    ),
    shell(
        "trusted folder file", (), BOTH, "200\n403\n", files={"tidegate.yaml": POLICY},
        before=(("policy", "trust", "--yes"),), after=(("policy", "untrust"),),
    ),
    shell("--trust-folder", ("--trust-folder",), BOTH, "200\n403\n", files={"tidegate.yaml": POLICY}),
    shell("--no-folder-policy", ("--no-folder-policy",), BOTH, "403\n403\n", files={"tidegate.yaml": POLICY}),
    shell("user's own rules", (), BOTH, "200\n403\n", files={"~/.config/tidegate/policy.yaml": POLICY}),
    Row(
        "harness", ("--harness", "agent.yaml", "--", PYTHON, "-c", DIRECT, "a.test", "b.test"), 0,
        ("a.test HTTP/1.1 200", "harness:agent", "b.test:80 · refused"),
        {"agent.yaml": HARNESS},
    ),
    Row("unknown harness", ("--harness", "nobody", "--", "true"), 2, ("nobody",)),
    shell("files normal", ("--files", "normal"), TOUCH, "/notes written", "bashrc kept", "here written", files=NOTES),
    shell("files strict", ("--files", "strict"), TOUCH, "/notes kept", "/.bashrc kept", "./here written", files=NOTES),
    shell("files of the user", (), TOUCH, "./here written", files=NOTES),
    shell("share", ("--share", "~/data"), "echo x >~/data/new && ls ~/data", "new\nold", files={"~/data/old": ""}),
    shell(
        "share read-only", ("--share", "~/data:ro"), "echo x >~/data/new || ls ~/data", "Read-only", "old",
        files={"~/data/old": ""},
    ),
    shell("what is inside", ALLOW, INSIDE, "NoNewPrivs:\t1"),
    shell("what is inside, offline", ("--hold", "offline"), INSIDE, "NoNewPrivs:\t1"),
    shell("what is inside, open", ("--hold", "open"), INSIDE, "NoNewPrivs:\t1", "warning: --open-network"),
    shell("hold open", ("--open-network",), f"{GET} http://a.test/", "200", "warning: --open-network"),
    shell("hold offline", ("--no-network",), f"{GET} http://a.test/; true", "000"),
    Row("offline with a rule", ("--no-network", *ALLOW, "--", "true"), 2, ("--allow",)),
    *(
        Row(f"capture {mode}", ("--capture", mode, *ALLOW, "--", *ALONE, "a.test", "b.test"))
        for mode in ("on", "ports", "off")
    ),
    shell("report", ("--report", "report.json", *ALLOW), BOTH, "200\n403\n"),
    shell("fail on refusal", ("--fail-on-refusal", "--status-file", "status.json", *ALLOW), BOTH, status=77),
    shell("nothing refused", ("--fail-on-refusal", *ALLOW), f"{GET} http://a.test/", "200"),
    shell("refused and failed", ("--fail-on-refusal", *ALLOW), f"{BOTH}; exit 3", status=3),
    shell("status file", ("--status-file", "status.json"), "exit 7", status=7),
    shell("log", ("--log", "net.jsonl", *ALLOW), BOTH, "200\n403\n"),
    shell("killed", ("--status-file", "status.json"), "kill -KILL $$", status=128 + signal.SIGKILL),
    shell("terminated", ("--status-file", "status.json"), "kill -TERM $$", status=128 + signal.SIGTERM),
    shell("output on both", (), "echo out; echo err >&2; exit 4", "out\n", "err\n", status=4),
    Row("not found", ("--status-file", "status.json", "--", "no-such-command-here"), 127, ("no-such-command-here",)),
    Row("not executable", ("--status-file", "status.json", "--", "./data"), 126, ("./data",), {"data": ""}),
    Row("a folder", ("--", "/etc"), 126, ("/etc",)),
    Row("no folder for the report", ("--report", "no/such/report", "--", "true"), 78, ("--report",)),
    Row("no self-test", ("--no-selftest", *ALLOW, "--", "sh", "-c", BOTH), 0, ("200\n403\n",)),
    Row("ask without a terminal", ("--ask", "--status-file", "status.json", "--", "true"), 78, ("--ask",)),
    Row("no such key", ("--ssh-key", "none:a.test", "--", "true"), 78, ("--ssh-key",)),
    shell("new files that run later", (), "mkdir -p .vscode; echo {} >.vscode/tasks.json", "may run later"),
    shell("service of this machine", ("--allow", "localhost:{port}"), f"{GET} http://localhost:{{port}}/", "met"),
)  # fmt: skip


class Pair(NamedTuple):
    """The product in two homes: one without a server, and one with."""

    homes: dict[str, Product]
    server: Served


@pytest.fixture(scope="module", params=USERS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both, as root and as an ordinary user, for all rows."""
    root = tmp_path_factory.mktemp("parity")
    root.chmod(0o755)
    homes = {way: Product(root / way, user=request.param == "user") for way in WAYS}
    with Served(homes["served"]) as server:
        yield Pair(homes, server)


@pytest.fixture
def internet(lab: Lab) -> Lab:
    """Where the rows go."""
    for number, name in enumerate(("a.test", "b.test"), 4):
        lab.dns.set(name, A=[f"1.2.3.{number}"])
        lab.origin("http", f"1.2.3.{number}", 80)
    lab.dns.set("gone.test", rcode="NXDOMAIN")
    return lab


def own(product: Product, path: Path) -> None:
    """Give what a test wrote to the product's user."""
    if product.user:
        os.chown(path, 12345, 12345)


def furnish(product: Product, files: Mapping[str, str]) -> None:
    """Make the home as it was, with these files in it."""
    for path in product.home.iterdir():
        if path.name not in (".local", ".cache"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    texts = {"~/.bashrc": "", "~/.ssh/config": "", "~/project/": "", **files}
    for name, text in texts.items():
        path = product.home / name[2:] if name.startswith("~/") else product.folder / name
        made = [one for one in (path, *path.parents) if not one.exists() and product.home in (one, *one.parents)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if name.endswith("/") else path.write_text(text)
        for one in made:
            own(product, one)


def plain(product: Product, text: str) -> str:
    """Take out of a text what may differ between the two homes."""
    text = text.replace(str(product.home), "HOME").replace(f"/{product.home.parent.name}/", "/WAY/")
    text = re.sub(r"\d{8}-\d{6}-[a-z2-9]{4}", "TASK", text)
    # A destination that has not closed yet when the command ends is cut, or not, by a hair.
    text = text.replace('"reason":"stopping"', '"reason":"allowed"')
    return re.sub(r'"(at|duration)":("[^"]*"|[0-9.]+)', r'"\1":0', text)


def tasks(product: Product) -> set[Path]:
    """The folders of its tasks."""
    return set((product.state / "tasks").glob("*"))


def seen(product: Product, done: subprocess.CompletedProcess[str], before: set[Path]) -> list[str]:
    """Everything that a person or a machine can see of a run, as lines; `before` are the tasks there were."""
    new = sorted(tasks(product) - before)
    assert len(new) <= 1
    files = {name: product.folder / name for name in ("report.json", "status.json", "net.jsonl")}
    files["record"] = new[0] / "network.jsonl" if new else product.folder / "none"
    here = (path.relative_to(product.home) for path in product.home.rglob("*"))
    texts = {
        "status": str(done.returncode),
        "out": done.stdout,
        "err": done.stderr,
        **{name: path.read_text() if path.exists() else "none" for name, path in files.items()},
        "files": "\n".join(sorted(str(path) for path in here if path.parts[0] != ".local")),
    }
    lines = {name: plain(product, text).splitlines() for name, text in texts.items()}
    for name in ("record", "net.jsonl"):
        lines[name].sort()  # a line is written when its connection has ended, which two may do at once
    lines["err"].sort(key=lambda line: line if line.startswith("net: ") else "")
    return [f"{name}: {line}" for name, found in lines.items() for line in found]


def same(alone: list[str], served: list[str]) -> None:
    """Compare the two, and name the lines that differ."""
    assert not [line for line in difflib.ndiff(alone, served) if not line.startswith("  ")]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_run_is_the_same_with_a_server_and_without(pair: Pair, internet: Lab, row: Row) -> None:
    """HLD-16, JRN-1, ASK-4, SRV-1: output, exit status, files, report and record do not tell whether a server runs."""
    port = str(internet.origin("http", "127.0.0.1", 0, machine=True).port)
    found = {}
    for way, product in pair.homes.items():
        furnish(product, row.files)
        for words in row.before:
            assert product.tidegate(*words).returncode == 0
        argv = (str(product.home / word[2:]) if word.startswith("~/") else word for word in row.words)
        before = tasks(product)
        done = product.run(*(word.replace("{port}", port) for word in argv))
        found[way] = seen(product, done, before)
        assert done.returncode == row.status, done.stderr
        for text in row.says:
            assert text in plain(product, done.stdout) + plain(product, done.stderr)
        for words in row.after:
            assert product.tidegate(*words).returncode == 0
    same(*(found[way] for way in WAYS))


SERVER = """\
import socket
server = socket.create_server(("127.0.0.1", 3000))
print("listening", flush=True)
for _ in range(2):
    wire, _ = server.accept()
    wire.sendall(b"got " + wire.recv(99))
    wire.close()
"""


def test_a_published_port_is_the_same(pair: Pair) -> None:
    """HLD-10: visitors are led in, counted and recorded; a port that is taken is the same line and status."""
    found = {}
    for way, product in pair.homes.items():
        furnish(product, {})
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            refused = product.run("--publish", f"{port}:3000", "--", "true")
            assert refused.returncode == 78
        before = tasks(product)
        with product.start("--publish", f"{port}:3000", "--", PYTHON, "-I", "-c", SERVER) as task:
            assert task.stdout is not None
            assert task.stdout.readline() == "listening\n"
            for _ in range(2):
                with socket.create_connection(("127.0.0.1", port), 20) as wire:
                    wire.sendall(b"hello")
                    assert wire.recv(99) == b"got hello"
            out, err = task.communicate(timeout=120)
        assert task.returncode == 0
        done = subprocess.CompletedProcess((), 0, refused.stderr + out, err)
        lines = seen(product, done, before)
        found[way] = [re.sub(r"(?<=[:t ])[0-9]{5}\b", "PORT", line) for line in lines]
    same(*(found[way] for way in WAYS))


@pytest.mark.skipif(os.geteuid() != 0, reason="sshd takes logins of its own user only; the lab's is root")
def test_a_key_is_offered_the_same(pair: Pair, internet: Lab, tmp_path: Path) -> None:
    """HLD-14: ssh signs at the host that was named and nowhere else, and what was signed is said in the same lines."""
    need()
    internet.dns.set("b.test", A=["1.2.3.4"])
    key = tmp_path / "id"
    make_key(key)
    authorized = key.with_suffix(".pub").read_text()
    sshd = SshServer(tmp_path / "sshd", internet.listener("1.2.3.4", 22), authorized)
    found = {}
    try:
        for way, product in pair.homes.items():
            known = f"a.test {sshd.host_key}\n"
            furnish(product, {"~/.ssh/known_hosts": known, "~/.ssh/id": key.read_text()})
            (product.home / ".ssh" / "id").chmod(0o600)
            (product.home / ".ssh" / "id.pub").write_text(authorized)
            file = f"{product.home}/.ssh/known_hosts"
            options = f"-F /dev/null -oBatchMode=yes -oStrictHostKeyChecking=yes -oUserKnownHostsFile={file}"
            before = tasks(product)
            words = ("--ssh-key", f"{product.home}/.ssh/id:a.test", "--allow", "a.test:22", "--allow", "b.test:22")
            line = "ssh-add -l | cut -d' ' -f1; ls -l $SSH_AUTH_SOCK | cut -c1-10"
            if not product.user:  # ssh wants an account of its user
                line += "".join(f"; ssh {options} {USER}@{name} echo in" for name in ("a.test", "b.test"))
            done = product.run(*words, "--", "sh", "-c", line)
            assert done.stdout.count("in\n") == (not product.user), done.stderr
            assert done.stdout.startswith("256\n"), done.stderr
            found[way] = seen(product, done, before)
    finally:
        sshd.close()
    same(*(re.sub(r'"(up|down)":[0-9]+', "", "\n".join(found[way])).splitlines() for way in WAYS))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_the_same(pair: Pair, number: signal.Signals) -> None:
    """HLD-9, HLD-16: a signal to `run` is the command's, and the exit status says so."""
    found = {}
    for way, product in pair.homes.items():
        furnish(product, {})
        before = tasks(product)
        line = f"{GET} http://b.test/; exec sleep 60"
        with product.start("--status-file", "status.json", "--", "sh", "-c", line) as task:
            assert task.stdout is not None
            assert task.stdout.readline() == "403\n"
            task.send_signal(number)
            out, err = task.communicate(timeout=120)
        found[way] = seen(product, subprocess.CompletedProcess((), task.returncode, out, err), before)
    same(*(found[way] for way in WAYS))


@pytest.mark.parametrize("key", ["a", "r", "x"])
def test_a_question_at_the_terminal_is_the_same(pair: Pair, internet: Lab, key: str) -> None:
    """ASK-2, ASK-5: the same screen, the same keys, the same lines after each answer."""
    first, second = f"{key}1.test", f"{key}2.test"  # what another row had remembered does not ask here
    internet.dns.set(first, A=["1.2.3.4"])
    found = {}
    for way, product in pair.homes.items():
        furnish(product, {})
        before = tasks(product)
        line = f"{GET} http://{first}/; {GET} http://{second}/"
        words = ("run", "--ask", "--profile", "closed", "--ask-for", "*.test", "--", "sh", "-c", line)
        with Person.at(product, *words, columns=160) as person:
            shown = [person.sees(f"{first}:80", READY)]
            person.press(key)
            shown.append(person.sees(f"{second}:80", READY))
            person.press("d")
            status = person.end()
            shown.append(person.text)
        text = re.sub(r"time left .*", "", "\n".join(shown))
        found[way] = seen(product, subprocess.CompletedProcess((), status, text, ""), before)
    same(*([re.sub(r"question [0-9]+", "question N", line) for line in found[way]] for way in WAYS))
