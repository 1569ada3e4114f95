"""tidegate.holds.landlock_pause: connections of a process that came from another, ended from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.served import until
from tidegate.holds.landlock_pause import Pause

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first process of a task, and a child of a child of it that has one connection to each port: what is asked for
# without waiting, what is waited for in a call, and one to another port.
TASK = """
import errno, os, select, socket, sys, threading
def ended(name, wire):
    try:
        said = 'end' if wire.recv(1) == b'' else 'data'
    except OSError as error:
        said = errno.errorcode[error.errno]
    print(name, said, flush=True)
if os.fork() == 0 and os.fork() == 0:
    gate, other = int(sys.argv[1]), int(sys.argv[2])
    polled, read, apart = (socket.create_connection(('127.0.0.1', port)) for port in (gate, gate, other))
    def poll():
        select.select([polled], [], [])
        ended('polled', polled)
    for act, *more in ((poll,), (ended, 'read', read), (ended, 'apart', apart)):
        threading.Thread(target=act, args=more, daemon=True).start()
    print('up', flush=True)
sys.stdin.read()
"""


@pytest.fixture
def gates() -> Iterator[list[socket.socket]]:
    """A gate, and a server that is none: both take connections and answer none."""
    made = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield made
    for one in made:
        one.close()


def _port(wire: socket.socket) -> int:
    port: int = wire.getsockname()[1]
    return port


def test_what_leads_to_the_gate_is_ended_and_nothing_else(gates: list[socket.socket]) -> None:
    """HLD-7: broken, or at an end where a call waits; others of the task and of other processes are left alone."""
    argv = [sys.executable, "-I", "-c", TASK, *(str(_port(one)) for one in gates)]
    task = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert task.stdout is not None
    assert task.stdin is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(iter(task.stdout.readline, "")), daemon=True)  # type: ignore[union-attr]
    reader.start()
    foreign = socket.create_connection(("127.0.0.1", _port(gates[0])))
    until(lambda: lines == ["up\n"])
    pause = Pause(_port(gates[0]))
    try:
        assert not pause.is_shut()
        assert pause.shut(task.pid, shut=True)
        assert pause.is_shut()
        until(lambda: len(lines) == 3, lines)
        assert sorted(line.split()[0] for line in lines[1:]) == ["polled", "read"]
        assert set(" ".join(lines[1:]).split()) <= {"polled", "read", "ECONNRESET", "EPIPE", "end"}
        foreign.settimeout(0.2)
        with pytest.raises(TimeoutError):
            foreign.recv(1)
        assert pause.shut(task.pid, shut=False)
        assert not pause.is_shut()
    finally:
        pause.close()
        foreign.close()
        task.stdin.close()
        task.kill()
        task.wait()
        reader.join(30)
        task.stdout.close()
    assert len(lines) == 3


def test_the_byte_is_seen_by_who_was_forked_meanwhile() -> None:
    """HLD-2: the watcher is such a child, and asks before each connection."""
    pause = Pause(1)
    asked, told = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for _ in range(2):
                os.read(asked[0], 1)
                os.write(told[1], b"1" if pause.is_shut() else b"0")
        finally:
            os._exit(0)
    try:
        os.write(asked[1], b".")
        assert os.read(told[0], 1) == b"0"
        pause.shut(child, shut=True)
        os.write(asked[1], b".")
        assert os.read(told[0], 1) == b"1"
    finally:
        os.waitpid(child, 0)
        pause.close()
        for descriptor in (*asked, *told):
            os.close(descriptor)
