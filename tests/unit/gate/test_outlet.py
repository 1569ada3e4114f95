"""The writing side of a socket."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.gate.outlet import POSTED, Outlet
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


def sent_to(far: socket.socket) -> bytes:
    """Return what is there now."""
    try:
        return far.recv(1 << 20)
    except BlockingIOError:
        return b""


def test_what_is_posted_waits_for_others_only_where_there_are_some() -> None:
    """GAT-5: alone it goes at once; in a crowd when the outlet is settled, and before whatever is sent behind it."""
    reactor = Reactor(time.monotonic)
    near, far = socket.socketpair()
    for sock in (near, far):
        sock.setblocking(False)
    outlet = Outlet(reactor, near)
    outlet.post(b"alone")
    assert sent_to(far) == b"alone"
    reactor.crowded = True
    outlet.post(b"in a crowd")
    assert sent_to(far) == b""
    assert not outlet.blocked
    outlet.settle()
    assert sent_to(far) == b"in a crowd"
    outlet.settle()
    outlet.post(b"first, ")
    outlet.post(b"second")
    assert sent_to(far) == b"first, second"
    outlet.post(b"third, ")
    outlet.send(b"fourth")
    assert sent_to(far) == b"third, fourth"
    outlet.post(b"last")
    outlet.finish()
    assert sent_to(far) == b"last"
    outlet.post(bytes(POSTED + 1))
    assert len(sent_to(far)) == POSTED + 1
    for sock in (near, far):
        sock.close()
    reactor.close()


def test_what_was_posted_and_does_not_go_is_told_like_room() -> None:
    """GAT-5, B56: part of it waits like what was sent; where the other side is gone, `flush` says so next turn."""
    reactor = Reactor(time.monotonic)
    near, far = socket.socketpair()
    near.setblocking(False)

    class Owner(Handler):
        def ready(self, _fd: int, mask: int) -> None:
            if mask & OUT and outlet.blocked:
                with pytest.raises(OSError):  # noqa: PT011 - EPIPE or ECONNRESET
                    outlet.flush()
                told.append(mask)
                reactor.stop()

    told: list[int] = []
    reactor.watch(near.fileno(), Owner())
    outlet = Outlet(reactor, near)
    reactor.crowded = True
    outlet.post(b"to nobody")
    far.close()
    outlet.settle()
    assert outlet.blocked
    reactor.run()
    assert told
    near.close()
    outlet.settle()
    reactor.close()


def test_a_closed_socket_is_not_written_to_by_its_number() -> None:
    """GAT-5: a descriptor is used again at once; what was posted to the one before never reaches it."""
    reactor = Reactor(time.monotonic)
    near, far = socket.socketpair()
    near.setblocking(False)
    outlet = Outlet(reactor, near)
    reactor.crowded = True
    outlet.post(b"secret")
    number = near.fileno()
    near.close()
    other, listening = socket.socketpair()
    os.dup2(other.fileno(), number)
    outlet.settle()
    listening.setblocking(False)
    assert sent_to(listening) == b""
    if other.fileno() != number:
        os.close(number)
    for sock in (far, other, listening):
        sock.close()
    reactor.close()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("post", "send", "settle", "flush", "crowd", "alone", "read")), st.integers(0, 40_000)
        ),
        max_size=40,
    )
)
def test_bytes_arrive_in_the_order_they_were_given_however(steps: list[tuple[str, int]]) -> None:
    """GAT-5: posted, sent, waiting: one stream, nothing lost and nothing twice."""
    reactor = Reactor(time.monotonic)
    near, far = socket.socketpair()
    for sock in (near, far):
        sock.setblocking(False)
    reactor.watch(near.fileno(), Handler())
    outlet = Outlet(reactor, near)
    given_, got = bytearray(), bytearray()
    for number, (what, size) in enumerate(steps):
        if what in {"post", "send"}:
            data = bytes((number + at) % 256 for at in range(size))
            given_ += data
            getattr(outlet, what)(data)
        elif what in {"settle", "flush"}:
            getattr(outlet, what)()
        elif what == "read":
            got += sent_to(far)
        else:
            reactor.crowded = what == "crowd"
    outlet.settle()
    while outlet.blocked:
        got += sent_to(far)
        outlet.flush()
    while part := sent_to(far):
        got += part
    assert got == given_
    assert outlet.sent == len(given_)
    for sock in (near, far):
        sock.close()
    reactor.close()
