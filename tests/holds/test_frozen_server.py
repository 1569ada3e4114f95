"""A server that is stopped and not ended (SIGSTOP), seen by commands in the holds that need no engine (HLD-7, B95)."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.holds.busy import Busy
from tests.product import PYTHON, Product
from tests.served import Served, until
from tidegate.runtime.ways import SERVER_BACK, SERVER_STOPPED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

# What needs the gate is tried without a limit of time, so that it would hang where it is not refused: the proxy and a
# download that is under way; where connections are captured, one of these and a look-up. `own` is the task's own
# server. A line says what became of each.
INSIDE = """
import errno, os, socket, sys, threading, time
lock = threading.Lock()
def say(word):
    with lock:
        os.write(1, (word + '\\n').encode())
def answer(wire):
    wire.sendall(b'GET http://a.test/ HTTP/1.1\\r\\nHost: a.test\\r\\nConnection: close\\r\\n\\r\\n')
    data = b''
    while part := wire.recv(65536):
        data += part
    return b' 200 ' in data
proxy = os.environ['HTTP_PROXY'].rpartition('@')[2].removeprefix('http://').rstrip('/').rpartition(':')
proxy = proxy[0], int(proxy[2])
def asking(name, place):
    while True:
        try:
            with socket.create_connection(place()) as wire:
                say(name + (' ok' if answer(wire) else ' odd'))
        except OSError:
            say(name + ' no')
            time.sleep(0.05)
def download():
    while True:
        try:
            with socket.create_connection(proxy) as wire:
                wire.sendall(b'GET http://slow.test/ HTTP/1.1\\r\\nHost: slow.test\\r\\n\\r\\n')
                if wire.recv(65536):
                    say('download comes')
                while wire.recv(65536):
                    pass
        except OSError:
            pass
        say('download broken')
        time.sleep(0.05)
def own(listener):
    kept = socket.create_connection(listener.getsockname())
    there = listener.accept()[0]
    while True:
        kept.sendall(b'x')
        with socket.create_connection(listener.getsockname()) as again:
            listener.accept()[0].close()
        say('own ok' if there.recv(1) == b'x' else 'own no')
        time.sleep(0.05)
parts = [(asking, 'proxy', lambda: proxy), (download,)]
if 'captured' in sys.argv:
    parts.append((asking, 'captured', lambda: ('a.test', 80)))
if 'serves' in sys.argv:
    parts.append((own, socket.create_server(('127.0.0.1', 0))))
for act, *more in parts:
    threading.Thread(target=act, args=more).start()
"""


class World:
    """A person, the server, and a command that is busy with all that its hold has."""

    def __init__(self, root: Path, hold: str, *, user: bool) -> None:
        self.product = Product(root, user=user)
        self.server = Served(self.product)
        self.parts = ["proxy"] if hold == "landlock" else ["proxy", "captured"]
        self.serves = hold != "landlock"
        words = ("run", "--hold", hold, "--allow", "a.test:80", "--allow", "slow.test:80", "--")
        more = (*self.parts[1:], *(("serves",) if self.serves else ()))
        python = "/usr/bin/python3" if hold == "uid" else PYTHON  # a folder of root's is closed to a user of the range
        self.busy = Busy(self.server.start(*words, python, "-I", "-c", INSIDE, *more))

    def all_go_on(self) -> None:
        """Every part gets answers."""
        for part in self.parts:
            self.busy.goes_on(f"{part} ok", 3)

    def serves_itself(self) -> None:
        """The task's own server answers."""
        if self.serves:
            self.busy.goes_on("own ok", 3)

    def close(self) -> None:
        """End both."""
        self.busy.end(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.server.pid, signal.SIGCONT)
        self.server.stop()


@pytest.fixture(params=["netns", "netns-root", "uid", "landlock", "landlock-root"])
def world(request: pytest.FixtureRequest, lab: Lab) -> Iterator[World]:
    """Each hold, by an ordinary user and by root where both can."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("slow.test", A=["1.2.3.6"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    lab.origin("slow", "1.2.3.6", 80, size=100000, interval=0.01)
    hold, _, root = request.param.partition("-")
    if os.geteuid() != 0 and (root or hold == "uid"):
        pytest.skip("only root has this")
    with tempfile.TemporaryDirectory(prefix="tidegate-frozen-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        made = World(Path(folder), hold, user=not root and hold != "uid")
        with contextlib.closing(made):
            yield made


def test_a_server_that_is_stopped_is_no_way_and_nothing_hangs(world: World) -> None:
    """Said once; what is new is refused and what is open breaks; own servers stay; SIGCONT: as before (HLD-7, B95)."""
    busy = world.busy
    world.all_go_on()
    until(lambda: "download comes" in busy.lines, busy)
    world.serves_itself()
    os.kill(world.server.pid, signal.SIGSTOP)
    try:
        until(lambda: SERVER_STOPPED in busy.said, busy)
        for part in world.parts:
            busy.goes_on(f"{part} no", 5)
        busy.goes_on("download broken", 3)
        world.serves_itself()
        refused = len(busy.lines)
        for part in world.parts:
            busy.goes_on(f"{part} no", 3)
        assert not [line for line in busy.lines[refused:] if line.endswith((" ok", " comes")) and "own" not in line]
        came = busy.lines.count("download comes")
    finally:
        os.kill(world.server.pid, signal.SIGCONT)
    until(lambda: SERVER_BACK in busy.said, busy)
    world.all_go_on()
    world.serves_itself()
    until(lambda: busy.lines.count("download comes") > came, busy)
    assert (busy.said.count(SERVER_STOPPED), busy.said.count(SERVER_BACK)) == (1, 1)
    assert busy.end() == 128 + signal.SIGTERM, busy.said


def test_a_server_that_ends_while_it_is_stopped_ends_the_command(world: World) -> None:
    """SIGKILL after SIGSTOP: 70, as for one that was killed (HLD-7, HLD-16)."""
    world.all_go_on()
    os.kill(world.server.pid, signal.SIGSTOP)
    until(lambda: SERVER_STOPPED in world.busy.said, world.busy)
    world.server.kill()
    assert world.busy.process.wait(60) == 70, world.busy.said
