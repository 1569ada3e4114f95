"""What passes between two ends: whole, in its order, and no more than can be read."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.unit.holds.container.relay.running import PATIENCE

if TYPE_CHECKING:
    from tests.unit.holds.container.relay.running import Owner


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
