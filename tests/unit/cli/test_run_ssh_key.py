"""`--ssh-key` in the product, with a real sshd and git, in the lab (HLD-14)."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.api import Lab
from tests.product import PATIENCE, PYTHON, Product
from tests.ssh_server import USER, SshServer, make_key, need

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="sshd takes logins of its own user only; the lab's is root")

Serve = Callable[..., SshServer]


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def either(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product as root and as an ordinary user, with a key and a known host."""
    need()
    assert lab
    return _with_key(Product(tmp_path, user=request.param == "user"))


@pytest.fixture
def product(tmp_path: Path, lab: Lab) -> Product:
    """The product as root, which ssh needs a name of its user for; a.test and b.test have addresses."""
    need()
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    return _with_key(Product(tmp_path, user=False))


def _with_key(product: Product) -> Product:
    ssh = product.home / ".ssh"
    ssh.mkdir(mode=0o700)
    make_key(ssh / "id")
    make_key(ssh / "other")
    host_key = make_key(ssh / "host")
    (ssh / "known_hosts").write_text(f"known.test {host_key}\n")
    if product.user:
        for path in (ssh, *ssh.iterdir()):
            os.chown(path, 12345, 12345)
    return product


@pytest.fixture
def serve(product: Product, lab: Lab, tmp_path: Path) -> Iterator[Serve]:
    """Start a sshd at an address of the lab that takes the product's key; `names` become known hosts of it."""
    servers: list[SshServer] = []

    def start(address: str, *names: str, port: int = 22, **options: str) -> SshServer:
        keys = "".join((product.home / ".ssh" / f"{name}.pub").read_text() for name in ("id", "other"))
        server = SshServer(tmp_path / f"sshd-{len(servers)}", lab.listener(address, port), keys, **options)
        servers.append(server)
        with (product.home / ".ssh" / "known_hosts").open("a") as file:
            file.writelines(f"{name} {server.host_key}\n" for name in names)
        return server

    yield start
    for server in servers:
        server.close()


def _ssh(product: Product, *more: str) -> tuple[str, ...]:
    known = f"-oUserKnownHostsFile={product.home}/.ssh/known_hosts"
    return ("ssh", "-F", "/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", known, *more)


def _key(product: Product, host: str, name: str = "id") -> tuple[str, str]:
    return "--ssh-key", f"{product.home}/.ssh/{name}:{host}"


def _key_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("ssh-key: ")]


@ROOT_ONLY
def test_git_clones_and_pushes_over_ssh(product: Product, serve: Serve, tmp_path: Path) -> None:
    """HLD-14: `git clone` and `git push` with the key, which the task never sees."""
    serve("1.2.3.4", "a.test")
    repository = tmp_path / "repository.git"
    work = tmp_path / "work"
    for words in (
        ("init", "-q", "--bare", "-b", "main", str(repository)),
        ("init", "-q", "-b", "main", str(work)),
        (
            "-C",
            str(work),
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@a.test",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ),
        ("-C", str(work), "push", "-q", str(repository), "main"),
    ):
        subprocess.run(["git", *words], check=True, timeout=60, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    product.environment["GIT_SSH_COMMAND"] = " ".join(_ssh(product))
    script = (
        f"git clone -q {USER}@a.test:{repository} here && cd here && git log --format=%s && "
        "git -c user.name=n -c user.email=e@a.test commit -q --allow-empty -m second && git push -q origin main"
    )
    done = product.run("--allow", "a.test:22", *_key(product, "a.test"), "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "first\n"), done.stderr
    logged = subprocess.run(
        ["git", "-C", str(repository), "log", "--format=%s", "main"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert logged.stdout.split() == ["second", "first"]
    assert _key_lines(done.stderr) == [f"ssh-key: {product.home}/.ssh/id · signed a login to a.test ×2"]


@ROOT_ONLY
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_host_keys_of_every_kind(product: Product, serve: Serve, kind: str) -> None:
    """HLD-14: whatever kind of key the host has."""
    serve("1.2.3.4", "a.test", host_key=kind)
    command = _ssh(product, f"{USER}@a.test", "echo in")
    done = product.run("--allow", "a.test:22", *_key(product, "a.test"), "--", *command)
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr


@ROOT_ONLY
def test_another_host_gets_no_signature(product: Product, serve: Serve) -> None:
    """HLD-14: both hosts are known, allowed and take the key; it is for one of them, and the other refuses."""
    serve("1.2.3.4", "a.test")
    other = serve("1.2.3.5", "b.test")
    allow = ("--allow", "a.test:22", "--allow", "b.test:22")
    for host, status in (("a.test", 0), ("b.test", 255)):
        done = product.run(*allow, *_key(product, "a.test"), "--", *_ssh(product, f"{USER}@{host}", "true"))
        assert done.returncode == status, done.stderr
    assert "Permission denied (publickey)" in done.stderr
    assert _key_lines(done.stderr) == [f"ssh-key: {product.home}/.ssh/id · refused, the session is not with a.test"]
    assert "Accepted publickey" not in other.log.read_text()
    done = product.run(*allow, *_key(product, "b.test"), "--", *_ssh(product, f"{USER}@b.test", "true"))
    assert done.returncode == 0, done.stderr


@ROOT_ONLY
def test_a_host_that_shows_another_key_gets_no_signature(product: Product, serve: Serve) -> None:
    """HLD-14: who sits in the middle has not the host's key, whatever the task thinks of it."""
    serve("1.2.3.4")
    (product.home / ".ssh" / "known_hosts").write_text(f"a.test {make_key(product.home / '.ssh' / 'real')}\n")
    careless = (*_ssh(product)[:-1], "-oUserKnownHostsFile=/dev/null", f"{USER}@a.test", "true")
    command = [word.replace("Checking=yes", "Checking=no") for word in careless]
    done = product.run("--allow", "a.test:22", *_key(product, "a.test"), "--", *command)
    assert done.returncode == 255
    assert _key_lines(done.stderr) == [f"ssh-key: {product.home}/.ssh/id · refused, the session is not with a.test"]


@ROOT_ONLY
def test_a_user_and_a_port_may_be_named(product: Product, serve: Serve) -> None:
    """HLD-14: USER@ holds the key to that user, and :PORT to what known_hosts has for that port."""
    serve("1.2.3.4", "[a.test]:2222", port=2222)
    command = _ssh(product, "-p", "2222", f"{USER}@a.test", "echo in")
    for place, status in ((f"{USER}@a.test:2222", 0), ("git@a.test:2222", 255), ("a.test:2222", 0)):
        done = product.run("--allow", "a.test:2222", *_key(product, place), "--", *command)
        assert done.returncode == status, (place, done.stderr)
    done = product.run("--allow", "a.test:2222", *_key(product, "a.test"), "--", *command)
    assert done.returncode == 78
    assert "no host key of a.test is known" in done.stderr


@ROOT_ONLY
def test_two_keys_each_for_its_host(product: Product, serve: Serve) -> None:
    """HLD-14: the option may be repeated; a key for one host is none for the other."""
    serve("1.2.3.4", "a.test")
    serve("1.2.3.5", "b.test")
    allow = ("--allow", "a.test:22", "--allow", "b.test:22")
    keys = (*_key(product, "a.test"), *_key(product, "b.test", "other"))
    script = " && ".join(" ".join(_ssh(product, f"{USER}@{host}", "true")) for host in ("a.test", "b.test"))
    done = product.run(*allow, *keys, "--", "sh", "-c", f"ssh-add -l | wc -l && {script}")
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr
    assert {line for line in _key_lines(done.stderr) if "signed" in line} == {
        f"ssh-key: {product.home}/.ssh/id · signed a login to a.test",
        f"ssh-key: {product.home}/.ssh/other · signed a login to b.test",
    }


@ROOT_ONLY
def test_a_forwarded_agent_serves_nobody_there(product: Product, serve: Serve) -> None:
    """HLD-14: with `ssh -A` the host has a socket that leads here, and gets no signature by it."""
    serve("1.2.3.4", "a.test")
    inner = "echo outer; test -S $SSH_AUTH_SOCK && " + " ".join(_ssh(product, f"{USER}@a.test", "echo inner"))
    key = _key(product, "a.test")
    done = product.run("--allow", "a.test:22", *key, "--", *_ssh(product, "-A", f"{USER}@a.test", inner))
    assert (done.returncode, done.stdout) == (255, "outer\n")
    assert _key_lines(done.stderr) == [
        f"ssh-key: {product.home}/.ssh/id · signed a login to a.test",
        f"ssh-key: {product.home}/.ssh/id · refused, the agent was forwarded to another host",
    ]


@ROOT_ONLY
def test_the_callers_agent_signs_where_the_key_is_there(product: Product, serve: Serve) -> None:
    """HLD-14: by a public key, a fingerprint or an encrypted key file; the caller's agent signs for that host only."""
    ssh = product.home / ".ssh"
    serve("1.2.3.4", "a.test")
    serve("1.2.3.5", "b.test")
    socket = ssh / "callers"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as agent:
        try:
            product.environment["SSH_AUTH_SOCK"] = str(socket)
            environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
            deadline = time.monotonic() + PATIENCE
            while not socket.exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            for name in ("id", "other"):
                subprocess.run(["ssh-add", "-q", str(ssh / name)], env=environment, check=True, timeout=60)
            listed = subprocess.run(["ssh-add", "-l"], env=environment, check=True, capture_output=True, timeout=60)
            mark = listed.stdout.decode().split()[1]
            subprocess.run(
                ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(ssh / "id")], check=True, timeout=60
            )
            for key in (f"{ssh}/id.pub", mark, f"{ssh}/id"):
                for host, status in (("a.test", 0), ("b.test", 255)):
                    command = " ".join(_ssh(product, f"{USER}@{host}", "true"))
                    done = product.run(
                        "--allow", "a.test:22", "--allow", "b.test:22", "--ssh-key", f"{key}:a.test",
                        "--", "sh", "-c", f"ssh-add -l | wc -l; {command}",
                    )  # fmt: skip
                    assert (done.returncode, done.stdout.strip()) == (status, "1"), (key, host, done.stderr)
        finally:
            agent.kill()
    done = product.run("--ssh-key", f"{ssh}/id:a.test", "--", "true")
    assert (done.returncode, done.stderr) == (
        78,
        f"tidegate: --ssh-key: the key {ssh}/id is encrypted, and your ssh agent does not hold it: ssh-add {ssh}/id\n",
    )


@ROOT_ONLY
def test_a_key_opens_no_host(product: Product, serve: Serve) -> None:
    """HLD-14: without a rule for the host nothing is reached, and a line says which option would do it."""
    serve("1.2.3.4", "a.test")
    done = product.run(*_key(product, "a.test"), "--", *_ssh(product, f"{USER}@a.test", "true"))
    assert done.returncode == 255
    assert "net: to let it through: --allow a.test:22" in done.stderr.splitlines()
    assert _key_lines(done.stderr) == ["ssh-key: --ssh-key opens no host: for a.test there is --allow a.test:22"]


@ROOT_ONLY
def test_the_set_up_command_has_it_too(product: Product, serve: Serve) -> None:
    """POL-7, HLD-14: the set-up has the same environment; each hold has a socket of its own."""
    serve("1.2.3.4", "a.test")
    ssh = " ".join(_ssh(product, f"{USER}@a.test", "true"))
    policy = {"setup": ssh, "network": {"install": {"allow": ["a.test:22"]}, "runtime": {"allow": ["a.test:22"]}}}
    (product.folder / "p.yaml").write_text(json.dumps(policy))
    done = product.run("--policy", "p.yaml", *_key(product, "a.test"), "--", "sh", "-c", ssh)
    assert done.returncode == 0, done.stderr
    assert _key_lines(done.stderr) == [f"ssh-key: {product.home}/.ssh/id · signed a login to a.test ×2"]


ASK = """
import os, socket, sys
def text(data): return len(data).to_bytes(4, "big") + data
def ask(*messages, path=None):
    s = socket.socket(socket.AF_UNIX); s.connect(path or os.environ["SSH_AUTH_SOCK"]); answers = []
    for one in messages:
        s.sendall(text(one)); n = int.from_bytes(s.recv(4), "big"); data = b""
        while len(data) < n:
            data += s.recv(n - len(data))
        answers.append(data)
    return answers
listed = ask(b"\\x0b")[0]
count = int.from_bytes(listed[1:5], "big"); n = int.from_bytes(listed[5:9], "big"); blob = listed[9:9 + n]
login = text(b"s" * 32) + b"\\x32" + text(b"root") + text(b"ssh-connection") + text(b"publickey") + b"\\1"
login += text(b"ssh-ed25519") + text(blob)
def sign(data): return b"\\x0d" + text(blob) + text(data) + bytes(4)
bind = b"\\x1b" + text(b"session-bind@openssh.com")
"""


def test_raw_requests_are_refused(either: Product) -> None:
    """HLD-14: no signature over data, over a login of no session, by a made-up binding; nothing is changed."""
    code = ASK + (
        "host = text(b'ssh-ed25519') + text(b'h' * 32)\n"
        "signature = text(b'ssh-ed25519') + text(b'x' * 64)\n"
        "made_up = bind + text(host) + text(b's' * 32) + text(signature) + b'\\0'\n"
        "print(count, [a[:1].hex() for a in ask(sign(b'data'), sign(login), made_up, sign(login),"
        "b'\\x13', b'\\x12' + text(blob), b'\\x16' + text(b'pw'), b'\\x11', b'\\x1b' + text(b'query'), b'\\x0b')])\n"
    )
    (either.folder / "ask.py").write_text(code)
    done = either.run(*_key(either, "known.test"), "--", PYTHON, "ask.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 ['05', '05', '05', '05', '05', '05', '05', '05', '05', '0c']\n"
    assert _key_lines(done.stderr)[0] == "ssh-key: refused, what was asked for is no login by one of these keys ×6"


def test_the_private_key_is_not_in_sight(either: Product) -> None:
    """HLD-14: the key file that was named cannot be read, renamed or linked; its public half can be read."""
    script = "cat ~/.ssh/id; ln ~/.ssh/id here; mv ~/.ssh/id x; cat ~/.ssh/id.pub"
    for key in ("id", "id.pub"):
        done = either.run(*_key(either, "known.test", key), "--", "sh", "-c", script)
        if key == "id":
            assert done.stdout.split() == (either.home / ".ssh" / "id.pub").read_text().split()
        else:
            assert done.returncode == 78  # its agent does not hold it
    assert "PRIVATE" in (either.home / ".ssh" / "id").read_text()
    assert not (either.folder / "here").exists()


def test_ssh_configuration_is_read_only(either: Product) -> None:
    """HLD-15: no task says for the next which host keys are known, or what ssh runs outside; elsewhere it writes."""
    before = (either.home / ".ssh" / "known_hosts").read_text()
    script = (
        "echo x >>~/.ssh/known_hosts; echo x >~/.ssh/config; mv ~/.ssh ~/y; rm ~/.ssh/other; echo x >z && echo wrote"
    )
    done = either.run("--", "sh", "-c", script)
    assert done.stdout == "wrote\n", done.stderr
    assert (either.home / ".ssh" / "known_hosts").read_text() == before
    assert not (either.home / ".ssh" / "config").exists()
    assert (either.home / ".ssh" / "other").exists()


def test_nothing_is_left_of_it(either: Product) -> None:
    """HLD-14: the socket is the task's own /run, and ends with it; no process, socket or folder stays."""
    done = either.run(*_key(either, "known.test"), "--log", "log", "--", "sh", "-c", "echo $SSH_AUTH_SOCK; pwd -P")
    path, _ = done.stdout.split()
    assert not Path(path).exists()
    assert list((either.state / "tasks").iterdir()) == []
    time.sleep(0)
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            assert str(either.home) not in os.readlink(entry)
        except OSError:
            continue


def test_another_task_does_not_reach_it(either: Product) -> None:
    """HLD-14: while it is served, another task of the same user has no such socket, nor one at that path."""
    (either.folder / "ask.py").write_text(ASK + "print(count)\n")
    wait = "echo $SSH_AUTH_SOCK >ready.new; mv ready.new ready; while ! test -e stop; do sleep 0.05; done"
    with either.start(*_key(either, "known.test"), "--", "sh", "-c", wait) as first:
        try:
            deadline = time.monotonic() + PATIENCE
            while not (either.folder / "ready").exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            path = (either.folder / "ready").read_text().strip()
            code = f"import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex({path!r}))"
            done = either.run("--", PYTHON, "-c", code)
            assert done.stdout in ("2\n", "111\n"), done.stderr
            own = either.run(*_key(either, "known.test", "other"), "--", PYTHON, "ask.py")
            assert own.stdout == "1\n", own.stderr
        finally:
            (either.folder / "stop").touch()
        first.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("option", ["--open-network", "--capture=off"])
def test_it_is_there_in_other_holds(either: Product, option: str) -> None:
    """HLD-14: also where the network is the machine's own, and where nothing is captured."""
    (either.folder / "ask.py").write_text(ASK + "print(count)\n")
    done = either.run(option, *_key(either, "known.test"), "--", PYTHON, "ask.py")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_the_front_killed_leaves_no_agent(either: Product) -> None:
    """HLD-8: kill -9 of `run` ends what serves its keys, and the agent that holds them."""
    with either.start(*_key(either, "known.test"), "--", "sh", "-c", "touch ready; sleep 1000") as process:
        deadline = time.monotonic() + PATIENCE
        while not (either.folder / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        agents = _served_in(either)
        assert len(agents) == 2
        process.kill()
        process.communicate(timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while _served_in(either):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _served_in(product: Product) -> list[int]:
    """Processes that work in the folder of this product's tasks: what serves the keys, and its agent."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (
                os.readlink(entry / "cwd").startswith(str(product.state))
                and "State:\tZ" not in (entry / "status").read_text()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("key", "status", "line"),
    [
        ("~/.ssh/id:a.test", 78, "--ssh-key: no host key of a.test is known, so a login there cannot be told from one"),
        ("~/.ssh/id:a.test:2200", 78, "--ssh-key: no host key of a.test is known, so a login there"),
        ("~/.ssh/none:known.test", 78, "--ssh-key: {home}/.ssh/none cannot be read: No such file or directory"),
        ("~/.ssh/known_hosts:known.test", 78, "--ssh-key: {home}/.ssh/known_hosts is not an ssh key"),
        ("~/.ssh/other.pub:known.test", 78, "--ssh-key: the key {home}/.ssh/other.pub is not held by your ssh agent"),
        ("SHA256:abc:known.test", 78, "--ssh-key: the key SHA256:abc is not held by your ssh agent"),
        ("~/.ssh/id", 2, "--ssh-key '~/.ssh/id': this names no key and host: --ssh-key KEY:HOST, such as"),
        ("~/.ssh/id:*.test", 2, "--ssh-key '~/.ssh/id:*.test': this names no key and host"),
        ("~/.ssh/id:a.test>b.test", 2, "--ssh-key '~/.ssh/id:a.test>b.test': this names no key and host"),
    ],
)
def test_what_cannot_be_done_is_one_line(either: Product, key: str, status: int, line: str) -> None:
    """HLD-7, HLD-14: the start is refused, with what is missing and what to do; nothing has run."""
    done = either.run("--ssh-key", key, "--", "touch", "ran")
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(f"tidegate: {line.format(home=either.home)}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert not (either.folder / "ran").exists()


def test_without_a_network_there_is_nothing_to_sign_for(either: Product) -> None:
    """HLD-5: --ssh-key with --no-network is a mistake, and said to be one."""
    done = either.run("--no-network", *_key(either, "known.test"), "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--ssh-key has no meaning without a network" in done.stderr
