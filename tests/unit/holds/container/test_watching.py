"""watching.py: who answers for the connections of a container (tests/holds/test_watched.py tries it in real ones)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds.container import starter, watching
from tidegate.holds.container.engine import DOCKER, PODMAN, Engine, Facts

if TYPE_CHECKING:
    from pathlib import Path


class Told(Engine):
    """An engine that says this of itself."""

    def __init__(self, name: str, *, rootless: bool = False, in_vm: bool = False) -> None:
        super().__init__(name, {})
        self._facts = Facts("1", rootless=rootless, in_vm=in_vm, system="")


@pytest.mark.parametrize(
    ("user", "rootless", "in_vm", "why"),
    [
        (0, False, False, ""),
        (1000, True, False, ""),
        (1000, False, False, "docker is root's, and you are not"),
        (0, False, True, "docker runs in a virtual machine"),
    ],
)
def test_it_says_where_nobody_can_watch(
    user: int, rootless: bool, in_vm: bool, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's engine for root, a rootless one for its user; else why not, which the person is told (HLD-7, HLD-14)."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert watching.why_not(Told(DOCKER, rootless=rootless, in_vm=in_vm)) == why


def test_the_container_starts_with_the_starter(tmp_path: Path) -> None:
    """It runs the starter, which runs an init, which runs the command; both are mounted and cannot be written."""
    made = watching.Watching(Told(PODMAN), str(tmp_path), [])
    try:
        start, init, *rest = made.command(("a", "b"))
        folder = os.path.dirname(start)
        assert (start, init, rest) == (f"{folder}/start", f"{folder}/init", ["--", "a", "b"])
        assert f"dst={folder},readonly" in made.mounts[1]
        assert f"dst={init},readonly" in made.mounts[3]
        assert [one.endswith(",readonly") for one in made.mounts] == [False, True, False, True]
        assert sorted(os.listdir(made.folder)) == ["init", "socket", "start"]
        assert (tmp_path / "start" / "start").read_bytes() == starter.program(folder)
        assert not made.has_begun()
    finally:
        made.close()
        made.close()


WATCHED = """
    import signal, subprocess
    from tidegate.holds.container import starter, watching
    from tidegate.holds.container.engine import Engine, Facts
    place = sys.argv[1]
    os.chdir(place)
    starter.place = lambda: place + '/start'
    engine = Engine('docker', {})
    engine._facts = Facts('1', rootless=False, in_vm=False, system='')
    made = watching.Watching(engine, place, [place + '/shared'])
    watcher = made.begin()
"""
SERVES = """
    import socket
    def serve(path):
        wire = socket.socket(socket.AF_UNIX)
        wire.bind(path)
        wire.listen()
        return wire
    os.chdir(sys.argv[1])
    os.mkdir('shared')
    late, shared = serve('late'), serve('shared/late')
"""
TASK = """
import errno, os, socket
def connect(path):
    with socket.socket(socket.AF_UNIX) as wire:
        return errno.errorcode.get(wire.connect_ex(path), 'done')
server = socket.socket(socket.AF_UNIX)
server.bind('own')
server.listen()
tcp = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(tcp.getsockname())
print(connect('own'), connect('late'), connect('shared/late'), connect('shared/../late'), client.getpeername()[0])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the watcher of root's engine is root's")
def test_it_answers_as_the_watcher_of_the_other_holds(tmp_path: Path) -> None:
    """Its own sockets and shared ones pass, others are refused; it ends with the last process (HLD-14)."""
    code = f"""{SERVES}{WATCHED}
    task = {TASK!r}
    print(made.has_begun())
    done = subprocess.run([place + '/start/start', sys.executable, '-I', '-c', task], capture_output=True, text=True)
    print(done.stdout, done.stderr, done.returncode, made.has_begun())
    print(os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1]))
    """
    said = apart(code, str(tmp_path)).split()
    assert said == ["False", "done", "ECONNREFUSED", "done", "ECONNREFUSED", "127.0.0.1", "0", "True", "0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the watcher of root's engine is root's")
def test_without_the_watcher_nothing_runs(tmp_path: Path) -> None:
    """It is gone before the container starts: the starter ends, and that it never began is known (HLD-7)."""
    code = f"""{WATCHED}
    os.kill(watcher, signal.SIGKILL)
    os.waitpid(watcher, 0)
    done = subprocess.run([place + '/start/start', '/bin/echo', 'ran'], capture_output=True, text=True)
    print(repr(done.stdout), done.returncode, made.has_begun())
    """
    assert apart(code, str(tmp_path)).split() == ["''", "125", "False"]
