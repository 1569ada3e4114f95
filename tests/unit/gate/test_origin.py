"""Connections to origins, and what goes up on them."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from tests.unit.gate.kit import policy_of, read_exactly, read_head
from tidegate.gate import origin as origin_module
from tidegate.gate.forward import Exchange
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


def test_a_large_upload_arrives_whole_and_no_faster_than_it_is_taken(lab: Lab, serve: Serve) -> None:
    """GAT-5, B56: 8 MB with a length and 8 MB in chunks."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("sink", "1.2.3.4", 80)
    gate = serve("a.test")
    body = b"x" * 8_000_000
    with gate.connect() as sock:
        sock.sendall(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 8000000\r\n\r\n" + body)
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert read_exactly(sock, 7) == b"8000000"
        sock.sendall(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(8):
            sock.sendall(b"f4240\r\n" + body[:1_000_000] + b"\r\n")
        sock.sendall(b"0\r\n\r\n")
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert int(read_exactly(sock, 7)) > 8_000_000
    assert gate.event().bytes_up > 8_000_000


def test_an_idle_connection_is_not_used_for_what_cannot_be_repeated(
    lab: Lab, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 9110 section 9.2.2: after a while a POST gets a connection of its own, a GET does not."""
    monkeypatch.setattr(origin_module, "FRESH", 0.05)
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("counting", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        for method, connections in (("GET", 1), ("GET", 1), ("POST", 2)):
            sock.sendall(f"{method} http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            sock.recv(10)
            assert origin.connections == connections
            time.sleep(0.2)


def test_the_byte_limit_counts_uploads(lab: Lab, serve: Serve) -> None:
    """GAT-6: heads and bodies, of all requests of the rule."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("sink", "1.2.3.4", 80)
    gate = serve("a.test", limit=RuleLimits(bytes_up=1000))
    got = gate.raw(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert gate.event().reason is Reason.BYTES_LIMIT


def test_a_client_that_ends_inside_its_body(lab: Lab, serve: Serve) -> None:
    """GAT-4: half a body is never passed off as a whole one."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("sink", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhalf")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""
    assert gate.event().reason is Reason.CLIENT_GONE
    origin.wait(lambda o: o.open == 0)


def test_another_policy_connects_anew(lab: Lab, serve: Serve) -> None:
    """ADR-2, GAT-3: a kept connection to a private address ends with the rule that admitted it."""
    lab.dns.set("a.test", A=["10.9.8.7"])
    lab.origin("http", "10.9.8.7", 80, body="x")
    gate = serve("a.test:80")
    with gate.connect() as sock:
        for _ in range(2):
            sock.sendall(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            assert sock.recv(1) == b"x"
        gate.on_thread(lambda: gate.task.change(policy=policy_of("*:80")))
        sock.sendall(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")
    assert gate.event(2).reason is Reason.PRIVATE_ADDRESS


def test_an_origin_that_answers_and_does_not_read_is_not_kept(lab: Lab, serve: Serve) -> None:
    """GAT-5: what waits for an origin is one request at most, however many it answers."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    listener = lab.listener("1.2.3.4", 80)
    gate = serve("a.test")
    with listener, gate.connect() as sock:
        sock.sendall(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        server, _ = listener.accept()
        with server:
            read_head(server)

            def fill() -> None:
                exchange = next(h for h in gate.gate.reactor.table.values() if isinstance(h, Exchange))
                assert exchange.origin is not None
                exchange.origin.outlet._pending = b"as from an origin whose buffers are full"
                exchange.origin.outlet.blocked = True

            gate.on_thread(fill)
            server.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            assert read_head(sock).startswith(b"HTTP/1.1 204 ")
            server.settimeout(10)
            assert server.recv(1) == b""
