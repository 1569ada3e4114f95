"""The writing side of a socket."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import OUT, Reactor


class Handler:
    """Flushes when it may."""

    def __init__(self) -> None:
        self.outlet: Outlet | None = None
        self.drained = 0

    def ready(self, _fd: int, mask: int) -> None:
        """Go on."""
        if mask & OUT and self.outlet is not None and self.outlet.blocked and self.outlet.flush():
            self.drained += 1

    def broken(self, error: Exception) -> None:
        """Fail the test."""
        raise error


def test_what_does_not_fit_waits_and_goes_in_order() -> None:
    """GAT-5: `send` says when to stop, the loop says when to go on."""
    reactor = Reactor(time.monotonic)
    near, far = socket.socketpair()
    near.setblocking(False)
    handler = Handler()
    reactor.watch(near.fileno(), handler)
    outlet = handler.outlet = Outlet(reactor, near)
    assert outlet.send(b"first")
    data = bytes(range(256)) * 10_000
    assert not outlet.send(data)
    assert outlet.blocked
    assert not outlet.send(memoryview(b"last"))
    far.settimeout(5)
    got = b""

    def read() -> None:
        nonlocal got
        while len(got) < len(data) + 9:
            got += far.recv(1 << 20)
        reactor.stop()

    reader = threading.Thread(target=read)
    reader.start()
    reactor.run()
    reader.join()
    assert got == b"first" + data + b"last"
    assert handler.drained == 1
    assert outlet.sent == len(got)
    far.close()
    with pytest.raises(OSError):  # noqa: PT011 - EPIPE or ECONNRESET
        outlet.send(b"gone")
    near.close()
    reactor.close()
