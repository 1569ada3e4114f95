"""Proves the sockets of the resolver: datagrams, streams, and their bounds (HLD-6)."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from typing import TYPE_CHECKING

import dns.message
import pytest

from tests.unit.gate.kit import Clock, Serving, read_exactly, wait
from tidegate.gate import dns_sockets, names
from tidegate.gate.capture import CaptureSockets
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.gate.captive import Captive

    Capturing = Callable[..., tuple[Serving, Captive]]
    Serve = Callable[..., Serving]

QUERY = dns.message.make_query("a.test.", "A").to_wire()


def answers(data: bytes) -> list[str]:
    """Return the addresses in an answer."""
    return [record.to_text() for records in dns.message.from_wire(data).answer for record in records]


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("server", ["127.0.0.1", "8.8.8.8", "192.0.2.1"])
def test_whoever_is_asked_the_gate_answers(capture: Capturing, server: str, tcp: bool) -> None:
    """HLD-6: the resolver of resolv.conf, or one a program has built in; by UDP and TCP."""
    _, captive = capture("a.test")
    assert answers(captive.exchange(QUERY, server=server, tcp=tcp)) == ["198.18.1.1"]


def test_datagrams_over_ipv6(capture: Capturing) -> None:
    """The same resolver at an IPv6 address."""
    _, captive = capture("a.test")
    assert answers(captive.exchange(QUERY, server="2600:beef::53")) == ["198.18.1.1"]


def test_a_socket_on_the_wildcard_answers_from_where_it_was_asked(capture: Capturing, serve: Serve) -> None:
    """A connected UDP client takes an answer from no other address; both families, without redirection."""
    _, captive = capture("x.test", redirect=False)
    gate = serve("a.test")
    fds = tuple(
        captive.socket(family, socket.SOCK_DGRAM, (address, 5300)).detach()
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"))
    )
    gate.on_thread(lambda: gate.gate.add_capture(CaptureSockets((), datagrams=fds), gate.task))
    for family, address in ((socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2600:beef::53")):
        with captive.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((address, 5300))
            sock.send(QUERY)
            assert answers(sock.recv(1000)) == ["198.18.1.1"]


def test_a_flood_of_datagrams_is_answered_in_turns(capture: Capturing) -> None:
    """Nothing is lost within the kernel's buffer, junk between the queries has no effect."""
    _, captive = capture("a.test")
    with captive.socket(kind=socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", 53))
        for _ in range(10):
            for _ in range(10):
                sock.send(QUERY)
                sock.send(b"junk")
            for _ in range(10):
                assert answers(sock.recv(1000)) == ["198.18.1.1"]
    assert captive.look_up("a.test") == "198.18.1.1"


def test_a_stream_carries_many_queries_at_any_pace(capture: Capturing) -> None:
    """RFC 7766: one byte at a time, and a hundred in one write; each has its answer, in order."""
    _, captive = capture("a.test")
    framed = struct.pack(">H", len(QUERY)) + QUERY
    with captive.socket() as sock:
        sock.connect(("127.0.0.1", 53))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(framed)):
            sock.sendall(framed[at : at + 1])
        sock.sendall(framed * 100)
        for _ in range(101):
            (size,) = struct.unpack(">H", read_exactly(sock, 2))
            assert answers(read_exactly(sock, size)) == ["198.18.1.1"]


@pytest.mark.parametrize(
    "data", [b"\0\0", b"\0\x0b" + bytes(11), b"\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"]
)
def test_what_is_no_query_ends_a_stream(capture: Capturing, data: bytes) -> None:
    """A length no query has is the end, before anything is collected for it; the next client is served."""
    _, captive = capture("a.test")
    with captive.socket() as sock:
        sock.connect(("127.0.0.1", 53))
        sock.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(100) == b""
    assert answers(captive.exchange(QUERY, tcp=True)) == ["198.18.1.1"]


def test_a_client_that_does_not_read_is_not_read(capture: Capturing) -> None:
    """Bounded: what waits for it is one answer and the kernel's buffers; when it reads, it misses nothing."""
    gate, captive = capture("a.test")
    listener = captive.socket(bind=("127.0.0.1", 5300))
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        listener.setsockopt(socket.SOL_SOCKET, option, 1 << 14)  # accepted sockets inherit it
    sockets = CaptureSockets((), streams=(listener.detach(),))
    gate.on_thread(lambda: gate.gate.add_capture(sockets, gate.task))
    framed = struct.pack(">H", len(QUERY)) + QUERY
    size = len(captive.exchange(QUERY, tcp=True)) + 2
    with captive.socket() as sock:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 1 << 14)
        sock.connect(("127.0.0.1", 5300))
        sock.setblocking(False)
        data, sent, end = framed * 20_000, 0, time.monotonic() + 1
        while time.monotonic() < end:
            try:
                sent += sock.send(data[sent : sent + 10_000])
            except BlockingIOError:
                time.sleep(0.01)
        assert sent < len(data)
        assert answers(captive.exchange(QUERY)) == ["198.18.1.1"]
        sock.setblocking(True)
        sock.settimeout(10)
        whole = sent // len(framed) * size
        assert len(read_exactly(sock, whole)) == whole


def test_streams_are_few_and_not_for_ever(capture: Capturing) -> None:
    """The one beyond the bound is closed and recorded; an idle one makes room."""
    clock = Clock()
    gate, captive = capture("a.test", clock=clock)
    socks = [captive.socket() for _ in range(dns_sockets.STREAMS + 1)]
    for sock in socks:
        sock.connect(("127.0.0.1", 53))
    assert gate.event().reason is Reason.TOO_MANY_CONNECTIONS
    assert socks[-1].recv(1) == b""
    clock.goes_on(dns_sockets.IDLE + 1, gate)
    assert socks[0].recv(1) == b""  # idle
    wait(lambda: answers(captive.exchange(QUERY, tcp=True)) == ["198.18.1.1"])
    for sock in socks:
        sock.close()


def test_only_the_right_sockets_are_taken(serve: Serve) -> None:
    """A stream where a datagram socket belongs, or a file: refused, and every descriptor is closed."""
    gate = serve("a.test")
    for kind in ("datagrams", "streams"):
        wrong = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "datagrams" else socket.SOCK_DGRAM)
        other = socket.create_server(("127.0.0.1", 0))
        fds = (wrong.detach(), other.detach())
        sockets = CaptureSockets(((fds[1], "addressed"),), **{kind: (fds[0],)})
        failed = gate.on_thread(lambda sockets=sockets: _error(lambda: gate.gate.add_capture(sockets, gate.task)))
        assert isinstance(failed, OSError)
        for fd in fds:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(fd)


def _error(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except OSError as error:
        return error
    return None


@pytest.mark.parametrize("tcp", [False, True])
def test_a_task_that_asks_for_more_than_its_share_waits_and_loses_nothing(
    capture: Capturing, monkeypatch: pytest.MonkeyPatch, tcp: bool
) -> None:
    """GAT-6: past the budget queries stay in the kernel's queue, and are answered at the rate; another task is not."""
    monkeypatch.setattr(names, "BURST", 8)
    monkeypatch.setattr(names, "RATE", 200.0)
    gate, captive = capture("a.test")
    with captive.socket(kind=socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", 53))
        for _ in range(40):
            sock.sendall(struct.pack(">H", len(QUERY)) + QUERY if tcp else QUERY)
        stream = sock.makefile("rb")
        for _ in range(40):
            reply = stream.read(struct.unpack(">H", stream.read(2))[0]) if tcp else sock.recv(1000)
            assert answers(reply) == ["198.18.1.1"]
        stream.close()
    assert gate.gate.faults == 0
    assert captive.look_up("a.test") == "198.18.1.1"


def test_a_resolver_is_closed_while_it_rests(capture: Capturing, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7: a task that ends in the middle of a flood leaves nothing in the loop that would raise."""
    monkeypatch.setattr(names, "BURST", 1)
    monkeypatch.setattr(names, "RATE", 0.001)
    gate, captive = capture("a.test")
    with captive.socket(kind=socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", 53))
        for _ in range(4):
            sock.send(QUERY)
        assert answers(sock.recv(1000)) == ["198.18.1.1"]
        time.sleep(2 * dns_sockets.REST)
        gate.on_thread(lambda: gate.gate.remove_capture(captive.handle, cut=True))
        time.sleep(2 * dns_sockets.REST)
    assert gate.gate.faults == 0
