"""The relay program, run as an image runs it: by itself, between real sockets."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container import relay

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 30.0


def listen(path: Path) -> socket.socket:
    """Return a listening unix socket with an end to each wait."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.unlink(missing_ok=True)
    sock.bind(str(path))
    sock.listen(64)
    sock.settimeout(PATIENCE)
    return sock


class Owner:
    """The gate's side of one worker's relay: both sockets, and the relay itself as a process."""

    def __init__(self, folder: Path, grace: float = 20.0) -> None:
        self.folder = folder
        self.gate = listen(folder / "gate.sock")
        self.life = listen(folder / "life.sock")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        argv = [sys.executable, "-I", "-S", relay.__file__, "worker", str(folder), str(self.port), str(grace)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def greet(self) -> socket.socket:
        """Take the relay's own connection, and let it know that it has an owner."""
        life = self.life.accept()[0]
        life.settimeout(PATIENCE)
        life.send(b"+")
        assert life.recv(1) == b"+"
        return life

    def ready(self) -> socket.socket:
        """The same, once the relay has said so."""
        life = self.greet()
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == relay.READY + "\n"
        return life

    def client(self) -> socket.socket:
        """Connect as the worker does."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def accepted(self) -> socket.socket:
        """The gate's end of the next connection."""
        sock = self.gate.accept()[0]
        sock.settimeout(PATIENCE)
        return sock

    def close(self) -> None:
        """End all of it."""
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.gate.close()
        self.life.close()


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    """A relay that runs and waits for its owner."""
    found = Owner(tmp_path)
    try:
        yield found
    finally:
        found.close()


def test_bytes_pass_both_ways_and_half_close_is_kept(owner: Owner) -> None:
    """HLD-4 (b), GAT-5: what is sent arrives whole, and the end of one direction leaves the other open."""
    with owner.ready(), owner.client() as client, owner.accepted() as gate:
        client.sendall(b"one way")
        client.shutdown(socket.SHUT_WR)
        assert gate.recv(100) == b"one way"
        assert gate.recv(100) == b""
        gate.sendall(b"and back")
        gate.close()
        assert client.recv(100) == b"and back"
        assert client.recv(100) == b""


def test_what_nobody_reads_is_not_hoarded(owner: Owner) -> None:
    """GAT-5: a sender is held up where the other side does not read; later all of it arrives."""
    with owner.ready(), owner.client() as client, owner.accepted() as gate:
        client.settimeout(1.0)
        sent = 0
        try:
            while sent < 1 << 26:
                sent += client.send(b"x" * (1 << 16))
        except TimeoutError:
            pass
        assert sent < 1 << 26
        status = Path(f"/proc/{owner.process.pid}/status").read_text()
        assert int(status.partition("VmRSS:")[2].split()[0]) < 40_000  # KiB: an interpreter, and one buffer
        client.shutdown(socket.SHUT_WR)
        got = 0
        while data := gate.recv(1 << 16):
            got += len(data)
        assert got == sent


def test_a_large_transfer_arrives_as_it_was(owner: Owner) -> None:
    """GAT-5: 32 MiB in both directions at once, byte by byte the same."""
    content = os.urandom(1 << 20) * 32
    with owner.ready(), owner.client() as client, owner.accepted() as gate:
        got: dict[str, bytes] = {}

        def read(name: str, sock: socket.socket) -> None:
            parts = []
            while data := sock.recv(1 << 18):
                parts.append(data)
            got[name] = b"".join(parts)

        def write(sock: socket.socket) -> None:
            sock.sendall(content)
            sock.shutdown(socket.SHUT_WR)

        threads = [threading.Thread(target=read, args=(n, s)) for n, s in (("client", client), ("gate", gate))]
        threads += [threading.Thread(target=write, args=(s,)) for s in (client, gate)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert got == {"client": content, "gate": content}


def test_an_answer_that_comes_before_the_end_of_an_upload_is_not_lost(owner: Owner) -> None:
    """GAT-5: the gate answers early and closes; the client, still sending, reads the answer whole."""
    with owner.ready(), owner.client() as client, owner.accepted() as gate:
        client.sendall(b"x" * 1000)
        assert len(gate.recv(1000, socket.MSG_WAITALL)) == 1000
        gate.sendall(b"403 and a reason")
        gate.close()
        for _ in range(20):
            client.sendall(b"x" * 1000)
            time.sleep(0.01)
        assert client.recv(100) == b"403 and a reason"
        assert client.recv(100) == b""


def test_nobody_is_let_in_before_the_way_is_open(owner: Owner) -> None:
    """HLD-7, B94: until the owner has answered a connection is reset; the neighbour: then it passes."""
    life = owner.life.accept()[0]
    with life:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with owner.client() as client:
                    refused = client.recv(1)
            except ConnectionResetError:
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline  # the relay is not up yet
                continue
            assert refused == b""
            break
        life.send(b"+")
        assert life.recv(1) == b"+"
        with owner.client() as client, owner.accepted() as gate:
            gate.sendall(b"hello")
            assert client.recv(10) == b"hello"


def test_the_owner_sees_at_once_that_the_relay_ended(owner: Owner) -> None:
    """HLD-7, B95: its connection ends with the relay, however that ends."""
    with owner.ready() as life:
        owner.process.kill()
        assert life.recv(1) == b""


def test_a_relay_whose_owner_left_cuts_all_and_takes_the_next_one(owner: Owner) -> None:
    """HLD-7, HLD-8: without an owner nothing passes and what was open is reset; the next owner has it back."""
    life = owner.ready()
    with owner.client() as client, owner.accepted():
        life.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with owner.ready(), owner.client() as client, owner.accepted() as gate:
        gate.sendall(b"again")
        assert client.recv(10) == b"again"


def test_a_relay_without_an_owner_ends(tmp_path: Path) -> None:
    """HLD-8: nobody has to find what a crash left: after its grace it is gone, with status 3."""
    owner = Owner(tmp_path, grace=0.5)
    try:
        owner.ready().close()
        owner.gate.close()
        owner.life.close()
        (tmp_path / "life.sock").unlink()
        assert owner.process.wait(PATIENCE) == 3
    finally:
        owner.close()


def test_as_the_first_process_of_a_container_it_ends_when_told(owner: Owner) -> None:
    """HLD-8: `stop` of an engine sends SIGTERM and does not have to wait and kill."""
    with owner.ready():
        owner.process.send_signal(signal.SIGTERM)
        assert owner.process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("make", "status", "says"), [(True, 0, "connected"), (False, 1, "ENOENT")], ids=["there", "not there"]
)
def test_the_socket_check_says_what_it_saw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: bool, status: int, says: str
) -> None:
    """HLD-4: whether a container can connect to a socket of the machine is found out by connecting to one."""
    gate = listen(tmp_path / "gate.sock") if make else None
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert relay.main(["check", str(tmp_path)]) == status
    finally:
        signal.signal(signal.SIGTERM, before)
        if gate is not None:
            gate.close()
    assert says in capsys.readouterr().out


def test_a_role_that_is_none_is_usage() -> None:
    """HLD-16: status 2 and the roles."""
    argv = [sys.executable, "-I", "-S", relay.__file__, "gate"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (2, "")
    assert "worker FOLDER PORT GRACE" in done.stdout


def test_it_imports_nothing_of_ours_and_little_else() -> None:
    """The head's rule: any Python of an image runs it; TLS is loaded only by the role that has it."""
    program = "import sys, runpy; runpy.run_path(sys.argv[1], run_name='relay'); print(*sorted(sys.modules))"
    argv = [sys.executable, "-I", "-S", "-c", program, relay.__file__]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=PATIENCE)
    loaded = set(done.stdout.split())
    assert not {name for name in loaded if name.split(".")[0] in {"tidegate", "ssl", "asyncio", "subprocess"}}


def test_it_asks_what_the_worker_would(owner: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-11: the first line of the answer, through the relay; and of no answer, why."""

    def serve() -> None:
        with owner.accepted() as gate:
            assert gate.recv(1000) == b"CONNECT a HTTP/1.1\r\n\r\n"
            gate.sendall(b"HTTP/1.1 403 Forbidden\r\nX: y\r\n\r\n")

    with owner.ready():
        thread = threading.Thread(target=serve)
        thread.start()
        assert relay.ask(owner.port, "CONNECT a HTTP/1.1") == 0
        thread.join(PATIENCE)
    assert capsys.readouterr().out == "HTTP/1.1 403 Forbidden\n"
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert relay.ask(port, "CONNECT a HTTP/1.1") == 0
    assert "refused" in capsys.readouterr().out
