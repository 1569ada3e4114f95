"""tidegate.tools.keeper: a real keeper in a child, its channel in the test's hand."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.product import PATIENCE, PYTHON
from tests.served import until
from tidegate.tools import keeper, refusing
from tidegate.tools.declaration import Tool
from tidegate.tools.keeper import MOST_CONNECTIONS, MOST_RUNS, Keeper
from tidegate.tools.program import run
from tidegate.tools.schema import normal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORD = normal({"type": "object", "properties": {"wait": {"type": "string"}}})
SLOW = normal({"type": "object", "properties": {"wait": {"type": "string", "pattern": "^(a+)+$", "maxLength": 100}}})
WAITS = (
    "import json,os,sys,time\nd=json.load(sys.stdin)\np=d.get('wait')\n"
    "if p:\n open(p+'.'+str(os.getpid()),'w').close()\n while os.path.exists(p): time.sleep(0.02)\nprint('done')"
)
DAEMON = (
    "import json,os,sys,time\nd=json.load(sys.stdin)\n"
    "if os.fork() == 0:\n os.setsid()\n if os.fork(): os._exit(0)\n"
    " [os.close(n) for n in (0,1,2)]\n open(d['wait']+'.'+str(os.getpid()),'w').close()\n time.sleep(1000)\n"
    "while not [n for n in os.listdir(os.path.dirname(d['wait'])) if n.startswith('pid.')]: time.sleep(0.02)\n"
    "print('done')"
)


def tool(name: str, code: str, **more: Any) -> Tool:
    """A tool whose program is Python's."""
    return Tool(name, (PYTHON, "-I", "-c", code), "", WORD, "", timeout_seconds=PATIENCE, **more)


TOOLS = {
    one.name: one
    for one in (
        tool("t", WAITS, calls_per_minute=1000),
        tool("rare", WAITS, calls_per_minute=2),
        tool("daemon", DAEMON),
        tool("slow", WAITS).replace(input_schema=SLOW),
    )
}


class Kept:
    """A keeper, and the gate's end of its channel."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(PATIENCE)
        self.life, life = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.channel.close()
                self.life.close()
                os.setsid()
                Keeper(theirs, life.fileno(), TOOLS, _start).serve()
            finally:
                os._exit(0)
        theirs.close()
        life.close()

    def connect(self) -> socket.socket:
        """A connection, as the gate hands one over."""
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE)
        with theirs:
            socket.send_fds(self.channel, [b"connect"], [theirs.fileno()])
        return ours

    def call(self, name: str, sock: socket.socket | None = None, **given: str) -> socket.socket:
        """Call a tool; what it answers is still to be read."""
        sock = sock or self.connect()
        body = json.dumps(given).encode()
        sock.sendall(
            b"POST /%b HTTP/1.1\r\nHost: tools.tidegate.internal\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (name.encode(), len(body), body)
        )
        return sock

    def report(self) -> dict[str, Any]:
        """What the keeper says next of a call."""
        found: dict[str, Any] = json.loads(self.channel.recv(65536))
        return found

    def close(self) -> None:
        """Let it end, and wait for that."""
        self.life.close()
        if self.pid:
            os.waitpid(self.pid, 0)
        self.channel.close()


def _start(one: Tool, data: bytes, life: int) -> Any:
    base = os.environ["TOOLS_BASE"]
    return run(one.command, one.command[0], data, {}, seconds=one.timeout_seconds, most=1000, base=base, life=life)


@pytest.fixture(autouse=True)
def _base(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where programs have their folders; those of programs that are ended with their workers stay there."""
    monkeypatch.setenv("TOOLS_BASE", str(tmp_path_factory.mktemp("base")))


@pytest.fixture
def kept() -> Iterator[Kept]:
    """A keeper."""
    made = Kept()
    yield made
    made.close()


def status(sock: socket.socket) -> int:
    """The status of the next answer, read to the end of its body."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = sock.recv(65536)
        assert piece, "no answer"
        found += piece
    return int(found.split(b" ")[1])


def marks(path: Path) -> list[int]:
    """The pids of programs that wait for a file to go."""
    return [int(one.suffix[1:]) for one in path.parent.glob(f"{path.name}.*")]


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_call_is_answered_and_reported(kept: Kept) -> None:
    """SRV-6: several calls on one connection; each is reported with sizes and without a value."""
    with kept.call("t") as sock:
        assert status(sock) == 200
        first = kept.report()
        assert (first["tool"], first["result"], first["status"], first["in"], first["out"]) == ("t", "ok", 0, 2, 5)
        assert set(first) == {"tool", "result", "status", "in", "out", "seconds"}
        kept.call("t", sock)
        assert status(sock) == 200
        assert kept.report()["result"] == "ok"


def test_what_was_called_is_reported_before_it_is_answered(kept: Kept) -> None:
    """SRV-6, JRN-2: whoever has the answer may end the task at once, and the call is on record all the same."""
    for _ in range(20):
        with kept.call("t") as sock:
            assert status(sock) == 200
            kept.channel.setblocking(False)
            assert kept.report()["result"] == "ok"


def test_so_many_run_at_once(kept: Kept, tmp_path: Path) -> None:
    """SRV-6: one more than may run is told so at once, and runs when another has ended."""
    wait = tmp_path / "pid"
    wait.touch()
    running = [kept.call("t", wait=str(wait)) for _ in range(MOST_RUNS)]
    until(lambda: len(marks(wait)) == MOST_RUNS)
    with kept.call("t") as more:
        assert status(more) == 503
        assert kept.report()["result"] == "busy"
        wait.unlink()
        for sock in running:
            with sock:
                assert status(sock) == 200
        assert {kept.report()["result"] for _ in running} == {"ok"}
        kept.call("t", more)
        assert status(more) == 200


def test_so_many_calls_a_minute(kept: Kept) -> None:
    """SRV-6: the third of two in a minute is 429, on whatever connection; another tool is not touched by it."""
    found = []
    for _ in range(3):
        with kept.call("rare") as sock:
            found.append(status(sock))
    assert found == [200, 200, 429]
    with kept.call("t") as sock:
        assert status(sock) == 200


def test_so_many_connections_at_once(kept: Kept) -> None:
    """SRV-6: one more than may be is told so and closed; when one ends there is room again."""
    # All of them are there once they were answered: before that a process of the kernel's choice comes first.
    open_ = []
    for _ in range(MOST_CONNECTIONS):
        sock = kept.connect()
        sock.sendall(b"GET / HTTP/1.1\r\nHost: tools.tidegate.internal\r\n\r\n")
        assert status(sock) == 200
        open_.append(sock)
    with kept.connect() as more:
        assert status(more) == 503
    open_.pop().close()

    def answered() -> bool:
        # Still one too many, it is answered and closed before its request is read: a reset, or a pipe that broke.
        with suppress(ConnectionError), kept.connect() as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: tools.tidegate.internal\r\n\r\n")
            return status(sock) == 200
        return False

    until(answered)
    for sock in open_:
        sock.close()


def test_so_many_connections_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: a task that connects and leaves, over and over, does not have a process made each time."""
    monkeypatch.setattr(keeper, "CONNECTIONS_A_MINUTE", 3)
    made = Kept()
    try:
        found = []
        for _ in range(5):
            with made.call("t") as sock:
                found.append(status(sock))
        assert found == [200, 200, 200, 503, 503]
    finally:
        made.close()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """A keeper that takes no connection any more."""
    monkeypatch.setattr(keeper, "CONNECTIONS_A_MINUTE", 0)
    made = Kept()
    yield made
    made.close()


def test_whoever_is_refused_hears_it_after_a_long_upload(full: Kept) -> None:
    """SRV-6, B37: what it sends is taken until it closes, and its answer is followed by an end and no reset."""
    with full.connect() as sock:
        head = b"POST /t HTTP/1.1\r\nHost: tools.tidegate.internal\r\nContent-Length: %d\r\n\r\n" % (4 << 20)
        for byte in (head[:7], head[7:-1], head[-1:]):
            sock.sendall(byte)
        sock.sendall(bytes(4 << 20))
        assert status(sock) == 503
        assert sock.recv(1) == b""


def test_whoever_is_refused_and_says_nothing_hears_it_too(full: Kept) -> None:
    """SRV-6: more of them than are kept, the first of which make room at once; and all of them end."""
    names = f"/proc/{full.pid}/fd"
    until(lambda: os.path.exists(names))
    before = len(os.listdir(names))
    silent = [full.connect() for _ in range(refusing.MOST + 10)]
    assert [status(sock) for sock in silent] == [503] * len(silent)
    assert [sock.recv(1) for sock in silent] == [b""] * len(silent)
    assert len(os.listdir(names)) <= before + refusing.MOST
    for sock in silent:
        sock.close()
    until(lambda: len(os.listdir(names)) <= before)
    with open(f"/proc/{full.pid}/task/{full.pid}/children", encoding="ascii") as file:
        assert file.read() == ""


def test_whoever_is_refused_and_never_closes_is_left(full: Kept) -> None:
    """SRV-6: in bytes and in seconds: an upload without end is not read for ever."""
    with full.connect() as sock, suppress(ConnectionError):
        sock.sendall(b"POST / HTTP/1.1\r\n\r\n")
        for _ in range(1000):
            sock.sendall(bytes(1 << 20))
        pytest.fail("it read a gigabyte")


@pytest.mark.parametrize("killed", [False, True], ids=["it ends", "it is killed"])
def test_the_end_of_the_task_ends_what_runs(kept: Kept, tmp_path: Path, *, killed: bool) -> None:
    """SRV-6: no orphan, whether the task ends or the keeper is killed; what was ended by the task's end is reported."""
    wait = tmp_path / "pid"
    wait.touch()
    with kept.call("t", wait=str(wait)):
        until(lambda: marks(wait))
        (pid,) = marks(wait)
        if killed:
            os.kill(kept.pid, signal.SIGKILL)
        else:
            kept.life.close()
        os.waitpid(kept.pid, 0)
        kept.pid = 0
        until(lambda: gone(pid))
        if not killed:
            assert kept.report() == {"tool": "t", "result": "cancelled"}


def test_the_end_of_the_channel_ends_it_too(kept: Kept) -> None:
    """SRV-6: a gate that is gone has nobody to ask for."""
    kept.channel.close()
    os.waitpid(kept.pid, 0)
    kept.pid = 0


def test_what_goes_away_from_its_group_is_ended_too(kept: Kept, tmp_path: Path) -> None:
    """SRV-6: a daemon that a program leaves behind, in a session of its own, does not outlive the call."""
    wait = tmp_path / "pid"
    with kept.call("daemon", wait=str(wait)) as sock:
        assert status(sock) == 200
    (pid,) = marks(wait)
    until(lambda: gone(pid))


def test_a_connection_that_breaks_is_of_no_other(kept: Kept, tmp_path: Path) -> None:
    """SRV-6: a worker that is killed is reported as lost and its program ends; the next call is served."""
    wait = tmp_path / "pid"
    wait.touch()
    with kept.call("t", wait=str(wait)) as sock:
        until(lambda: marks(wait))
        (pid,) = marks(wait)
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            worker = int(file.read().rpartition(")")[2].split()[1])
        os.kill(worker, signal.SIGKILL)
        assert sock.recv(100) == b""
    until(lambda: gone(pid))
    assert kept.report() == {"tool": "t", "result": "lost"}
    with kept.call("t") as sock:
        assert status(sock) == 200


def test_what_is_no_connection_is_left(kept: Kept) -> None:
    """SRV-6: another message, or more descriptors, are dropped and closed."""
    with open(os.devnull, "rb") as null:
        socket.send_fds(kept.channel, [b"connect"], [null.fileno(), null.fileno()])
        socket.send_fds(kept.channel, [b"hallo"], [null.fileno()])
    kept.channel.send(b"connect")
    with kept.call("t") as sock:
        assert status(sock) == 200


def test_a_look_at_an_input_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: a pattern that would look for hours takes its connection's process with it, and nothing else."""
    monkeypatch.setattr(keeper, "LOOK_SECONDS", 0.5)
    kept = Kept()
    try:
        with kept.call("slow", wait="a" * 90 + "!") as sock, suppress(ConnectionResetError):
            assert sock.recv(65536) == b""
        for _ in range(3):  # it is a bound, and no end of the others
            with kept.call("slow", wait="") as sock:
                assert status(sock) == 422
        with kept.call("t") as sock:
            assert status(sock) == 200
            assert status(kept.call("t", sock)) == 200
        assert [kept.report()["result"] for _ in range(2)] == ["ok", "ok"]
    finally:
        kept.close()
