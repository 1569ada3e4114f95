"""Secrets in every hold that has a gate, alone and behind a server: the value gets to its host and nowhere else."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import shlex
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.kit import ALLOWED
from tests.engines import IMAGE, of_one_worker
from tests.holds.inside_tls import PLACES, Inside
from tests.holds.leaks import family, found_in_files, found_in_memory, found_in_processes, gates_are_known, has, is_gate
from tests.served import Served, hear, until
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab, Origin

VALUE = f"ghp_He1d{secrets.token_hex(16)}"  # of this process alone: the whole machine is searched for it
CURL = 'curl -sS -m 30 -H "Authorization: Bearer $TOKEN" https://a.test/'
WRONG = 'curl -sS -m 30 -H "X-Other: $TOKEN" https://a.test/'
WAIT = "touch ready; while [ ! -e go ]; do sleep 0.1; done"
LOOK = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; env"
ENGINES = [pytest.param(one, marks=(pytest.mark.slow, *of_one_worker(one))) for one in ("docker", "podman")]


def keep(inside: Inside, value: str = VALUE) -> None:
    """`tidegate secret set TOKEN`, with the value on standard input."""
    done = subprocess.run(
        inside.product.argv("secret", "set", "TOKEN", "--host", "a.test"),
        input=value,
        cwd=inside.product.folder,
        env=inside.product.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def bearers(origin: Origin) -> list[str]:
    """The tokens that an origin was sent."""
    heads = [head.partition(b"uthorization: Bearer ")[2].partition(b"\r\n")[0] for head in origin.heads]
    return [one.decode() for one in heads]


def api(inside: Inside, path: str) -> str:
    """What the API answers, over the unix socket."""
    argv = ["curl", "-sS", "--unix-socket", str(inside.product.state / "run" / "api.sock"), f"http://localhost{path}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.fixture
def inside(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Inside]:
    """A person with a secret, in one hold."""
    with Inside(request.param, request, lab) as made:
        keep(made)
        yield made


class Seen:
    """What was found of the value while a command ran, and what the command and tidegate said."""

    def __init__(self, inside: Inside, process: subprocess.Popen[str]) -> None:
        go, ready = inside.product.folder / "go", inside.product.folder / "ready"
        self.processes: list[str] = []
        self.memory: list[int] = []
        self.gates: list[bool] = []  # whether each gate of its own has it: that the search would find it elsewhere
        self.engine = ""
        try:
            until(lambda: ready.exists() or process.poll() is not None)
            if process.poll() is None:
                self.processes = found_in_processes(VALUE)
                if not gates_are_known():
                    pytest.skip("no process may leave a core here, so that a gate cannot be told from others")
                self.memory = found_in_memory(VALUE, process.pid)
                self.gates = [has(one, VALUE) for one in family(process.pid) if is_gate(one)]
                if inside.hold in ("docker", "podman"):
                    self.engine = self._engine(inside)
        finally:
            go.touch()
            self.out, self.err = process.communicate(timeout=120)
            for path in (go, ready):
                path.unlink(missing_ok=True)
        self.status = process.returncode

    @staticmethod
    def _engine(inside: Inside) -> str:
        found = []
        for one in inside.engine.run("ps", "-aq").split():
            with contextlib.suppress(StartError):  # another test's that is being removed
                found.append(inside.engine.inspect(one))
        return json.dumps(found)

    def nothing(self) -> None:
        """The value is in no process's arguments and environment, no memory but the gate's, no engine and no output."""
        assert (self.processes, self.memory) == ([], [])
        assert VALUE not in self.engine + self.out + self.err


@pytest.mark.parametrize("inside", PLACES, indirect=True)
def test_a_run_alone_leaks_nothing(inside: Inside, lab: Lab) -> None:
    """INS-5, B119: the host sees the value; task, files, processes, memory of all but the gate and engine do not."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    script = f'echo "$TOKEN"; {CURL}; {WRONG}; {LOOK}; {WAIT}'
    words = inside.words("--allow", "a.test", "--secret", "TOKEN", "--report", "report.json", script=script)
    seen = Seen(inside, inside.product.start(*words))
    assert seen.status == 0, seen.err
    stand_in, _, answer = seen.out.partition("\n")
    assert (len(stand_in), stand_in[:4], stand_in != VALUE) == (len(VALUE), "ghp_", True), seen.err
    assert f"Bearer {stand_in}" in answer
    assert "the secret TOKEN belongs in bearer" in answer
    assert bearers(origin) == [VALUE]
    seen.nothing()
    assert seen.gates == [True] or os.geteuid() != 0
    assert found_in_files(VALUE, inside.product.home) == []
    for words in (("secret", "list"), ("secret", "test", "TOKEN"), ("events",), ("log", "verify")):
        done = inside.product.tidegate(*words)
        assert VALUE not in done.stdout + done.stderr


@pytest.mark.parametrize("inside", ["netns", "uid", *ENGINES], indirect=True)
def test_tasks_of_a_server_leak_nothing(inside: Inside, lab: Lab) -> None:
    """INS-5, JRN-5, B119: `run` and `exec` behind a server, its API, action log and store: names, and no value."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    product = inside.product
    script = f'echo "$TOKEN"; {CURL}; {WRONG}; {LOOK}; {WAIT}'
    with Served(product) as server:
        ran = Seen(inside, product.start(*inside.words("--allow", "a.test", "--secret", "TOKEN", script=script)))
        ran.nothing()
        made = product.tidegate("task", "create", "--allow", "a.test", "--secret", "TOKEN")
        task = made.stdout.strip()
        process = server.start("exec", task, *inside.words(script=script))
        done = Seen(inside, process)
        done.nothing()
        for one in (ran, done):
            assert one.status == 0, one.err
            assert f"Bearer {one.out.partition(chr(10))[0]}" in one.out
        assert bearers(origin) == [VALUE] * 2
        paths = ("/api/tasks", f"/api/tasks/{task}", f"/api/tasks/{task}/connections", "/api/log", "/api/settings")
        answers = "".join(api(inside, path) for path in paths)
        assert VALUE not in answers
        assert done.out.partition("\n")[0] not in answers  # nor what stands for it
        found = json.loads(api(inside, f"/api/tasks/{task}"))["secrets"]
        assert found == [{"name": "TOKEN", "hosts": ["a.test:443"], "variable": "TOKEN"}]
        kinds = [line["type"] for line in server.actions()]
        assert (kinds.count("secret.given"), kinds.count("secret.used")) == (2, 2)
        assert "secret.set" in kinds
        assert found_in_processes(VALUE) == []
        assert is_gate(server.pid)
        assert has(server.pid, VALUE) or os.geteuid() != 0
        said = server.stop()
    assert VALUE not in said
    assert found_in_files(VALUE, product.home) == []


def _need_cores() -> None:
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        pattern = file.read().strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"cores do not go to the folder here (core_pattern {pattern})")


def test_no_core_has_a_value(request: pytest.FixtureRequest, lab: Lab) -> None:
    """INS-5: a gate that is ended by a fault leaves no core; the front's and the task's have no value in them."""
    _need_cores()
    lab.origin("echo", ALLOWED, 443, tls="a.test")
    with Inside("netns", request, lab) as inside:
        keep(inside)
        whole = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        words = inside.words("--allow", "a.test", "--secret", "TOKEN", script=f"{CURL} >/dev/null; {WAIT}")
        for whose, how in (
            *(("gate", one) for one in (signal.SIGSEGV, signal.SIGABRT, signal.SIGSYS)),
            *((one, signal.SIGSEGV) for one in ("front", "task")),
        ):
            process = inside.product.start(
                *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, whole), start_new_session=True
            )
            ready = inside.product.folder / "ready"
            until(ready.exists)
            while True:
                members = family(process.pid)
                victim = {
                    "gate": next(one for one in members if is_gate(one)),
                    "front": process.pid,
                    "task": members[-1],
                }[whose]
                with contextlib.suppress(ProcessLookupError):  # a sleep of the task's script may be over by now
                    os.kill(victim, how)
                    break
            if whose == "task":  # a sleep of its script's: the script goes on
                (inside.product.folder / "go").touch()
            process.communicate(timeout=120)
            ready.unlink()
            cores = [path for path in inside.product.folder.iterdir() if path.name.startswith("core")]
            assert [path for path in cores if VALUE.encode() in path.read_bytes()] == []
            if whose == "gate":
                assert cores == []
            for path in cores:
                path.unlink()


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGABRT])
def test_no_core_of_a_server_has_a_value(request: pytest.FixtureRequest, lab: Lab, how: signal.Signals) -> None:
    """INS-5, B119: nor one that has the values of its tasks, nor what it leaves half-written: database, logs, state."""
    _need_cores()
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    with Inside("netns", request, lab) as inside:
        keep(inside)
        server = Served(inside.product)
        resource.prlimit(server.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        there = os.path.realpath(f"/proc/{server.pid}/cwd")
        before = set(os.listdir(there))
        words = inside.words("--allow", "a.test", "--secret", "TOKEN", script=f"{CURL}; {WRONG}; {WAIT}")
        process = inside.product.start(*words)
        ready = inside.product.folder / "ready"
        until(lambda: ready.exists() or process.poll() is not None)
        assert is_gate(server.pid)
        os.kill(server.pid, how)
        said, _ = server.process.communicate(timeout=120)
        (inside.product.folder / "go").touch()
        out, err = process.communicate(timeout=120)
        assert bearers(origin) == [VALUE]
        assert VALUE not in said + out + err
        assert [name for name in set(os.listdir(there)) - before if name.startswith("core")] == []
        assert list(inside.product.state.rglob("*.db-wal")) + list(inside.product.state.rglob("*.sqlite*"))
        assert found_in_files(VALUE, inside.product.home) == []


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_task_keeps_its_stand_in_over_a_restart(request: pytest.FixtureRequest, lab: Lab, how: str) -> None:
    """INS-5, HLD-8: the next server asks the source: another value of that shape serves, another shape does not."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    with Inside("netns", request, lab) as inside:
        keep(inside)
        product = inside.product
        server = Served(product)
        try:
            task = product.tidegate("task", "create", "--allow", "a.test", "--secret", "TOKEN").stdout.strip()
            command = ("exec", task, "--", "sh", "-c", f'echo "$TOKEN"; {CURL}')
            first = product.tidegate(*command)
            assert first.returncode == 0, first.stderr
            getattr(server, how)()
            other = VALUE[:-8] + secrets.token_hex(4)
            keep(inside, other)
            server = Served(product)
            second = product.tidegate(*command)
            assert second.returncode == 0, second.stderr
            assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0]
            assert bearers(origin) == [VALUE, other]
            keep(inside, VALUE + "longer")
            third = product.tidegate(*command)
            assert (third.returncode, "has another shape" in third.stderr, third.stdout) == (78, True, ""), third.stderr
            assert product.tidegate("secret", "forget", "TOKEN").returncode == 0
            gone = product.tidegate(*command)
            assert (gone.returncode, "there is no secret 'TOKEN'" in gone.stderr) == (78, True), gone.stderr
            assert len(origin.heads) == 2
            assert {"secret.set", "secret.forgotten", "secret.given"} <= {line["type"] for line in server.actions()}
        finally:
            server.stop()
        assert found_in_files(VALUE, product.home) == []


@pytest.mark.parametrize("how", ["alone", "server", "test"])
def test_ctrl_c_ends_a_start_that_waits_for_a_source(request: pytest.FixtureRequest, lab: Lab, how: str) -> None:
    """INS-5, HLD-9: at once, not when the source's time is over; alone, the source ends with it."""
    with Inside("netns", request, lab) as inside:
        product, pid = inside.product, inside.product.folder / "pid"
        source = ("--from-command", "--", "sh", "-c", f"echo $$ >{pid}; exec sleep 1000")
        assert product.tidegate("secret", "set", "SLOW", "--host", "a.test", *source).returncode == 0
        served = Served(product) if how == "server" else None
        words = ("secret", "test", "SLOW") if how == "test" else ("run", "--secret", "SLOW", "--", "true")
        process = subprocess.Popen(
            product.argv(*words), cwd=product.folder, env=product.environment, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            until(lambda: pid.exists() and pid.read_text().strip())
            began = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
            _out, err = process.communicate(timeout=120)
            assert process.returncode == (130 if how == "test" else -signal.SIGINT), err
            assert "Traceback" not in err
            assert time.monotonic() - began < 45
            if served is None:
                until(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"))
        finally:
            process.kill()
            if served is not None:
                os.kill(int(pid.read_text()), signal.SIGKILL)
                served.stop()


LOOP = f"while :; do {CURL} -o /dev/null -f 2>/dev/null && echo ok || echo no; sleep 0.1; done"


@pytest.mark.parametrize("inside", ENGINES, indirect=True)
def test_a_container_goes_on_with_its_secret_behind_the_next_server(inside: Inside, lab: Lab) -> None:
    """INS-2, INS-5, HLD-8: it trusts the authority that the next server has made it, and its stand-in is still good."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    server = Served(inside.product)
    process = inside.product.start(*inside.words("--allow", "a.test", "--secret", "TOKEN", script=LOOP))
    try:
        assert process.stdout is not None
        while process.stdout.readline() != "ok\n":
            assert process.poll() is None
        server.kill()
        before = len(origin.heads)
        server = Served(inside.product)
        until(lambda: len(origin.heads) >= before + 3, "it did not come back")
        assert set(bearers(origin)) == {VALUE}
    finally:
        process.terminate()
        _out, err = process.communicate(timeout=120)
        server.stop()
    assert VALUE not in err


@pytest.mark.parametrize("inside", ENGINES, indirect=True)
def test_a_container_of_another_launcher(inside: Inside, lab: Lab) -> None:
    """HLD-4, INS-2, INS-5: what is printed gives it bundle, variables and stand-in, also behind the next server."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    product, engine = inside.product, inside.engine
    server = Served(product)
    containers: list[str] = []
    try:
        create = ("task", "create", "--allow", "a.test", "--secret", "TOKEN")
        made = product.tidegate(*create, "--hold", inside.hold, "--image", inside.image, "--print-args", inside.hold)
        task, line = made.stdout.splitlines()
        assert "dst=/etc/ssl/certs/ca-certificates.crt,readonly" in line
        assert VALUE not in made.stdout + made.stderr
        options = [*shlex.split(line), "-v", "/usr:/usr:ro"]
        containers.append(engine.begin(inside.image, options, ("sleep", "1000")))
        attached, said = _attach(inside, containers[0], task)
        assert "without" not in said
        try:
            look = ("exec", containers[0], "sh", "-c", CURL)
            assert "uthorization: Bearer ghp_" in engine.run(*look)
            server.kill()
            hear(attached.stderr, "no route")
            server = Served(product)
            hear(attached.stderr, " again")
            assert VALUE not in engine.run(*look)
            assert bearers(origin) == [VALUE] * 2
        finally:
            attached.kill()
            attached.communicate()
        bare = product.tidegate(*create, "--print-args", inside.hold)
        assert "which image it will be is not known" in bare.stderr
        other, line = bare.stdout.splitlines()
        kept = shlex.split(line)
        at = kept.index("--env-file")
        del kept[at : at + 2]
        containers.append(engine.begin(IMAGE, kept, ("sleep", "1000")))
        process, said = _attach(inside, containers[1], other)
        process.kill()
        process.communicate()
        assert said.count("was started without the files and variables") == 1, said
        assert "$TOKEN" in said
    finally:
        engine.remove(*containers)
        server.stop()


def _attach(inside: Inside, container: str, task: str) -> tuple[subprocess.Popen[str], str]:
    """Start `attach` and wait until the gate is there; what it said until then."""
    argv = inside.product.argv("attach", "--container", container, "--task", task)
    how: dict[str, Any] = {"cwd": inside.product.folder, "env": inside.product.environment, "text": True}
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)
    assert process.stderr is not None
    lines = ""
    end = time.monotonic() + 120
    while "is behind the gate" not in lines and process.poll() is None and time.monotonic() < end:
        lines += process.stderr.readline()
    assert "is behind the gate" in lines, lines
    return process, lines
