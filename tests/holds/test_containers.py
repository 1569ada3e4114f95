"""What the holds `docker` and `podman` owe their task and their machine, with the real engines (HLD-4)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import BOTH, IMAGE
from tests.person import Person
from tests.product import Product
from tests.stalls import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]
PATIENCE = 120


class Held:
    """The product with one engine."""

    def __init__(self, product: Product, name: str, environment: dict[str, str]) -> None:
        self.product = product
        self.name = name
        self.environment = environment
        product.environment |= environment

    def words(self, *options: str, command: tuple[str, ...]) -> tuple[str, ...]:
        """The arguments of a run in this engine."""
        return ("--hold", self.name, "--image", IMAGE, *options, "--", *command)

    def sh(self, script: str, *options: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """Run a shell script in a container."""
        how.setdefault("timeout", PATIENCE)
        return self.product.run(*self.words(*options, command=("sh", "-c", script)), **how)

    def engine(self, *arguments: str) -> str:
        """Ask the engine."""
        whole = {**os.environ, **self.environment}
        done = subprocess.run(
            [self.name, *arguments], env=whole, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def ids(self) -> list[str]:
        """Every container of this product's tasks: others use the same engine at the same time."""
        folder = self.product.state / "tasks"
        runs = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        return [
            one for run in runs for one in self.engine("ps", "-aq", "--filter", f"label=tidegate.run={run}").split()
        ]

    def configure(self, line: str) -> None:
        """Have this line among podman's settings of containers, for this product alone."""
        before = Path(self.environment["CONTAINERS_CONF"]).read_text(encoding="ascii")
        path = self.product.home / "containers.conf"
        name = line.lstrip("#").partition(" =")[0]
        kept = "".join(one for one in before.splitlines(keepends=True) if not one.startswith(name))
        path.write_text(kept.replace("[containers]\n", f"[containers]\n{line}\n"))
        self.product.environment["CONTAINERS_CONF"] = str(path)

    def wait_for(self, count: int) -> list[str]:
        """Wait until there are so many."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = self.ids()
            if len(found) == count:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{count} containers were expected, these are here: {found}")


@pytest.fixture
def held(engine: tuple[str, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    """A person's folder, and one engine; all that was made is gone afterwards."""
    import shutil
    import tempfile

    del tmp_path_factory  # a workspace in /tmp could not be told from a task's own
    root = Path(tempfile.mkdtemp(prefix="tidegate-container-test-", dir="/var/tmp"))
    made = Held(Product(root, user=False), *engine)
    try:
        yield made
        assert made.ids() == []
    finally:
        left = made.ids()
        if left:  # of a test that failed: the next one begins with nothing all the same
            made.engine("rm", "-f", *(("--time", "0") if made.name == "podman" else ()), *left)
        shutil.rmtree(root)


def test_the_command_is_itself(held: Held) -> None:
    """Folder, user, arguments, files and exit status are the command's own; PID 1 reaps (HLD-4, HLD-9, HLD-16)."""
    done = held.sh('pwd; id -u; echo there > file; echo "$TIDEGATE_TASK" | wc -l; exit 37')
    assert done.returncode == 37, done.stderr
    assert done.stdout.split() == [str(held.product.folder), str(os.getuid()), "1"]
    made = held.product.folder / "file"
    assert (made.read_text(), made.stat().st_uid) == ("there\n", os.getuid())


@pytest.mark.parametrize(
    ("command", "status"), [(("no-such-program",), 127), (("/etc",), 126), (("sh", "-c", "kill -9 $$"), 137)]
)
def test_the_end_of_a_command_is_a_shells(held: Held, command: tuple[str, ...], status: int) -> None:
    """Not found, not executable, and ended by a signal: as a shell says it (HLD-16)."""
    done = held.product.run(*held.words(command=command), timeout=PATIENCE)
    assert done.returncode == status, done.stderr


def test_streams_are_the_commands(held: Held) -> None:
    """Input reaches the command and its end, output and error come back apart, byte for byte (HLD-9)."""
    data = bytes(range(256)) * 4096
    argv = held.product.argv("run", "--quiet", *held.words(command=("sh", "-c", "cat; echo err >&2")))
    done = subprocess.run(
        argv, input=data, cwd=held.product.folder, env=held.product.environment, capture_output=True, check=False
    )
    assert done.stdout == data
    assert done.stderr == b"err\n"


def test_nothing_but_the_gate_is_there(held: Held, lab: Lab) -> None:
    """An allowed host answers, by proxy and captured by name; all else is refused; loopback is alone (HLD-4, HLD-6)."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    other = lab.origin("http", "1.2.3.5", 80, body="it is b.test\n")
    script = (
        "ip link | grep -c mtu; wget -q -O- http://a.test/; unset http_proxy HTTP_PROXY; wget -q -O- http://a.test/;"
        " wget -q -O- http://b.test/; nc -w 2 1.2.3.5 80 </dev/null; echo end"
    )
    done = held.sh(script, "--allow", "a.test:80")
    assert done.stdout == "1\nit is a.test\nit is a.test\nend\n", done.stderr
    assert other.connections == 0
    assert "1.2.3.5:80" in done.stderr


def test_no_right_is_left(held: Held) -> None:
    """No capability, no_new_privs, our filter; /proc/sys and /sys read-only, no engine's socket (HLD-13, B79)."""
    done = held.sh(
        "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; echo x > /proc/sys/kernel/hostname; mkdir /sys/x;"
        " ls /run/docker.sock /var/run/docker.sock /run/podman/podman.sock 2>&1; mount -t tmpfs x /root; true"
    )
    fields = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    rights = {int(text, 16) for name, text in fields.items() if name.startswith("Cap")}
    assert (rights, fields["NoNewPrivs"], fields["Seccomp"]) == ({0}, "1", "2"), done
    assert done.stderr.count("Read-only file system") + done.stderr.count("Permission denied") >= 2, done.stderr
    assert done.stdout.count("No such file") == 3


def test_what_would_run_later_is_read_only(held: Held) -> None:
    """Hooks and tidegate's own policy in the workspace cannot be changed or moved away; code can (HLD-15)."""
    subprocess.run(["git", "init", "-q", held.product.folder], check=True, timeout=60)
    (held.product.folder / "tidegate.yaml").write_text("version: 1\n")
    done = held.sh(
        "echo x > .git/hooks/pre-commit; echo x >> tidegate.yaml; mv .git other; echo ok > code.py; cat code.py",
        "--no-folder-policy",
    )
    assert done.stdout == "ok\n", done.stderr
    assert not (held.product.folder / ".git/hooks/pre-commit").exists()
    assert (held.product.folder / "tidegate.yaml").read_text() == "version: 1\n"
    assert (held.product.folder / ".git").is_dir()


def test_shares_are_given_and_nothing_else(held: Held) -> None:
    """`--share` gives a path, read-only where that is said; the rest of this machine is not there (HLD-14)."""
    share = held.product.home / "share"
    share.mkdir()
    (share / "file").write_text("shared\n")
    done = held.sh(f"cat {share}/file; echo x > {share}/new; ls {held.product.home}", "--share", f"{share}:ro")
    assert done.stdout == f"shared\n{held.product.folder.name}\nshare\n"
    assert not (share / "new").exists()


def test_a_task_does_not_find_what_another_was_given(held: Held) -> None:
    """Also where it shares the temporary folder: no variables and no sockets of another task (GAT-2, HLD-14)."""
    place = held.product.home / "temporary"
    place.mkdir()
    held.product.environment["TMPDIR"] = str(place)
    command = ("sh", "-c", "echo up; sleep 1000")
    first = held.product.start(*held.words("--container-option", "env=KEY=secret", command=command))
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == "up\n"
        script = f"ls {place}; ls -R {held.product.state}; true"  # podman would copy what a folder in memory covers
        done = held.sh(script, "--share", str(place), "--share", str(held.product.home / ".local"))
        assert (done.returncode, done.stdout) == (0, f"{held.product.state}:\n"), done.stderr
        assert list((held.product.state / "run" / "containers").iterdir())
    finally:
        first.terminate()
        first.communicate(timeout=PATIENCE)
    assert list((held.product.state / "run" / "containers").iterdir()) == []


@pytest.mark.parametrize("path", ["/", "/proc", "/sys"])
def test_the_machine_itself_cannot_be_shared(held: Held, path: str) -> None:
    """What would undo the hold is refused by name, and nothing runs (HLD-7)."""
    done = held.sh("echo ran", "--share", path)
    assert (done.returncode, done.stdout) == (78, ""), done.stderr


def test_an_engines_socket_cannot_be_shared(held: Held) -> None:
    """Whoever has the engine's socket owns this machine: it is refused by name (B79)."""
    path = held.product.home / "docker.sock"
    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(str(path))
        done = held.sh("echo ran", "--share", str(path))
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert "engine's socket" in done.stderr


def test_variables_of_a_proxy_never_come_along(held: Held) -> None:
    """The caller's proxies and other variables stay outside; those that are named come (B100)."""
    held.product.environment |= {"HTTP_PROXY": "http://127.0.0.1:9", "ftp_proxy": "http://127.0.0.1:9", "MINE": "me"}
    held.product.environment |= {"OTHER": "other"}
    done = held.sh("env", "--container-option", "env=MINE", "--container-option", "env=SAID=yes")
    inside = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert inside["HTTP_PROXY"] == inside["https_proxy"] == "http://127.0.0.1:3128"
    assert "127.0.0.1:9" not in done.stdout
    assert (inside["MINE"], inside["SAID"], inside.get("OTHER")) == ("me", "yes", None)


DOCKERS = dict.fromkeys(("httpProxy", "httpsProxy", "ftpProxy", "noProxy"), "http://me:secret@proxy.test:1")


def test_a_proxy_of_the_engines_settings_never_comes_along(held: Held) -> None:
    """Neither docker's `proxies` nor podman's `env` is a task's, nor the password in it (GAT-10, B100)."""
    if held.name == "docker":
        settings = held.product.home / ".docker" / "config.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"proxies": {"default": DOCKERS}}))
    else:
        given = "".join(f'"{name}=http://me:secret@proxy.test:1",' for name in ("HTTPS_PROXY", "ftp_proxy"))
        held.configure(f"env = [{given}]")
    done = held.sh("env")
    assert (done.returncode, "secret" in done.stdout) == (0, False), done.stderr
    assert "HTTPS_PROXY=http://127.0.0.1:3128\n" in done.stdout


@pytest.mark.parametrize("engine", BOTH[1:], indirect=True)
def test_what_podman_mounts_by_itself_stops_the_start(held: Held) -> None:
    """A folder that the engine's own settings add was not asked for: nothing runs, and the line names it (HLD-14)."""
    kept = held.product.home / "kept"
    kept.mkdir()
    held.configure(f'volumes = ["{kept}:/kept"]')
    done = held.sh("echo ran")
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert f"{kept} at /kept" in done.stderr


@pytest.mark.parametrize("engine", BOTH[1:], indirect=True)
def test_limits_that_podman_may_not_set_are_named_and_can_be_lowered(held: Held) -> None:
    """Podman's own limits may be more than its caller may set: one line with the setting, which helps (HLD-7)."""
    held.configure("#default_ulimits = as podman has them")
    done = held.sh("echo ran")
    if done.returncode == 0:
        pytest.skip("whoever runs the tests here may set what podman wants")
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert done.stderr.count("\n") == 1
    held.configure(done.stderr[done.stderr.index("default_ulimits") :].strip())
    assert held.sh("echo ran").stdout == "ran\n"


def test_an_image_brings_no_commands_of_its_own(held: Held) -> None:
    """Neither its health check nor its entry point runs; its volume is the container's own and goes (HLD-4, HLD-8)."""
    name = f"tidegate-test-own-{os.getpid()}"
    lines = ['ENTRYPOINT ["touch","/entered"]', "VOLUME /vol"]
    if held.name == "docker":  # podman's commit makes none, and its checks are run by systemd
        lines.append('HEALTHCHECK --interval=1s CMD ["touch","/checked"]')
    made = held.engine("create", IMAGE, "true").split()[-1]
    try:
        held.engine("commit", *(part for line in lines for part in ("--change", line)), made, name)
        words = ("--hold", held.name, "--image", name, "--", "sh", "-c", "sleep 3; ls -d /checked /entered /vol")
        done = held.product.run(*words, timeout=PATIENCE)
        assert done.stdout == "/vol\n", done.stderr
    finally:
        held.engine("rm", made)
        held.engine("rmi", "--force", name)


def test_an_image_that_is_missing_is_named(held: Held) -> None:
    """Nothing is pulled: the error names the command that would (HLD-7)."""
    done = held.product.run("--hold", held.name, "--image", "not-here:1", "--", "true", timeout=PATIENCE)
    assert done.returncode == 78
    assert f"{held.name} pull not-here:1" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_signal_reaches_the_command(held: Held) -> None:
    """SIGTERM to the front is the command's, whose answer is the exit status (HLD-9)."""
    process = held.product.start(
        *held.words(command=("sh", "-c", "trap 'echo heard; exit 5' TERM; echo up; while :; do sleep 0.1; done"))
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (5, "heard\n"), err


def test_the_containers_end_with_the_front(held: Held) -> None:
    """Kill -9 of the front takes both containers along (HLD-7, HLD-8)."""
    process = held.product.start(*held.words(command=("sh", "-c", "echo up; sleep 1000")))
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    held.wait_for(2)
    process.kill()
    process.communicate(timeout=PATIENCE)
    held.wait_for(0)


def began(pid: str) -> int:
    """When a process did, in ticks since the machine started (proc_pid_stat(5))."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])


def test_the_command_loses_its_gate_and_is_told(held: Held) -> None:
    """When the gate is killed the task ends with 70 within seconds (HLD-7)."""
    process = held.product.start(*held.words(command=("sh", "-c", "echo up; sleep 1000")))
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert process.stderr is not None
    with Stopwatch() as watch:
        os.kill(int(min(children, key=began)), signal.SIGKILL)  # the gate is the first; numbers begin anew some time
        assert process.stderr.readline().startswith("tidegate: the gate is gone")
        assert watch.seconds < 5.0
    _out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 70, err


def test_what_is_removed_of_its_network_takes_ways_away_and_gives_none(held: Held, lab: Lab) -> None:
    """The table in the container's own network, then its addresses: there is only loopback, so nothing is gained.

    The transport `enter` needs nothing of this machine's own tables (HLD-4, HLD-7).
    """
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    other = lab.origin("http", "1.2.3.5", 80, body="it is b.test\n")
    look = "wget -q -O- http://a.test/ 2>/dev/null | grep -c a.test"
    script = (
        f"echo up; while read line; do {look}; (unset http_proxy HTTP_PROXY; {look});"
        " echo | nc -w 2 1.2.3.5 80 | grep -c b.test; grep -c : /proc/net/dev; done"
    )
    words = held.words("--allow", "a.test:80", command=("sh", "-c", script))
    process = held.product.start(*words, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    try:
        holder = next(one for one in held.wait_for(2) if "holder" in held.engine("inspect", one))
        network = f"--net=/proc/{held.engine('inspect', '--format', '{{.State.Pid}}', holder).strip()}/ns/net"
        seen = []
        for act in (("true",), ("nft", "flush", "ruleset"), ("ip", "address", "flush", "dev", "lo")):
            subprocess.run(["nsenter", network, *act], check=True, timeout=60)
            process.stdin.write("look\n")
            process.stdin.flush()
            seen.append([process.stdout.readline().strip() for _ in range(4)])
    finally:
        process.stdin.close()
        process.stdin = None
        process.communicate(timeout=PATIENCE)
    # the proxy, what is captured by name, an address, and how many interfaces there are
    assert seen == [["1", "1", "0", "1"], ["1", "0", "0", "1"], ["0", "0", "0", "1"]]
    assert other.connections == 0


@pytest.mark.parametrize("engine", BOTH[:1], indirect=True)
def test_an_engine_whose_processes_are_not_here_is_refused(held: Held) -> None:
    """Where the engine counts other processes than we do, no network here is entered by its numbers (HLD-4, HLD-7).

    podman has no daemon: its processes are always ours.
    """
    words = held.product.argv("run", *held.words(command=("echo", "ran")))
    argv = ["unshare", "--pid", "--fork", "--mount-proc", *words]
    done = subprocess.run(
        argv,
        cwd=held.product.folder,
        env=held.product.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert "not to be seen from here" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_a_crash_left_is_swept_and_what_lives_stays(held: Held) -> None:
    """A container of an owner that has ended goes at the next start; one of a living owner stays (HLD-8)."""
    from tidegate.holds.container import owner

    gone = subprocess.Popen(["true"])
    gone.wait()
    mine = owner.me()
    dead = mine.rpartition("/")[0].rpartition("/")[0] + f"/{gone.pid}/1"

    def named(what: str) -> tuple[str, str]:
        return ("--name", f"tidegate-test-{what}-{os.getpid()}")

    make = ("create", "--network", "none", "--label")
    left = held.engine(*make, f"tidegate.owner={dead}", *named("dead"), IMAGE, "true").split()[-1]
    kept = held.engine(*make, f"tidegate.owner={mine}", *named("mine"), IMAGE, "true").split()[-1]
    try:
        assert held.sh("true").returncode == 0
        found = held.engine("ps", "-aq", "--no-trunc").split()
        assert kept in found
        assert left not in found
    finally:
        held.engine("rm", kept)


def test_two_tasks_do_not_meet(held: Held) -> None:
    """Each task has a network of its own: what one listens on the other does not find (HLD-4)."""
    first = held.product.start(*held.words(command=("sh", "-c", "echo up; nc -l -p 4444; sleep 1000")))
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == "up\n"
        done = held.sh("nc -w 2 127.0.0.1 4444 </dev/null && echo met || echo alone")
        assert done.stdout == "alone\n", done.stderr
    finally:
        first.terminate()
        first.communicate(timeout=PATIENCE)


def test_a_service_of_this_machine_is_met(held: Held) -> None:
    """A rule for `localhost:PORT` leads to that service, and only to it (HLD-10)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"hello from outside\n")

        threading.Thread(target=answer, daemon=True).start()
        done = held.sh(f"nc -w 60 127.0.0.1 {port} </dev/null", "--allow", f"localhost:{port}")
    assert "hello from outside" in done.stdout, done.stderr


def test_a_server_of_the_task_is_published(held: Held) -> None:
    """`--publish` leads from this machine's loopback to a server in the container (HLD-10)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ("sh", "-c", "echo up; echo hello from inside | nc -l -p 8080")
    process = held.product.start(*held.words("--publish", f"{port}:8080", command=command))
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    heard = b""
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as wire:
                wire.settimeout(10)
                heard = wire.recv(100)
            if heard:
                break
            time.sleep(0.1)
    finally:
        if not heard:
            process.terminate()
        process.communicate(timeout=PATIENCE)
    assert heard == b"hello from inside\n"


@pytest.mark.parametrize("mark", ["privileged", "cap-add=ALL", "volume=/:/host", "network=host"])
def test_an_option_that_gives_a_right_is_refused(held: Held, mark: str) -> None:
    """What a person may add to the container is an allow-list without rights, mounts and networks (HLD-13)."""
    done = held.sh("echo ran", "--container-option", mark if "=" in mark else f"{mark}=true")
    assert (done.returncode, done.stdout) == (2, "")


def test_an_option_of_the_list_is_the_engines(held: Held) -> None:
    """The neighbour: a limit that a person asks for is set (HLD-4)."""
    done = held.sh("grep ' /dev/shm ' /proc/mounts", "--container-option", "shm-size=7m")
    assert "size=7168k" in done.stdout, done.stderr


def test_a_container_that_does_not_start_is_no_exit_of_the_command(held: Held) -> None:
    """What an engine cannot start is 78, tidegate's own, with what the engine says (HLD-7, HLD-16)."""
    status = held.product.home / "status"
    done = held.sh("echo ran", "--container-option", "runtime=no-such-runtime", "--status-file", str(status))
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert json.loads(status.read_text())["source"] == "tidegate"


def test_the_journal_names_the_hold(held: Held) -> None:
    """Every connection is on record as in any hold, captured ones too (JRN-1)."""
    log = held.product.home / "log.jsonl"
    held.sh("unset http_proxy; wget -q -O- http://nowhere.test/; nc -w 1 203.0.113.9 81 </dev/null", "--log", str(log))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(line.get("port") == 81 for line in lines), lines


def test_a_terminal_is_the_containers(held: Held) -> None:
    """A pty with the window's size, also when that changes; Ctrl-C is the command's (HLD-9).

    docker gives a terminal its size shortly after the command has begun.
    """
    script = (
        "tty; until stty size 2>/dev/null | grep 100; do sleep 0.2; done;"
        " trap 'echo caught; stty size; exit 9' INT; echo ready;"
        " until stty size 2>/dev/null | grep 120; do sleep 0.2; done; echo resized; while :; do sleep 0.1; done"
    )
    with Person.at(held.product, "run", *held.words(command=("sh", "-c", script)), rows=30, columns=100) as person:
        person.sees("/dev/", "30 100", "ready")
        person.resize(40, 120)
        person.sees("resized")
        person.type("\x03")
        person.sees("caught\n40 120")
        assert person.end() == 9
