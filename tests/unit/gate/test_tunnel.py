"""Tunnels: half-close, reset, idle, backpressure, and ends without leaks."""

from __future__ import annotations

import resource
import select
import socket
import time
from typing import TYPE_CHECKING

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.kit import PATIENCE, Clock, read_exactly, small, wait
from tidegate.gate.listener import KEEPALIVE
from tidegate.gate.reactor import IN
from tidegate.gate.tunnel import Tunnel
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

RST = b"\x01\x00\x00\x00\x00\x00\x00\x00"


def open_to(lab: Lab, serve: Serve, kind: str, **options: object) -> tuple[Serving, socket.socket]:
    """Return a gate and a tunnel through it to an origin of a kind."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    of_gate = {name: options.pop(name) for name in ("limits", "clock") if name in options}
    lab.origin(kind, "1.2.3.4", 9000, **options)
    gate = serve("a.test:9000", **of_gate)
    return gate, gate.tunnel("a.test:9000")


def test_half_close_of_the_client_reaches_the_server(lab: Lab, serve: Serve) -> None:
    """GAT-5: the server reads to the end and still answers."""
    gate, sock = open_to(lab, serve, "half-close")
    with sock:
        sock.sendall(b"\x00" * 1000)
        sock.shutdown(socket.SHUT_WR)
        assert read_exactly(sock, 100) == b"got 1000 bytes\n"
    event = gate.event()
    assert (event.bytes_up, event.bytes_down) == (1000, 15)


def test_half_close_of_the_server_leaves_the_client_its_side(lab: Lab, serve: Serve) -> None:
    """GAT-5: the server ends first and still reads."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("half-close-first", "1.2.3.4", 9000)
    gate = serve("a.test:9000")
    with gate.tunnel("a.test:9000") as sock:
        assert read_exactly(sock, 100) == b"bye\n"
        sock.sendall(b"\x00more")
        origin.wait(lambda o: o.received_size == 5)
        assert gate.gate.connections == 1
    gate.idle()
    assert gate.event().bytes_up == 5


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_reset_on_one_side_is_a_reset_on_the_other(lab: Lab, serve: Serve, who: str) -> None:
    """B67: RST goes through, both sockets are gone."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    listener = lab.listener("1.2.3.4", 9000)
    gate = serve("a.test:9000")
    sock = gate.tunnel("a.test:9000")
    server, _ = listener.accept()
    listener.close()
    breaker, other = (sock, server) if who == "client" else (server, sock)
    breaker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
    breaker.close()
    other.settimeout(5)
    with other, pytest.raises(ConnectionResetError):
        other.recv(1)
    gate.idle()
    assert gate.event().how is How.TUNNELED


def test_what_a_server_said_before_it_broke_off_arrives(lab: Lab, serve: Serve) -> None:
    """B47 in a tunnel: an early answer and a reset; the client that still sends reads the answer."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("script", "1.2.3.4", 9000, steps=[["read", 1], ["send", "no"], ["sleep", 0.1], ["reset"]])
    gate = serve("a.test:9000")
    with gate.tunnel("a.test:9000") as sock:
        sock.sendall(b"\x00")
        assert read_exactly(sock, 2) == b"no"
    gate.idle()


def test_the_idle_clock_counts_both_directions(lab: Lab, serve: Serve) -> None:
    """B52: a byte now and then from one side keeps the tunnel; silence on both ends it, on record."""
    clock = Clock()
    gate, sock = open_to(lab, serve, "raw", limits=small(idle_seconds=50), clock=clock)
    with sock:
        for _ in range(5):
            clock.goes_on(40, gate)
            sock.sendall(b"\x00")
            assert sock.recv(1) == b"\x00"
        clock.goes_on(40, gate)
        assert gate.gate.connections == 1
        clock.goes_on(20, gate)
        assert sock.recv(1) == b""
    event = gate.event()
    assert (event.reason, event.bytes_up, event.bytes_down) == (Reason.IDLE_TIMEOUT, 5, 5)


def test_without_an_idle_limit_silence_is_fine(lab: Lab, serve: Serve) -> None:
    """B53: no fixed life; no timer is pending for a tunnel that says nothing."""
    clock = Clock()
    gate, sock = open_to(lab, serve, "raw", clock=clock)
    with sock:
        wait(lambda: gate.timers == 1)  # the gate's own round
        clock.goes_on(7 * 86_400, gate)
        sock.sendall(b"\x00")
        assert sock.recv(1) == b"\x00"


def test_keepalive_watches_both_sides(lab: Lab, serve: Serve) -> None:
    """GAT-5: the client's socket has it from the start, the server's from the gate's next round."""
    gate, sock = open_to(lab, serve, "raw")

    def look() -> list[tuple[int, int]]:
        gate.gate._round()
        tunnel = next(handler for handler in gate.gate.reactor.table.values() if isinstance(handler, Tunnel))
        sides = [side for side in (tunnel.client, tunnel.upstream) if side is not None]
        return [
            (s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), s.getsockopt(*(6, KEEPALIVE[0][0]))) for s in sides
        ]

    with sock:
        assert gate.on_thread(look) == [(1, 45), (1, 45)]  # below the minute that half-closed ones are tracked for


def test_a_client_that_never_reads_costs_little_and_leaves_cleanly(lab: Lab, serve: Serve) -> None:
    """B56: the server is stopped; when the client goes, so does the server's connection, at once."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("download", "1.2.3.4", 9000, size=100 << 20)
    gate = serve("a.test:9000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with gate.tunnel("a.test:9000") as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        time.sleep(0.5)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KiB
    origin.wait(lambda o: o.open == 0)
    gate.idle()


def test_a_byte_a_second_client_disturbs_nobody(lab: Lab, serve: Serve) -> None:
    """One slow tunnel, and a quick one beside it."""
    gate, slow = open_to(lab, serve, "raw")
    with slow, gate.tunnel("a.test:9000") as quick:
        for _ in range(3):
            slow.sendall(b"\x00")
            quick.sendall(b"\x01" * 50_000)
            assert read_exactly(quick, 50_000) == b"\x01" * 50_000
            assert slow.recv(1) == b"\x00"


def test_the_byte_limit_of_a_rule_cuts(lab: Lab, serve: Serve) -> None:
    """GAT-6: bytes up, counted over all connections of the rule."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    gate = serve("a.test:9000", limit=RuleLimits(bytes_up=100))
    with gate.tunnel("a.test:9000") as sock:
        sock.sendall(b"\x00" * 60)
        assert read_exactly(sock, 60) == b"\x00" * 60
    gate.idle()
    with gate.tunnel("a.test:9000") as sock:
        sock.sendall(b"\x00" * 60)
        assert read_exactly(sock, 60) == b""
    assert [event.reason for event in gate.events(2)] == [Reason.ALLOWED, Reason.BYTES_LIMIT]


def test_no_descriptor_stays_behind(lab: Lab, serve: Serve) -> None:
    """B67: after a mix of ends the count is what it was; nothing is left in CLOSE_WAIT."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    lab.origin("reset", "1.2.3.4", 9001)
    lab.origin("half-close-first", "1.2.3.4", 9002)
    gate = serve("a.test")

    def mix() -> None:
        for kind in range(6):
            port = (9000, 9000, 9001, 9002, 9009, 9000)[kind]
            with gate.connect() as sock:
                sock.sendall(b"CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n\x00x" % (port, port))
                if kind == 1:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
                elif kind != 5:
                    sock.recv(100)
        gate.raw(b"CONNECT nowhere.test:1 HTTP/1.1\r\nHost: nowhere.test:1\r\n\r\n")
        gate.raw(b"nonsense\r\n\r\n")

    mix()
    gate.idle()
    before = descriptors()
    for _ in range(10):
        mix()
    gate.idle()
    wait(lambda: descriptors() <= before, lambda: f"{descriptors() - before} are open")
    assert gate.on_thread(lambda: len(gate.gate.reactor.table)) == 2  # the listener and the interfaces


@pytest.mark.slow
def test_two_thousand_idle_tunnels_and_256_busy_ones(lab: Lab, serve: Serve) -> None:
    """GAT-11, GAT-6: idle ones are cheap and alive, busy ones all get theirs; a stop ends and records each, quickly."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 12_000:
        pytest.skip("needs 12,000 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    gate = serve("1.2.3.4:9000", limits=small(connections=3000))
    socks = [gate.tunnel("1.2.3.4:9000") for _ in range(2000)]
    busy = [gate.tunnel("1.2.3.4:9000") for _ in range(256)]
    try:
        for sock in busy:
            sock.sendall(b"\x00" * 20_000)
        for sock in busy:
            assert read_exactly(sock, 20_000) == b"\x00" * 20_000
        for sock in socks[::100]:
            sock.sendall(b"\x01")
            assert sock.recv(1) == b"\x01"
        assert gate.gate.connections == 2256
        began = time.monotonic()
        gate.gate.stop()
        gate._thread.join(PATIENCE)
        assert time.monotonic() - began < 20
        assert len(gate.recording.events) == 2256
        assert {event.reason for event in gate.recording.events} == {Reason.STOPPING}
    finally:
        for sock in (*socks, *busy):
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def only_tunnel(gate: Serving) -> Tunnel:
    """Return the one tunnel of a gate; on its thread."""
    return next(handler for handler in gate.gate.reactor.table.values() if isinstance(handler, Tunnel))


def test_a_client_that_breaks_off_pushes_no_unjudged_byte_through(lab: Lab, serve: Serve) -> None:
    """GAT-9: what waits from a client when a write to it fails was not judged, so the server sees none of it."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    listener = lab.listener("1.2.3.4", 9000)
    gate = serve("a.test:9000")
    sock = gate.tunnel("a.test:9000")
    server, _ = listener.accept()
    listener.close()

    def attack() -> None:
        # All of it happens while the gate is busy with others, and the server's event is the first it sees.
        sock.sendall(b"POST / HTTP/1.1\r\nHost: b.test\r\nContent-Length: 6\r\n\r\nsecret")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
        sock.close()
        server.sendall(b"banner")
        tunnel = only_tunnel(gate)
        wait(lambda: bool(select.select([tunnel.upstream_fd], [], [], 0)[0]))
        tunnel.ready(tunnel.upstream_fd, IN)

    with server:
        gate.on_thread(attack)
        server.settimeout(10)
        with pytest.raises(ConnectionResetError):
            assert server.recv(1000) == b""
    gate.idle()


def test_a_server_that_takes_bytes_again_gets_no_unjudged_one(lab: Lab, serve: Serve) -> None:
    """GAT-9: what waited for the server goes on; the client is read by its judge alone."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    listener = lab.listener("1.2.3.4", 9000)
    gate = serve("a.test:9000")
    sock = gate.tunnel("a.test:9000")
    server, _ = listener.accept()
    listener.close()

    def attack() -> None:
        tunnel = only_tunnel(gate)
        tunnel.up.pending = b"word"  # as where a word was let pass to a server that was full
        sock.sendall(b" / HTTP/1.1\r\nHost: b.test\r\n\r\n")
        wait(lambda: bool(select.select([tunnel.client_fd], [], [], 0)[0]))
        tunnel.up.push()

    with sock, server:
        gate.on_thread(attack)
        sock.shutdown(socket.SHUT_WR)
        server.settimeout(10)
        assert read_exactly(server, 100) == b"word"
    gate.idle()
