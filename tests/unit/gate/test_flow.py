"""One direction of a tunnel: copying, splicing, blocking and going on."""

from __future__ import annotations

import hashlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import read_exactly, wait
from tidegate.gate.flow import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


def pattern(size: int) -> bytes:
    """Return bytes whose order shows."""
    block = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(4096))
    return (block * (size // len(block) + 1))[:size]


@pytest.mark.parametrize("size", [1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 9_000_001])
def test_bytes_arrive_in_order_whatever_moves_them(lab: Lab, serve: Serve, size: int) -> None:
    """GAT-11: copy below the buffer's size, splice above it, and the seam between; both directions at once."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    gate = serve("a.test:9000")
    data = b"\x00" + pattern(size)
    with gate.tunnel("a.test:9000") as sock:
        sender = threading.Thread(target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR)), daemon=True)
        sender.start()
        got = read_exactly(sock, len(data) + 1)
        sender.join()
    assert got == data
    event = gate.event()
    assert (event.bytes_up, event.bytes_down) == (len(data), len(data))
    gate.idle()
    assert gate.on_thread(lambda: gate.gate.pipes._lent) == 0


def test_without_a_pipe_a_busy_direction_goes_on_copying(lab: Lab, serve: Serve) -> None:
    """The pool is bounded; who gets none is slower, not stuck."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    gate = serve("a.test:9000")
    gate.on_thread(lambda: setattr(gate.gate.pipes, "_most", 0))
    data = b"\x00" + pattern(3_000_000)
    with gate.tunnel("a.test:9000") as sock:
        threading.Thread(target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR)), daemon=True).start()
        assert read_exactly(sock, len(data) + 1) == data


def test_a_blocked_direction_is_not_read(lab: Lab, serve: Serve) -> None:
    """B56: the sender feels a reader that does not read, and all arrives when it does."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    listener = lab.listener("1.2.3.4", 9000)
    gate = serve("a.test:9000")
    with gate.tunnel("a.test:9000") as sock:
        server, _ = listener.accept()
        sock.settimeout(0.3)
        sent = 0
        block = pattern(1 << 16)
        try:
            while sent < 200 << 20:
                sent += sock.send(b"\x00" + block if sent == 0 else block)
        except TimeoutError:
            pass
        assert sent < 100 << 20
        sock.shutdown(socket.SHUT_WR)
        server.settimeout(10)
        with server:
            assert len(read_exactly(server, sent + 1)) == sent
    listener.close()
    wait(lambda: gate.gate.connections == 0)
    assert gate.event().bytes_up == sent
