"""Plain HTTP through the gate, request by request."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import Clock, read_exactly, read_head, small, wait
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


def get(host: str, path: str = "/", *lines: str) -> bytes:
    """Return a GET in absolute form."""
    return "\r\n".join([f"GET http://{host}{path} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode()


def test_requests_on_one_connection_are_judged_one_by_one(lab: Lab, serve: Serve) -> None:
    """GAT-3: the second request of a kept connection goes elsewhere, the third is refused; each is a line."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    origin = lab.origin("counting", "1.2.3.4", 80)
    gate = serve("a.test", "b.test")
    with gate.connect() as sock:
        for host, expected in (("a.test", b"1"), ("a.test", b"2"), ("b.test", b"3")):
            sock.sendall(get(host))
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            assert sock.recv(10) == expected
        sock.sendall(get("c.test"))
        answer = read_exactly(sock, 10_000)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"Connection: close\r\n" in answer
    events = gate.events(4)
    assert [event.how for event in events] == [How.FORWARDED] * 3 + [How.REFUSED]
    assert [event.host for event in events] == ["a.test", "a.test", "b.test", "c.test"]
    assert (events[0].status, events[0].method, events[0].address) == (200, "GET", "1.2.3.4")
    assert events[0].bytes_up > 0
    assert origin.requests == 3
    assert origin.connections == 2  # the second request used the first one's connection, the third must not
    assert lab.dns.count("a.test", "A") == 1
    assert lab.dns.count("c.test", "A") == 0


def test_connect_on_a_connection_that_carried_plain_requests(lab: Lab, serve: Serve) -> None:
    """GAT-1: the forms may follow each other."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    lab.origin("banner", "1.2.3.4", 22, text="hi")
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(get("a.test"))
        head = read_head(sock)
        assert head.startswith(b"HTTP/1.1 200 ")
        read_exactly(sock, len("hello from 1.2.3.4:80\n"))
        sock.sendall(b"CONNECT a.test:22 HTTP/1.1\r\nHost: a.test:22\r\n\r\n")
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert sock.recv(2) == b"hi"
    gate.idle()


@pytest.mark.parametrize(
    "data",
    [
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nHost: allowed.test\r\n\r\n",
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test, evil.test\r\n\r\n",
        b"GET http://allowed.test/ HTTP/1.1\r\n\r\n",
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: Host\r\n\r\n",
        b"GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"GET http://allowed.test:0/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n",
        b"GET http://user:pw@allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"TRACE http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
    ],
)
def test_requests_that_disagree_with_themselves_go_nowhere(lab: Lab, serve: Serve, data: bytes) -> None:
    """B32, B59, GAT-1: 400 (405 for TRACE), nothing upstream."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = serve("allowed.test", "evil.test")
    answer = gate.raw(data)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 405 "))
    assert b"user:pw" not in answer
    assert origin.connections == 0
    assert lab.dns.queries == []
    assert gate.event().how is How.REFUSED


@pytest.mark.parametrize(
    "data",
    [
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
        b"GET http://a.test:80/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"GET http://A.test./ HTTP/1.1\r\nHost: a.TEST\r\n\r\n",
        b"GET http://a.test/ HTTP/1.0\r\n\r\n",
        b"GET http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ],
)
def test_equal_spellings_are_no_mismatch(lab: Lab, serve: Serve, data: bytes) -> None:
    """B32, B02: the default port, case, the final dot, HTTP/1.0 without Host."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("echo", "1.2.3.4", 80)
    gate = serve("a.test:80")
    answer = gate.raw(data, shut=True)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"GET / HTTP/1.1\r\nHost: a.test\r\n" in answer


@pytest.mark.parametrize(
    "field",
    [
        b"Transfer-Encoding: chunked,", b"Transfer-Encoding: chunked, gzip", b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: xchunked", b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"X: a\r\n folded", b"X: a\nY: b", b"X: a\rY: b",
        b"Content-Length: 5\r\nContent-Length: 5", b"Content-Length: 5, 5", b"Content-Length: +5",
        b"Content-Length: 0x5", b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    ],
)  # fmt: skip
def test_ambiguous_framing_is_400_and_close(lab: Lab, serve: Serve, field: bytes) -> None:
    """B34, GAT-4: upstream untouched, and no second request is read."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = serve("a.test")
    answer = gate.raw(
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" + field + b"\r\n\r\n0\r\n\r\n" + get("a.test")
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert origin.connections == 0


def test_transfer_encoding_in_http_1_0_is_400(serve: Serve) -> None:
    """B34: HTTP/1.0 knows no chunks."""
    gate = serve("a.test")
    answer = gate.raw(b"POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "GET", "POST"])
def test_a_body_is_framed_whatever_the_method(lab: Lab, serve: Serve, method: str) -> None:
    """B35: a request inside a body stays a body; the next one on the connection is what the client meant."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = serve("a.test")
    evil = b"GET /evil HTTP/1.1\r\nHost: a.test\r\n\r\n"
    with gate.connect() as sock:
        sock.sendall(
            f"{method} http://a.test/x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            + b"%x\r\n%b\r\n0\r\n\r\n" % (len(evil), evil)
        )
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        read_exactly(sock, len("hello from 1.2.3.4:80\n"))
        sock.sendall(get("a.test", "/second", "Connection: close"))
        assert read_exactly(sock, 10_000).startswith(b"HTTP/1.1 200 ")
    assert [head.split(b" ")[1] for head in origin.heads] == [b"/x", b"/second"]


def test_hop_by_hop_fields_stay_here(lab: Lab, serve: Serve) -> None:
    """B59, GAT-4: credentials for the proxy, what Connection names, and Upgrade offers other than WebSocket."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("echo", "1.2.3.4", 80)
    gate = serve("a.test")
    answer = gate.raw(
        get(
            "a.test", "/", "Proxy-Authorization: Basic c2VjcmV0", "Proxy-Connection: keep-alive", "X-Foo: gone",
            "Connection: close, X-Foo, Upgrade", "Upgrade: h2c", "Keep-Alive: 5", "X-Stays: yes",
            "Authorization: Bearer t",
        )
    )  # fmt: skip
    body = answer.partition(b"\r\n\r\n")[2]
    for word in (b"c2VjcmV0", b"Proxy-", b"X-Foo", b"h2c", b"Keep-Alive"):
        assert word not in body
    assert b"X-Stays: yes\r\n" in body
    assert b"Authorization: Bearer t\r\n" in body


def test_an_ipv6_literal_uses_port_80(lab: Lab, serve: Serve) -> None:
    """B44, B26: `http://[…]/` without a port, and the brackets come back in Host."""
    if not lab.ipv6:
        pytest.skip("no IPv6 here")
    lab.origin("echo", "2600:beef::1", 80)
    gate = serve("[2600:beef::1]:80")
    answer = gate.raw(get("[2600:beef::1]", "/", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"Host: [2600:beef::1]\r\n" in answer


def test_a_stale_origin_connection_is_replaced_once(lab: Lab, serve: Serve) -> None:
    """B67, B22: an origin that closed while idle costs the client nothing; the name is resolved anew."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80, close=True)
    gate = serve("a.test")
    with gate.connect() as sock:
        for _ in range(3):
            sock.sendall(get("a.test"))
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            read_exactly(sock, len("hello from 1.2.3.4:80\n"))
    assert origin.connections == 3
    assert lab.dns.count("a.test", "A") == 3


def test_an_origin_that_dies_under_a_reused_connection_is_retried(lab: Lab, serve: Serve) -> None:
    """RFC 9110 section 9.2.2: a GET goes out again, a POST that is not fresh does not share the connection."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    steps = [["head"], ["send", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"], ["head"], ["reset"]]
    origin = lab.origin("script", "1.2.3.4", 80, steps=steps)
    gate = serve("a.test")
    with gate.connect() as sock:
        for _ in range(3):
            sock.sendall(get("a.test"))
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            assert sock.recv(1) == b"x"
    assert origin.connections == 3


def test_what_an_origin_says_unasked_is_thrown_away(lab: Lab, serve: Serve) -> None:
    """Bytes behind an answer belong to no request: the connection is not used again."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    origin = lab.origin(
        "script",
        "1.2.3.4",
        80,
        steps=[["head"], ["send", f"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood{evil}"], ["drain"]],
    )
    gate = serve("a.test")
    with gate.connect() as sock:
        for _ in range(2):
            sock.sendall(get("a.test"))
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            assert read_exactly(sock, 4) == b"good"
    assert origin.connections == 2


def test_pipelined_requests_are_answered_in_order(lab: Lab, serve: Serve) -> None:
    """GAT-3: requests sent ahead wait for their turn, and each is judged."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    lab.origin("counting", "1.2.3.4", 80)
    gate = serve("a.test")
    answer = gate.raw(get("a.test") + get("a.test", "/2") + get("b.test") + get("a.test"))
    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert answer.count(b"HTTP/1.1 403 ") == 1
    assert answer.count(b"HTTP/1.1 ") == 3


def test_half_close_behind_a_request_still_gets_its_answer(lab: Lab, serve: Serve) -> None:
    """GAT-5: `printf … | nc` ends its side at once."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, delay=0.1)
    gate = serve("a.test")
    assert gate.raw(get("a.test"), shut=True).startswith(b"HTTP/1.1 200 ")
    gate.idle()


def test_a_head_that_trickles_in_later_is_408_too(lab: Lab, serve: Serve) -> None:
    """GAT-6: the clock of a second request starts with its first byte."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    clock = Clock()
    gate = serve("a.test", limits=small(header_seconds=10), clock=clock)
    with gate.connect() as sock:
        sock.sendall(get("a.test"))
        read_head(sock)
        read_exactly(sock, len("hello from 1.2.3.4:80\n"))
        clock.goes_on(15, gate)  # idle between requests is no slow head
        quiet = gate.timers
        sock.sendall(b"GET http://a.te")
        wait(lambda: gate.timers > quiet)
        clock.goes_on(11, gate)
        assert read_exactly(sock, 1000).startswith(b"HTTP/1.1 408 ")
    assert [event.reason for event in gate.events(2)] == [Reason.ALLOWED, Reason.HEADER_TIMEOUT]


def test_a_denied_upload_is_refused_before_its_body(serve: Serve) -> None:
    """B46: 403 before any 100; the client never sends the body."""
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(
            b"PUT http://denied.test/x HTTP/1.1\r\nHost: denied.test\r\nContent-Length: 2000000\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")
    assert gate.event().verdict is Verdict.DENY


def test_websocket_becomes_a_tunnel_after_a_checked_101(lab: Lab, serve: Serve) -> None:
    """GAT-5: 101 with the right accept passes and bytes flow; the one without it is 502."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    offer = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    )
    good = (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nearly"
    )
    lab.origin(
        "script", "1.2.3.4", 80, steps=[["head"], ["send", good], ["until", "frame"], ["send", "back"], ["drain"]]
    )
    lab.origin("websocket", "1.2.3.4", 81)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(get("a.test", "/chat", *offer))
        assert read_head(sock).startswith(b"HTTP/1.1 101 ")
        assert read_exactly(sock, 5) == b"early"
        sock.sendall(b"frame")
        assert read_exactly(sock, 4) == b"back"
    event = gate.event()
    assert (event.how, event.status, event.method) == (How.FORWARDED, 101, "GET")
    assert gate.raw(get("a.test:81", "/chat", *offer)).startswith(b"HTTP/1.1 502 ")


def test_a_101_nobody_asked_for_is_502(lab: Lab, serve: Serve) -> None:
    """GAT-5: 101 only answers an offer."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("websocket", "1.2.3.4", 80)
    gate = serve("a.test")
    assert gate.raw(get("a.test", "/", "Upgrade: h2c", "Connection: Upgrade")).startswith(b"HTTP/1.1 502 ")
    assert gate.event().reason is Reason.UPSTREAM_RESPONSE


def test_rebinding_between_two_requests_is_refused(lab: Lab, serve: Serve) -> None:
    """B22: each new origin connection is checked anew; loopback hears nothing."""
    lab.dns.set("a.test", sequence=[{"A": ["1.2.3.4"]}, {"A": ["127.0.0.1"]}])
    lab.origin("http", "1.2.3.4", 80, close=True)
    canary = lab.canary("127.0.0.1", 80)
    gate = serve("*")
    with gate.connect() as sock:
        sock.sendall(get("a.test"))
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        read_exactly(sock, len("hello from 1.2.3.4:80\n"))
        sock.sendall(get("a.test"))
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")
    assert canary.connections == 0
    assert gate.event(1).reason is Reason.OWN_ADDRESS


def test_a_socket_closed_by_the_client_between_requests(lab: Lab, serve: Serve) -> None:
    """B67: the origin's connection goes with the client's."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(get("a.test"))
        read_head(sock)
        sock.shutdown(socket.SHUT_RDWR)
    gate.idle()
    origin.wait(lambda o: o.open == 0)
