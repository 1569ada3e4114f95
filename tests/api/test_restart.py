"""A server that ends or is killed with everything alive, a front that is killed, and both (HLD-7, HLD-8)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.product import Product
from tests.served import PATIENCE, Served, until
from tidegate.runtime.server_link import SERVER_GONE, SERVER_GONE_LATE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab

ASK = ("--ask-for", "*.ask.test:80")


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab, as root and as an ordinary user."""
    lab.origin("http", "1.2.3.4", 80, body="hello\n")
    lab.dns.set("*.ask.test", A=["1.2.3.4"])
    return Product(tmp_path, user=request.param == "user")


class World:
    """A server with a `run` that publishes a port, a created task with an `exec`, and a curl with an open question."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.server = Served(product)
        self.port = _free_port()
        self.marks = [f"86399.{os.getpid()}{number}" for number in range(2)]
        made = self.server.tidegate("task", "create", "--name", "keeps", *ASK)
        assert made.returncode == 0, made.stderr
        self.run = self._sleeper("run", "--publish", str(self.port), mark=self.marks[0])
        self.exec = self._sleeper("exec", "keeps", mark=self.marks[1])
        assert self.server.tidegate("questions").returncode == 0  # somebody is there from now on
        self.curl = self.server.start("run", "--wait", *ASK, "--", "curl", "-sS", "-m", "60", "http://n.ask.test/")
        until(lambda: self.server.tidegate("questions").stdout, "no question was opened")
        assert len(self.server.json("task", "list")) == 3

    def _sleeper(self, *words: str, mark: str) -> subprocess.Popen[str]:
        task = self.server.start(*words, "--", "sh", "-c", f"echo up; exec sleep {mark}")
        assert task.stdout is not None
        assert task.stdout.readline() == "up\n"
        return task

    def tasks(self) -> tuple[subprocess.Popen[str], ...]:
        return self.run, self.exec, self.curl

    def close(self) -> None:
        for task in self.tasks():
            task.kill()
            task.communicate(timeout=PATIENCE)
        self.server.stop()


@pytest.fixture
def world(product: Product) -> Iterator[World]:
    """Everything alive."""
    found = World(product)
    yield found
    found.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _lives(mark: str) -> bool:
    """Whether the command with this mark still runs, in whatever namespace."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            return True
    return False


def _begins_anew(world: World, ended: int) -> None:
    """A second server has what is true now, and all that worked before works."""
    with Served(world.product) as again:
        listed = again.json("task", "list", "--all")
        assert [(one["name"], one["state"]) for one in listed if one["state"] == "living"] == [("keeps", "living")]
        assert len([one for one in listed if one["state"] == "ended"]) == ended
        assert all(one["execs"] == [] for one in listed)
        assert again.tidegate("questions").stdout == ""
        assert {path.name for path in (again.state / "run").iterdir()} == {
            "lock", "port", "pulse", "server.json", "front.sock", "api.sock",
        }  # fmt: skip
        done = again.tidegate("exec", "keeps", "--", "echo", "on")
        assert (done.returncode, done.stdout) == (0, "on\n"), done.stderr
        done = again.tidegate("run", "--publish", str(world.port), "--", "true")
        assert done.returncode == 0, done.stderr
    assert again.tidegate("log", "verify").returncode == 0
    assert {path.name for path in (again.state / "run").iterdir()} == {"lock", "port"}


def _nothing_runs(world: World) -> bool:
    return not any(map(_lives, world.marks)) and _is_free(world.port)


def test_killed_with_everything_alive(world: World) -> None:
    """HLD-7, HLD-8: each front says that the server is gone and exits 70; ports are free; the list is right after."""
    assert all(map(_lives, world.marks))
    assert not _is_free(world.port)
    world.server.kill()
    for task in world.tasks():
        _out, err = task.communicate(timeout=PATIENCE)
        assert task.returncode == 70, err
        assert any(line in err for line in (SERVER_GONE, SERVER_GONE_LATE)), err
    until(lambda: _nothing_runs(world), "something was left")
    _begins_anew(world, ended=2)


def test_ended_with_everything_alive(world: World) -> None:
    """HLD-8, ASK-3: the same with SIGTERM, and each is told why; what waited for an answer is refused."""
    os.kill(world.server.pid, signal.SIGTERM)
    for task in (world.run, world.exec):
        _out, err = task.communicate(timeout=PATIENCE)
        assert task.returncode == 70, err
        assert "the server is stopping" in err
    # The refusal ends curl by itself, with the status that it has for that, or the server's end does.
    out, err = world.curl.communicate(timeout=PATIENCE)
    assert (world.curl.returncode, "the server is stopping" in err) == (70, True) or "is ending" in out, (out, err)
    assert SERVER_GONE_LATE not in err
    world.server.process.communicate(timeout=PATIENCE)
    assert world.server.process.returncode == 0
    until(lambda: _nothing_runs(world), "something was left")
    _begins_anew(world, ended=2)


def test_a_front_that_is_killed_ends_its_command_only(world: World) -> None:
    """HLD-8: its task ends with it, its port is free again, and the others go on behind the same server."""
    world.run.kill()
    world.run.communicate(timeout=PATIENCE)
    until(lambda: not _lives(world.marks[0]) and _is_free(world.port), "the command was left")
    until(lambda: len(world.server.json("task", "list")) == 2, "the task is still listed")
    world.exec.kill()
    world.exec.communicate(timeout=PATIENCE)
    until(lambda: not _lives(world.marks[1]), "the command was left")
    until(
        lambda: [one["execs"] for one in world.server.json("task", "list") if one["name"] == "keeps"] == [[]],
        "the command is still listed",
    )
    (number,) = {line.split()[0] for line in world.server.tidegate("questions").stdout.splitlines()}
    assert world.server.tidegate("answer", number, "allow").returncode == 0
    out, err = world.curl.communicate(timeout=PATIENCE)
    assert (world.curl.returncode, out) == (0, "hello\n"), err
    world.server.stop()
    _begins_anew(world, ended=2)


def test_server_and_fronts_killed_at_once(world: World) -> None:
    """HLD-8: with nobody left to clean up, the kernel ends the commands, and the next start has it right."""
    for pid in (world.server.pid, *(task.pid for task in world.tasks())):
        os.kill(pid, signal.SIGKILL)
    for task in (*world.tasks(), world.server.process):
        task.communicate(timeout=PATIENCE)
    until(lambda: _nothing_runs(world), "something was left")
    _begins_anew(world, ended=2)
