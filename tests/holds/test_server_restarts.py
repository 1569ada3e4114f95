"""Commands in containers that a server ends under, with traffic, and that go on behind the next one (HLD-8)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import IMAGE
from tests.holds.busy import Busy
from tests.holds.launcher import PATIENCE
from tests.served import Served, until
from tidegate.cli.main import main
from tidegate.holds.container import relay_image, vm_transport
from tidegate.holds.container.engine import Engine
from tidegate.runtime.outcome import WAY_GONE
from tidegate.runtime.ways import RELAY_BACK, RELAY_STOPPED, SERVER_BACK, SERVER_STOPPED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.holds.launcher import Launcher
    from tests.lab.api import Lab

STALL = 3.0  # seconds
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]

# Five at once ask for what is let through, and for what is not, as fast as they get answers.
LOAD = """\
ask() {
  while :; do
    if wget -q -O- http://a.test/ >/dev/null 2>&1; then echo ok; else echo no; fi
    wget -q -O- http://b.test/ 2>/dev/null && echo LEAK
  done
}
for one in 1 2 3 4; do ask & done
ask
"""


class Ways:
    """The server of a person, and commands behind it in one engine by one transport."""

    def __init__(self, launcher: Launcher, transport: str) -> None:
        self.launcher = launcher
        if transport == "vm":  # the default network of these engines leads nowhere; this machine's own does
            launcher.product.environment[vm_transport.VARIABLE] = "host,127.0.0.1"
        self.words = ("--hold", launcher.name, "--image", IMAGE, "--transport", transport)
        self.busy: list[Busy] = []

    def start(self, *words: str, script: str = LOAD) -> Busy:
        """Start `run` or `exec` with a shell script."""
        made = Busy(self.launcher.server.start(*words, "--", "sh", "-c", script))
        self.busy.append(made)
        return made

    def run(self, *words: str, script: str = LOAD) -> Busy:
        """Start a `run`."""
        return self.start("run", *self.words, *words, script=script)

    def exec(self, *words: str, script: str = LOAD) -> Busy:
        """Start an `exec` in a task that is made for it."""
        made = self.launcher.product.tidegate("task", "create", *words, *self.words)
        return self.start("exec", made.stdout.strip(), script=script)

    def change_everything(self) -> None:
        """The configuration says the opposite for whatever is started from now on."""
        config = self.launcher.product.home / ".config" / "tidegate"
        config.mkdir(parents=True, exist_ok=True)
        (config / "tidegate.yaml").write_text(
            "version: 1\nnetwork:\n  runtime:\n    allow: ['b.test:80']\n    deny: ['a.test']\n"
        )

    def left(self) -> str:
        """The containers that the engine has of this person's tasks."""
        runs = [path.name for path in (self.launcher.product.state / "tasks").iterdir()]
        found = [self.launcher.engine("ps", "-aq", "--filter", f"label=tidegate.run={run}") for run in runs]
        return "".join(found).strip()


@pytest.fixture(params=["enter", "relay", "vm"])
def ways(request: pytest.FixtureRequest, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ways]:
    """By each transport; `vm` is forced, as engines on this machine are in no virtual one."""
    if request.param != "enter":
        environ = launcher.environment
        if not Engine(launcher.name, environ).has_image(relay_image.default_image()):
            for name in ("DOCKER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"):
                if name in environ:
                    monkeypatch.setenv(name, environ[name])
            assert main(["relay-image", "build", "--engine", launcher.name]) == 0
    made = Ways(launcher, request.param)
    yield made
    for one in made.busy:
        one.end(signal.SIGKILL)


@pytest.fixture
def sites(lab: Lab) -> Lab:
    """Two sites of the toy internet; b.test is the one that nobody may reach."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    return lab


DOWNLOAD = """\
while :; do
  wget -q -O- http://a.test/ 2>/dev/null | { [ "$(head -c 1)" ] && echo comes; cat >/dev/null; }
  echo broken; sleep 0.1
done
"""


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_commands_go_on_behind_the_next_server_as_they_were(ways: Ways, sites: Lab, end: str) -> None:
    """Under load: no way out while there is no server, the same lists behind the next one, whatever is configured.

    A `run` and an `exec`, what the operator changed of the first included; what both say; nothing is left (HLD-8).
    """
    other = sites.origin("http", "1.2.3.5", 80, body="it is b.test\n")
    launcher = ways.launcher
    run, exec_ = ways.run("--allow", "a.test:80", "--allow", "c.test"), ways.exec("--allow", "a.test:80")
    for one in (run, exec_):
        one.goes_on("ok")
    listed = {tuple(one["command"][:1]): one["id"] for one in launcher.server.json("task", "list")}
    denied = launcher.product.tidegate("deny", "c.test", "--task", listed[("sh",)])
    assert denied.returncode == 0, denied.stderr
    getattr(launcher.server, end)()
    for one in (run, exec_):
        one.only("no")
        until(lambda one=one: "without a network until it is back" in one.said, one.said)  # type: ignore[misc]
        assert ("the server is stopping" in one.said) == (end == "stop")
    ways.change_everything()
    launcher.server = Served(launcher.product)
    for one in (run, exec_):
        until(lambda one=one: "behind its gate again" in one.said, one.said)  # type: ignore[misc]
        one.goes_on("ok")
    assert sorted(one["id"] for one in launcher.server.json("task", "list")) == sorted(listed.values())
    shown = launcher.server.json("task", "show", listed[("sh",)])
    assert len(shown["execs"]) == 1
    assert other.connections == 0
    for one in (run, exec_):
        assert one.end() == 128 + signal.SIGTERM, one.said
        assert "LEAK" not in one.lines
        assert "net: a.test:80" in one.said
    until(lambda: not ways.left(), "containers were left")


def test_what_was_open_ends_with_its_server_and_nothing_hangs(ways: Ways, sites: Lab) -> None:
    """A connection through the old gate breaks at once; the next one goes through the new gate (HLD-7, HLD-8)."""
    sites.dns.set("a.test", A=["1.2.3.6"])
    sites.origin("slow", "1.2.3.6", 80, size=100000, interval=0.01)
    busy = ways.exec("--allow", "a.test:80", script=DOWNLOAD)
    until(lambda: "comes" in busy.lines, busy)
    ways.launcher.server.kill()
    busy.goes_on("broken", 1)
    assert busy.lines.count("comes") == 1
    ways.launcher.server = Served(ways.launcher.product)
    until(lambda: busy.lines.count("comes") == 2, busy)
    assert busy.end() == 128 + signal.SIGTERM, busy.said


def test_a_task_that_is_ended_meanwhile_does_not_come_back(ways: Ways, sites: Lab) -> None:
    """Its front is told by the next server, and the command ends with 70 (HLD-7, HLD-8)."""
    del sites
    busy = ways.exec("--allow", "a.test:80")
    busy.goes_on("ok")
    launcher = ways.launcher
    (task,) = [one["id"] for one in launcher.server.json("task", "list")]
    os.kill(busy.process.pid, signal.SIGSTOP)  # it comes late
    launcher.server.kill()
    launcher.server = Served(launcher.product)
    assert launcher.product.tidegate("task", "end", task).returncode == 0
    os.kill(busy.process.pid, signal.SIGCONT)
    assert busy.process.wait(PATIENCE) == 70, busy.said
    assert f"no living task {task!r}" in busy.said or "no living task" in busy.said
    until(lambda: not ways.left(), "containers were left")


def test_a_server_that_is_stopped_is_no_way_and_nothing_hangs(ways: Ways, sites: Lab) -> None:
    """SIGSTOP: said in about a second, what is open breaks, what is new is refused; SIGCONT: as before (HLD-7)."""
    sites.dns.set("slow.test", A=["1.2.3.6"])
    sites.origin("slow", "1.2.3.6", 80, size=100000, interval=0.01)
    busy = ways.run("--allow", "a.test:80")
    idle = ways.exec("--allow", "slow.test:80", script=DOWNLOAD.replace("a.test", "slow.test"))
    busy.goes_on("ok")
    until(lambda: "comes" in idle.lines, idle)
    server = ways.launcher.server
    os.kill(server.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        for one in (busy, idle):
            until(lambda one=one: SERVER_STOPPED in one.said, one)  # type: ignore[misc]
        idle.goes_on("broken", 3)
        busy.only("no")
        time.sleep(max(0.0, began + STALL - time.monotonic()))  # so long is on record
        came = idle.lines.count("comes")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    for one in (busy, idle):
        until(lambda one=one: SERVER_BACK in one.said, one)  # type: ignore[misc]
    busy.goes_on("ok")
    until(lambda: idle.lines.count("comes") > came, idle)
    until(lambda: [one for one in server.actions() if one["type"] == "server.stalled"], "it is not on record")
    assert busy.end() == 128 + signal.SIGTERM, busy.said


def _relay(ways: Ways) -> tuple[int, int]:
    """The first process of the one relay, and the one that moves."""
    runs = [path.name for path in (ways.launcher.product.state / "tasks").iterdir()]
    found: list[str] = []
    for run in runs:
        mark = ("--filter", "label=tidegate.part=relay", "--filter", f"label=tidegate.run={run}")
        found += ways.launcher.engine("ps", "-q", "--no-trunc", *mark).split()
    (relay,) = found
    first = int(ways.launcher.engine("inspect", "--format", "{{.State.Pid}}", relay))
    return first, int(Path(f"/proc/{first}/task/{first}/children").read_text().split()[0])


@pytest.mark.parametrize("ways", ["relay"], indirect=True)
def test_a_relay_that_is_stopped_is_noticed_and_goes_on(ways: Ways, sites: Lab) -> None:
    """Each of its processes, and both: said, on record, and working again; for good is the end of the task (HLD-7)."""
    del sites
    busy = ways.run("--allow", "a.test:80")
    busy.goes_on("ok")
    first, moves = _relay(ways)
    os.kill(first, signal.SIGSTOP)  # who moves goes on
    busy.goes_on("ok")
    os.kill(first, signal.SIGCONT)
    os.kill(moves, signal.SIGSTOP)  # it is replaced
    until(lambda: RELAY_BACK in busy.said, busy)
    busy.goes_on("ok")
    assert _relay(ways)[1] != moves
    moves = _relay(ways)[1]
    before = busy.said.count(RELAY_STOPPED)  # a busy machine may stop one by itself for as long
    for pid in (first, moves):
        os.kill(pid, signal.SIGSTOP)
    until(lambda: busy.said.count(RELAY_STOPPED) > before, busy)
    for pid in (moves, first):
        os.kill(pid, signal.SIGCONT)
    until(lambda: busy.said.count(RELAY_BACK) > before, busy)
    busy.goes_on("ok")
    events = [one["type"] for one in ways.launcher.server.actions() if one["type"].startswith("way.")]
    assert events[:4] == ["way.silent", "way.back"] * 2
    for pid in _relay(ways):
        os.kill(pid, signal.SIGSTOP)
    assert busy.process.wait(PATIENCE) == 70
    until(lambda: WAY_GONE in busy.said, busy)
    until(lambda: not ways.left(), "containers were left")


TAKE = """\
until [ -e killed ]; do wget -q -O- http://a.test/ >/dev/null 2>&1 && echo ok; done
while :; do nc -l -p 3128 2>/dev/null; sleep 0.1; done &
listens() {
  for inode in $(ls -l /proc/[0-9]*/fd 2>/dev/null | grep -o 'socket:.[0-9]*' | grep -o '[0-9]*'); do
    grep ':0C38 .* 0A ' /proc/net/tcp /proc/net/tcp6 | grep -q " $inode " && return
  done
  return 1
}
until listens; do sleep 0.1; done
echo taken; sleep 1000
"""
"""Takes the port as soon as the gate that is lost has let go of it, and says so once it has."""


@pytest.mark.parametrize("ways", ["enter"], indirect=True)
def test_a_command_that_takes_its_gates_port_meanwhile_is_ended(ways: Ways, sites: Lab) -> None:
    """It harms itself alone: its gate cannot return, and it ends with 70 (HLD-7, HLD-8)."""
    del sites
    busy = ways.exec("--allow", "a.test:80", script=TAKE)
    until(lambda: "ok" in busy.lines, busy)
    ways.launcher.server.kill()
    (ways.launcher.product.folder / "killed").touch()
    until(lambda: "taken" in busy.lines, busy)
    ways.launcher.server = Served(ways.launcher.product)
    assert busy.process.wait(PATIENCE) == 70, busy
    until(lambda: "stays cut off and it is being ended" in busy.said, busy)
    until(lambda: not ways.left(), "containers were left")
