"""tidegate.runtime.gate_process: the real gate in its real process, asked over its real channel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.api import Lab, raw
from tidegate.gate.identity import Stranger
from tidegate.holds.inside import TaskSockets
from tidegate.model.errors import StartError
from tidegate.model.reason import Reason
from tidegate.policy.layers import command_line, join
from tidegate.policy.snapshot import to_plain
from tidegate.runtime.channel import ChannelClosedError, receive
from tidegate.runtime.gate_link import GateLink
from tidegate.runtime.gate_process import stranger_line

REQUEST = b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n"


class Served:
    """A gate's process that serves a listener of this process's own namespace."""

    def __init__(self, log: Path, *, allow: tuple[str, ...] = (), profile: str | None = "closed", **order: Any) -> None:
        self.log = log
        self.warned: list[str] = []
        self.link = GateLink(self.warned.append)
        policy = join(command_line(allow=allow, profile=profile))
        self.order = {
            "task": "t1",
            "phase": "runtime",
            "policy": to_plain(policy),
            "log": str(log),
            "rotate": True,
            "environment": {},
            "protected_ports": (),
            "own_names": (),
            "met": {"runtime": (), "install": ()},
            "publish": (),
            "folder": "/",
            "command": ("true",),
            "hold": "netns",
            "state": str(log.parent / "state"),
        } | order
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()

    def start(self, *, begin: bool = True) -> Served:
        self.link.configure(self.order)
        self.link.deliver(TaskSockets(("proxy",), (self.listener.fileno(),)))
        self.link.confirm()
        self.listener.close()
        if begin:
            self.link.begin(0.0)
        return self

    def ask(self, target: str) -> bytes:
        host = target.encode()
        return raw(self.address, REQUEST % (host, host))

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_bytes().splitlines()]


@pytest.mark.usefixtures("isolated")
def test_the_gate_refuses_writes_it_down_and_counts_it(tmp_path: Path) -> None:
    """JRN-1, GAT-7: one refusal is an answer, a line in the file and a row at the end."""
    served = Served(tmp_path / "log").start()
    assert served.ask("example.com:443").startswith(b"HTTP/1.1 403 ")
    finished = served.link.finish()
    assert finished is not None
    (row,), more = finished
    assert row[:2] == ("example.com", 443)
    assert (row[3], row[9], row[10], more) == ("refused", "runtime", 1, 0)
    (line,) = served.lines()
    assert (line["host"], line["reason"], line["task"]) == ("example.com", "no-rule", "t1")
    assert served.link.pid == 0


def test_a_tunnel_through_the_process_carries_bytes(tmp_path: Path, lab: Lab) -> None:
    """GAT-1: the whole way: decided by name, resolved, dialled, moved, recorded with its bytes."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("echo", "1.2.3.4", 8443)
    served = Served(tmp_path / "log", allow=("a.test:8443",)).start()
    with socket.create_connection(served.address, 10) as client:
        client.sendall(REQUEST % (b"a.test:8443", b"a.test:8443"))
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert b"GET / " in client.recv(4096)
    deadline = time.monotonic() + 60
    while not served.lines() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert served.link.finish() is not None
    (line,) = served.lines()
    assert (line["how"], line["address"], line["verdict"]) == ("tunneled", "1.2.3.4", "allow")
    assert line["bytes_up"] > 0
    assert line["bytes_down"] > 0


@pytest.mark.usefixtures("isolated")
def test_what_came_before_the_task_is_not_on_its_record(tmp_path: Path) -> None:
    """HLD-11, JRN-1: the self-test's own refusal is not the task's; what the task did while we said so still is."""
    served = Served(tmp_path / "log").start(begin=False)
    assert served.ask("selftest.test:80").startswith(b"HTTP/1.1 403 ")
    begun = time.time()  # noqa: TID251  the same clock as the gate's
    assert served.ask("task.test:80").startswith(b"HTTP/1.1 403 ")
    served.link.begin(begun)
    finished = served.link.finish()
    assert finished is not None
    assert [row[0] for row in finished[0]] == ["task.test"]
    assert [line["host"] for line in served.lines()] == ["task.test"]


@pytest.mark.usefixtures("isolated")
def test_the_next_hold_is_served_in_its_phase(tmp_path: Path) -> None:
    """POL-7: what the set-up's hold left open is cut, its listener gone; each phase is on the record."""
    served = Served(tmp_path / "log", phase="install").start()
    with socket.create_connection(served.address, 10) as waiting:
        waiting.sendall(b"CONNECT ")
        assert served.ask("setup.test:80").startswith(b"HTTP/1.1 403 ")
        listener = socket.create_server(("127.0.0.1", 0))
        served.link.follow("runtime", TaskSockets(("proxy",), (listener.fileno(),)))
        served.link.confirm_next()
        while waiting.recv(4096):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(served.address, 10)
    served.address = listener.getsockname()
    listener.close()
    assert served.ask("selftest.test:80").startswith(b"HTTP/1.1 403 ")
    begun = time.time()  # noqa: TID251  the same clock as the gate's
    assert served.ask("task.test:80").startswith(b"HTTP/1.1 403 ")
    served.link.begin(begun)
    finished = served.link.finish()
    assert finished is not None
    assert [(row[0], row[9]) for row in finished[0]] == [("setup.test", "install"), ("task.test", "runtime")]
    assert [(line["host"], line["phase"]) for line in served.lines()] == [
        ("setup.test", "install"),
        ("task.test", "runtime"),
    ]


@pytest.mark.usefixtures("isolated")
def test_a_next_hold_that_cannot_be_served_is_a_start_error(tmp_path: Path) -> None:
    """HLD-7: the front that waits for an answer gets one."""
    served = Served(tmp_path / "log", phase="install").start()
    reading, writing = os.pipe()

    def follow() -> None:
        served.link.follow("runtime", TaskSockets(("proxy",), (reading,)))  # it may hear of it here already
        served.link.confirm_next()

    with pytest.raises(StartError) as raised:
        follow()
    assert raised.value.exit_status == 78
    os.close(reading)
    os.close(writing)
    served.link.close()


@pytest.mark.usefixtures("isolated")
def test_a_journal_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    """HLD-7: exit 78 and the fix; the gate's process is gone afterwards."""
    served = Served(tmp_path / "no" / "log")
    with pytest.raises(StartError, match="cannot be opened") as raised:
        served.start()
    assert "--log" in raised.value.fix
    served.link.close()
    served.listener.close()


@pytest.mark.usefixtures("isolated")
def test_the_gate_dies_with_the_front(tmp_path: Path) -> None:
    """HLD-8: when the other end of the channel is gone, so is the gate, and its listener refuses at once."""
    served = Served(tmp_path / "log").start()
    pid = served.link.pid
    served.link.channel.close()
    assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(served.address, 5)


@pytest.mark.usefixtures("isolated")
def test_a_killed_gate_is_an_end_of_file_and_a_refused_connection(tmp_path: Path) -> None:
    """HLD-7, B95: kill -9 is seen at once, and the task's next connection is refused, not left hanging."""
    served = Served(tmp_path / "log").start()
    os.kill(served.link.pid, signal.SIGKILL)
    with pytest.raises(ChannelClosedError):
        receive(served.link.channel)
    os.waitid(os.P_PID, served.link.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(served.address, 5)
    assert served.link.finish() is None
    assert served.link.left_open == ()


@pytest.mark.usefixtures("isolated")
def test_no_key_on_the_terminal_reaches_the_gate(tmp_path: Path) -> None:
    """HLD-9: Ctrl-C, Ctrl-Z, Ctrl-backslash and a closed window are the command's, not the gate's."""
    served = Served(tmp_path / "log").start()
    assert os.getsid(served.link.pid) == served.link.pid
    for number in (signal.SIGINT, signal.SIGTSTP, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        os.kill(served.link.pid, number)
    assert served.ask("example.com:443").startswith(b"HTTP/1.1 403 ")
    assert served.link.finish() is not None


@pytest.mark.usefixtures("isolated")
def test_the_gate_holds_no_stream_of_the_front(tmp_path: Path) -> None:
    """HLD-13: no standard stream and no descriptor of the front stays open in the gate, so ends of file arrive."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    served = Served(tmp_path / "log").start()
    os.close(write)
    assert os.read(read, 1) == b""
    os.close(read)
    try:
        if os.geteuid() == 0:  # nobody else sees into a gate, its own user's other programs included
            streams = [os.readlink(f"/proc/{served.link.pid}/fd/{fd}") for fd in (0, 1, 2)]
            assert streams == ["/dev/null"] * 3
    finally:
        served.link.close()


_IDLE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import _socket
from tidegate.holds.inside import TaskSockets
from tidegate.policy.layers import join
from tidegate.policy.snapshot import to_plain
from tidegate.runtime.gate_link import GateLink
link = GateLink(print)
link.configure({"task": "t", "phase": "runtime", "policy": to_plain(join()), "log": sys.argv[2], "rotate": True,
                "environment": {}, "protected_ports": (), "own_names": (), "publish": (), "met": {"runtime": ()}})
listener = _socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
link.deliver(TaskSockets(("proxy",), (listener.fileno(),)))
link.confirm()
status = open(f"/proc/{link.pid}/status").read()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))
link.close()
"""


def test_an_idle_gate_is_small(tmp_path: Path) -> None:
    """GAT-11: a gate forked from a front as `run` has it takes at most 15 MB; YAML and click are not in it."""
    source = str(Path(__file__).resolve().parents[3] / "src")
    argv = [sys.executable, "-I", "-S", "-c", _IDLE, source, str(tmp_path / "log")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 15 * 1024


def test_a_stranger_is_one_line() -> None:
    """GAT-2: who came to the gate and is not the task, and how often; one whom the kernel does not name, too."""
    line = stranger_line(Stranger(Reason.FOREIGN_PEER, 1000, "t1"), 1)
    assert line.startswith("a connection of uid 1000 to this task's gate was refused: it comes from outside")
    line = stranger_line(Stranger(Reason.UNKNOWN_PEER, -1, "t1"), 3)
    assert line.startswith("a connection to this task's gate was refused: ")
    assert line.endswith("leaves at once ×3")
