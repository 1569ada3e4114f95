"""Tasks on this machine's own network: each has its own gate, no other's, and what they try around it is on record."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.product import PYTHON, Product
from tests.served import Served, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="the hold uid is root's: nftables and other users' ids"),
]

HELD = ("run", "--hold", "uid", "--share", f"{sys.base_prefix}:ro")
# Says what each listening port of this machine's loopback answers to a CONNECT, once it is told to.
ASKING = """
import json, socket, sys
print("ready", flush=True)
sys.stdin.readline()
ports = set()
for table in ("/proc/net/tcp",):
    for line in open(table).read().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A":
            ports.add(int(words[1].rpartition(":")[2], 16))
said = {}
for port in sorted(ports | {3128, *map(int, sys.argv[1:])}):
    wire = socket.socket()
    wire.settimeout(5)
    try:
        wire.connect(("127.0.0.1", port))
        wire.sendall(b"CONNECT 1.2.3.4:443 HTTP/1.1\\r\\nHost: 1.2.3.4:443\\r\\n\\r\\n")
        said[port] = wire.recv(12).decode("latin-1")
    except OSError as error:
        said[port] = type(error).__name__
    wire.close()
print(json.dumps(said), flush=True)
sys.stdin.readline()
"""


class Asker:
    """A `run` under the hold whose command asks every port of the loopback when it is told to."""

    def __init__(self, server: Served, *words: str) -> None:
        self.process = server.start(*HELD, *words, "--", PYTHON, "-c", ASKING, stdin=subprocess.PIPE)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said == "ready\n", (said, self.process.communicate(timeout=120))

    def ask(self) -> dict[int, str]:
        """What each port said."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return {int(port): said for port, said in json.loads(self.process.stdout.readline()).items()}

    def end(self) -> str:
        """Let it end; what stands on its standard error."""
        out, err = self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0, (out, err)
        return err


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A server of root's."""
    with Served(Product(tmp_path, user=False)) as running:
        yield running


def listening() -> set[int]:
    """The ports that are listened on, on this machine's loopback."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        words = [line.split() for line in table.read().splitlines()[1:]]
    return {int(one[1].rpartition(":")[2], 16) for one in words if one[3] == "0A"}


def test_a_task_cannot_use_anothers_gate(lab: Lab, server: Served) -> None:
    """GAT-2, HLD-3: two tasks see each other's ports in /proc, and reach their own gate only; nor does root use one."""
    lab.origin("raw", "1.2.3.4", 443)
    before = listening()
    allowed = Asker(server, "--allow", "1.2.3.4:443")
    hers = listening() - before
    denied = Asker(server, "--profile", "closed")
    his = listening() - before - hers
    assert hers
    assert his
    answers = denied.ask()
    assert answers[3128] == "HTTP/1.1 403"
    assert {answers[port] for port in hers} == {"ConnectionRefusedError"}, answers
    answers = allowed.ask()
    assert answers[3128] == "HTTP/1.1 200"
    assert {answers[port] for port in his} == {"ConnectionRefusedError"}, answers
    for port in hers:
        with socket.create_connection(("127.0.0.1", port), 10) as root:
            root.sendall(b"CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: 1.2.3.4:443\r\n\r\n")
            try:
                assert root.recv(12) == b""
            except ConnectionResetError:
                continue
    refused = until(lambda: [one for one in server.actions() if one["type"] == "peer.refused"])
    assert {one["uid"] for one in refused} == {0}
    denied.end()
    allowed.end()


def test_what_goes_around_the_gate_is_on_record(lab: Lab, server: Served) -> None:
    """JRN-3: address and port of each direct attempt, look-ups once, in the own task's journal and the action log."""
    lab.origin("raw", "1.2.3.4", 443)
    code = """
import socket
for _ in range(3):
    with socket.socket() as wire:
        print(wire.connect_ex(("1.2.3.4", 443)), flush=True)
with socket.socket(type=socket.SOCK_DGRAM) as wire:
    for place in (("1.2.3.4", 8443), ("9.9.9.9", 53), ("8.8.8.8", 53)):
        try:
            wire.sendto(b"x", place)
        except OSError:
            pass
"""
    done = server.tidegate(*HELD, "--capture", "off", "--", PYTHON, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "0" not in done.stdout.split(), "a connection went around the gate"

    def blocked() -> list[dict[str, Any]]:
        return [one for one in server.actions() if one["type"] == "net.blocked"]

    hosts = [one["host"] for one in blocked()]
    assert sorted(set(hosts)) == ["1.2.3.4:443", "1.2.3.4:8443", "DNS lookups (port 53)"]
    assert hosts.count("DNS lookups (port 53)") == 1
    direct = [one for one in blocked() if one["host"] == "1.2.3.4:443"]
    assert {one["reason"] for one in direct} == {"around-the-gate"}
    assert sum(one.get("count", 1) for one in direct) == 3
    assert "net: 1.2.3.4:443 · refused" in done.stderr
    assert "net: DNS lookups (port 53) · refused" in done.stderr


MANY = """
import socket, sys
wires, said = [], []
for _ in range(258):
    wire = socket.create_connection(("127.0.0.1", 3128), 20)
    wires.append(wire)
    try:
        wire.sendall(b"CONNECT 1.2.3.4:443 HTTP/1.1\\r\\nHost: 1.2.3.4:443\\r\\n\\r\\n")
        said.append(wire.recv(12).decode("latin-1"))
    except OSError:
        said.append("")
print(said.count("HTTP/1.1 200"), said.count(""), flush=True)
sys.stdin.readline()
"""


def test_one_tasks_connections_take_none_from_another(lab: Lab, server: Served) -> None:
    """GAT-6: the 257th of one task is dropped and recorded, on the way that another task's comes in by, unharmed."""
    lab.origin("raw", "1.2.3.4", 443)
    other = Asker(server, "--allow", "1.2.3.4:443")
    many = server.start(*HELD, "--allow", "1.2.3.4:443", "--", PYTHON, "-c", MANY, stdin=subprocess.PIPE)
    assert many.stdout is not None
    assert many.stdout.readline() == "256 2\n"
    assert other.ask()[3128] == "HTTP/1.1 200"
    _out, err = many.communicate("\n", timeout=60)
    other.end()
    assert "too-many-connections" in json.dumps(server.actions()), err


def test_what_is_captured_is_the_right_tasks(lab: Lab, server: Served) -> None:
    """GAT-2, HLD-6: two tasks connect to the same address at once, without a proxy; each meets its own rules."""
    lab.origin("http", "1.2.3.4", 80)
    code = """
import socket
for _ in range(20):
    with socket.create_connection(("1.2.3.4", 80), 10) as wire:
        wire.sendall(b"GET / HTTP/1.1\\r\\nHost: 1.2.3.4\\r\\nConnection: close\\r\\n\\r\\n")
        print(wire.recv(12).decode("latin-1"))
"""
    words = ("--capture", "on")
    hers = server.start(*HELD, *words, "--allow", "1.2.3.4:80", "--", PYTHON, "-c", code)
    his = server.start(*HELD, *words, "--profile", "closed", "--", PYTHON, "-c", code)
    out, err = hers.communicate(timeout=60)
    assert set(out.splitlines()) == {"HTTP/1.1 200"}, (out, err)
    assert len(out.splitlines()) == 20
    out, err = his.communicate(timeout=60)
    assert set(out.splitlines()) == {"HTTP/1.1 403"}, (out, err)
    assert not [one for one in server.actions() if one["type"] == "peer.refused"]


ENDS = ("src", "dst", "sport", "dport")


def test_connections_that_have_ended_leave_nothing_to_all_of_the_machine(lab: Lab, server: Served) -> None:
    """HLD-3: connection tracking is the machine's; a task that connects in a loop does not fill it for everybody."""
    lab.origin("raw", "1.2.3.4", 443)
    code = """
import socket
for number in range(600):
    where = ("127.0.0.1", 3128) if number % 2 else ("1.2.3.4", 1000 + number)
    with socket.create_connection(where, 10) as wire:
        pass
    with socket.socket(type=socket.SOCK_DGRAM) as wire:
        wire.sendto(b"x" * 12, ("127.0.0.1", 53))
"""
    table = "/proc/net/nf_conntrack"
    if not os.path.exists(table):
        pytest.skip("this kernel does not show what it tracks")

    def ended() -> set[str]:
        over, tasks = (" TIME_WAIT ", " CLOSE ", " udp "), (" dport=3128 ", " dst=1.2.3.4 ", " dport=53 ")
        with open(table, encoding="ascii") as file:
            found = [line for line in file if any(map(line.__contains__, over)) and any(map(line.__contains__, tasks))]
        return {" ".join(word for word in line.split() if word.partition("=")[0] in ENDS) for line in found}

    before = ended()  # of other tests in this network
    done = server.tidegate(*HELD, "--", PYTHON, "-c", code)
    assert done.returncode == 0, done.stderr
    began = time.monotonic()
    until(lambda: not ended() - before, "what has ended is not forgotten")
    assert time.monotonic() - began < 25, "by itself the kernel forgets in 30 seconds, and in 120"


def test_a_captured_connection_that_its_client_closed_is_over(lab: Lab, server: Served) -> None:
    """HLD-6: the gate's end of it waits for nothing, however many there were."""
    lab.origin("raw", "1.2.3.4", 443)
    code = """
import socket
for number in range(100):
    with socket.create_connection(("1.2.3.4", 1000 + number), 10):
        pass
"""
    done = server.tidegate(*HELD, "--", PYTHON, "-c", code)
    assert done.returncode == 0, done.stderr

    def waiting() -> int:
        with open("/proc/net/tcp", encoding="ascii") as table:
            return sum(line.split()[3] == "09" for line in table)  # TCP_LAST_ACK

    began = time.monotonic()
    until(lambda: not waiting(), "ends of the gate wait for packets that cannot be sent")
    assert time.monotonic() - began < 25


def test_who_comes_second_says_what_is_not_recorded(lab: Lab, server: Served) -> None:
    """JRN-3: one gate of the machine reads the log; a run beside it is held as well, and says so; and then it reads."""
    lab.origin("raw", "1.2.3.4", 443)
    first = Asker(server, "--profile", "closed")
    code = "import socket; print(socket.socket().connect_ex(('1.2.3.4', 443)))"
    words = (*HELD, "--no-server", "--capture", "off", "--", PYTHON, "-c", code)
    done = server.tidegate(*words)
    assert done.stdout != "0\n"
    assert "note: another gate reads the kernel's log" in done.stderr
    assert "1.2.3.4" not in done.stderr
    first.end()
    assert server.stop() is not None
    done = server.tidegate(*words)
    assert "note:" not in done.stderr
    assert "net: 1.2.3.4:443 · refused, only what goes through the gate gets out" in done.stderr
