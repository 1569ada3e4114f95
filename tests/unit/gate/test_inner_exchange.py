"""HTTP/1.1 read inside TLS: judged request by request, passed on as it is, ended on both sides together."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import answer, get, inside, read_all
from tests.unit.gate.kit import read_exactly, read_head, read_until, wait
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.inside import Inside

    Start = Callable[..., Inside]

__all__ = ["inside"]

ACME = RuleLimits(requests=only(methods=("GET", "POST"), paths=("/repos/acme/**",)))


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


def test_requests_on_one_connection_are_judged_one_by_one(lab: Lab, inside: Start) -> None:
    """INS-6, GAT-3: what the rule names passes, the first request that it does not is refused inside TLS."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=ACME)
    with gate.tunnel("a.test:443") as sock:
        for number in (b"1", b"2"):
            sock.sendall(get("a.test", "/repos/acme/x"))
            head, body = answer(sock)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert body == number
        sock.sendall(get("a.test", "/repos/acme-evil/x"))
        refusal = read_all(sock)
    assert refusal.startswith(b"HTTP/1.1 403 Forbidden by tidegate: the rule allows other methods or paths only\r\n")
    assert b'Proxy-Status: tidegate; error=http_request_denied; details="method-not-allowed"' in refusal
    assert b"a.test:443: the rule allows other methods or paths only [method-not-allowed; rule 'a.test:443'" in refusal
    events = gate.gate.events(3)
    assert [event.how for event in events] == [How.INSPECTED, How.INSPECTED, How.REFUSED]
    assert [(event.host, event.port, event.method) for event in events] == [("a.test", 443, "GET")] * 3
    assert (events[0].status, events[0].address, events[0].verdict) == (200, "1.2.3.4", Verdict.ALLOW)
    assert (events[2].status, events[2].reason) == (403, Reason.METHOD_NOT_ALLOWED)
    assert origin.requests == 2
    assert origin.connections == 1
    assert origin.sni == ["a.test"]


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("GET /repos/acme/x HTTP/1.1", True),
        ("POST /repos/acme HTTP/1.1", True),
        ("GET https://a.test/repos/acme/x HTTP/1.1", True),
        ("GET https://a.test:443/repos/acme/x HTTP/1.1", True),
        ("DELETE /repos/acme/x HTTP/1.1", False),
        ("get /repos/acme/x HTTP/1.1", False),
        ("GET /repos/acme/../evil HTTP/1.1", False),
        ("GET /repos/acme/%2e%2e/evil HTTP/1.1", False),
        ("GET /repos/acme%2f..%2fevil HTTP/1.1", False),
        ("GET //repos/acme/x HTTP/1.1", False),
        ("GET /repos/acme/..;/evil HTTP/1.1", False),
        ("GET https://a.test/evil HTTP/1.1", False),
    ],
)
def test_methods_and_paths_of_a_rule(lab: Lab, inside: Start, line: str, passes: bool) -> None:
    """INS-6: each spelling is judged in its normal form or refused; the server sees what was judged, or nothing."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=ACME)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(f"{line}\r\nHost: a.test\r\nConnection: close\r\n\r\n".encode())
        got = read_all(sock)
    assert got.startswith(b"HTTP/1.1 200 " if passes else b"HTTP/1.1 403 ")
    assert origin.requests == int(passes)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test:8443\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test.evil.test\r\n\r\n",
        b"GET https://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"GET https://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET https://a.test:444/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ],
)
def test_another_host_inside_is_misdirected(lab: Lab, inside: Start, data: bytes) -> None:
    """INS-4, B116: 421 and no byte for the server, on the first request and on a later one."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    got = gate.ask("a.test:443", data)
    assert got.startswith(b"HTTP/1.1 421 Misdirected Request\r\n")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        sock.sendall(data)
        assert read_all(sock).startswith(b"HTTP/1.1 421 ")
    assert origin.requests == 1
    assert [event.reason for event in gate.gate.events(3)].count(Reason.MISDIRECTED) == 2


@pytest.mark.parametrize("host", ["a.test", "A.TEST", "a.test.", "a.test:443"])
def test_spellings_of_the_connections_own_host_pass_as_one(lab: Lab, inside: Start, host: str) -> None:
    """INS-4, POL-3: the neighbours of 421; what travels on is the canonical name."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    assert inside("a.test:443").ask("a.test:443", get(host, "/", "Connection: close")).startswith(b"HTTP/1.1 200 ")
    assert b"\r\nHost: a.test\r\n" in origin.heads[0]


SMUGGLING = [
    b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5, 5\r\n\r\nabcde",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +5\r\n\r\nabcde",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\nHost: a.test\n\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nX: a\rb\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Host\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n",
    b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    b"GET a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    b"GET /#x HTTP/1.1\r\nHost: a.test\r\n\r\n",
]


@pytest.mark.parametrize("data", SMUGGLING)
def test_what_two_parsers_could_read_differently_does_not_travel(lab: Lab, inside: Start, data: bytes) -> None:
    """GAT-4, B34, B35, B64: the table of smuggling, inside TLS: 400, closed, and no whole request for the server."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
    gate = inside("a.test:443")
    got = gate.ask("a.test:443", data + smuggled)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"\nHTTP/1.1 " not in got
    gate.gate.idle()
    assert b"/smuggled" not in origin.received


@pytest.mark.parametrize(
    "answered",
    [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "SSH-2.0-x\r\n\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ],
)
def test_answers_that_could_be_read_in_two_ways_do_not_travel(lab: Lab, inside: Start, answered: str) -> None:
    """GAT-4: 502 inside TLS, with the reason, and nothing of the answer."""
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[["head"], ["send", answered], ["drain"]])
    got = inside("a.test:443").ask("a.test:443", get("a.test"))
    assert got.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert b'details="upstream-response"' in got


def test_what_leads_around_the_gate_is_taken_out(lab: Lab, inside: Start) -> None:
    """INS-9: Alt-Svc names another host, port or protocol; hop-by-hop headers stay behind, all others travel."""
    lab.origin(
        "http", "1.2.3.4", 443, tls="a.test", headers=['Alt-Svc: h3=":443"', "Keep-Alive: timeout=5", "X-Own: kept"]
    )
    got = inside("a.test:443").ask("a.test:443", get("a.test", "/", "Connection: close"))
    assert b"X-Own: kept\r\n" in got
    assert b"lt-svc" not in got.lower().replace(b"alt-svc", b"lt-svc!") or b"alt-svc" not in got.lower()
    assert b"keep-alive" not in got.lower()


def test_what_leads_around_the_gate_is_taken_out_of_interim_answers(lab: Lab, inside: Start) -> None:
    """INS-9, RFC 7838 section 3: any answer may have it, a 103 too; its hints still travel."""
    lab.origin(
        "script",
        "1.2.3.4",
        443,
        tls="a.test",
        steps=[
            ["head"],
            ["send", 'HTTP/1.1 103 Early Hints\r\nAlt-Svc: h3=":443"\r\nLink: </a>\r\n\r\n'],
            ["send", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"],
        ],
    )
    got = inside("a.test:443").ask("a.test:443", get("a.test"))
    assert b" 200 OK" in got
    assert b"Link: </a>\r\n" in got
    assert b"alt-svc" not in got.lower()


def test_events_come_as_they_are_sent_and_trailers_travel(lab: Lab, inside: Start) -> None:
    """INS-3, B55: server-sent events are not held, and the trailer follows."""
    lab.origin("stream", "1.2.3.4", 443, tls="a.test", interval=600)
    gate = inside("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        assert b"text/event-stream" in read_head(sock)
        assert b"data: 0" in sock.recv(1000)  # ten minutes before the second is sent
    lab.origin("stream", "1.2.3.5", 443, tls="a.test", interval=0)
    lab.dns.set("a.test", A=["1.2.3.5"])
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        rest = read_until(sock, b"X-End: yes\r\n\r\n")
        assert rest.count(b"data: ") == 3
        assert rest.endswith(b"0\r\nX-End: yes\r\n\r\n")


def test_an_upload_waits_for_100_and_is_as_long_as_it_is(lab: Lab, inside: Start) -> None:
    """INS-3, B46: the interim answer comes before the body, which may be of any size."""
    lab.origin("expect", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    size = 5_000_000
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", "Expect: 100-continue", f"Content-Length: {size}", method="PUT"))
        assert read_head(sock).startswith(b"HTTP/1.1 100 ")
        sock.sendall(bytes(size))
        assert answer(sock)[1] == str(size).encode()
    assert gate.gate.event().bytes_up > size


def test_an_early_answer_reaches_a_client_that_still_uploads(lab: Lab, inside: Start) -> None:
    """INS-3, B47: a final answer before the end of the upload is passed on, then the connection ends."""
    lab.origin("early", "1.2.3.4", 443, tls="a.test")
    with inside("a.test:443").tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", "Content-Length: 100000000", method="POST"))
        sock.sendall(bytes(100_000))
        head, body = answer(sock)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in head
    assert body == b"too much\n"


def test_a_client_that_does_not_read_stops_the_server(lab: Lab, inside: Start) -> None:
    """GAT-5, B56: memory is bounded; what the client has not taken is not read from the destination."""
    size = 16 << 20
    origin = lab.origin("download", "1.2.3.4", 443, tls="a.test", size=size)
    gate = inside("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        read_head(sock)
        wait(lambda: origin.requests == 1)
        exchange = next(h for h in gate.gate.gate.reactor.table.values() if type(h).__name__ == "InnerExchange")
        assert len(exchange.client._pending) <= 1 << 18
        left = size
        while left:
            data = sock.recv(65536)
            assert data, f"{left} bytes are missing"
            left -= len(data)
        sock.sendall(get("a.test"))
        read_head(sock)


SWITCH = (
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


def test_a_websocket_is_a_pipe_after_a_checked_101(lab: Lab, inside: Start) -> None:
    """INS-3: bytes pass both ways after 101, also those that came with it; the journal has one line with both sizes."""
    steps = [
        ["head"],
        ["send", SWITCH + "early"],
        ["until", "ping"],
        ["send", "pong"],
        ["drain"],
    ]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside("a.test:443")
    offer = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", *offer, "Sec-WebSocket-Version: 13"))
        assert read_head(sock).startswith(b"HTTP/1.1 101 ")
        assert read_exactly(sock, 5) == b"early"
        sock.sendall(b"ping")
        assert read_exactly(sock, 4) == b"pong"
    event = gate.gate.event()
    assert (event.how, event.status) == (How.INSPECTED, 101)


def test_an_origin_that_ends_its_idle_connection_ends_the_clients(lab: Lab, inside: Start) -> None:
    """INS-3: one connection each, which end together, so that no request is sent into a dead one."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test", close=True)
    gate = inside("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
        assert sock.recv(1) == b""
    assert [event.how for event in gate.gate.events(1)] == [How.INSPECTED]


def test_the_second_connection_resumes_the_session(lab: Lab, inside: Start) -> None:
    """INS-3: new connections to a verified destination cost less; the certificate was verified within the hour."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    for _ in range(3):
        assert gate.ask("a.test:443", get("a.test", "/", "Connection: close")).startswith(b"HTTP/1.1 200 ")
    assert [key[:2] for key in gate.contexts._sessions] == [("a.test", 443)]


def test_a_connection_that_is_cut_while_idle_is_gone(lab: Lab, inside: Start) -> None:
    """GAT-2: an operator's cut by host reaches a connection that is read, between two of its requests."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        gate.gate.events(1)
        serving = gate.gate
        cut = serving.on_thread(
            lambda: serving.gate.cut(serving.task, Reason.CUT, lambda entry: entry.leads_to("a.test", 443))
        )
        assert cut == 1
        assert read_all(sock) == b""


def test_pipelined_requests_are_answered_in_turn(lab: Lab, inside: Start) -> None:
    """GAT-3: what is sent ahead is judged when its turn comes, and refused there."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=ACME)
    data = get("a.test", "/repos/acme/1") + get("a.test", "/repos/acme/2") + get("a.test", "/evil")
    got = gate.ask("a.test:443", data + get("a.test", "/repos/acme/3"))
    assert re.findall(rb"HTTP/1.1 (\d+) ", got) == [b"200", b"200", b"403"]
    assert origin.requests == 2


def test_a_client_that_writes_byte_by_byte_is_read_the_same(lab: Lab, inside: Start) -> None:
    """GAT-4: records of one byte each."""
    lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    data = get("a.test", "/x", "Content-Length: 40", "Connection: close", method="POST") + b"y" * 40
    with gate.tunnel("a.test:443") as sock:
        for byte in data:  # by this thread alone: OpenSSL's connections are not for two
            sock.send(bytes([byte]))
        got = read_all(sock)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.endswith(b"y" * 40)


def test_half_close_of_the_client_lets_the_answer_come(lab: Lab, inside: Start) -> None:
    """GAT-5, B48: a client that has sent its request and shut its direction still gets all of the answer."""
    lab.origin("slow", "1.2.3.4", 443, tls="a.test", interval=0.05)
    with inside("a.test:443").tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        socket.socket.shutdown(sock, socket.SHUT_WR)
        assert answer(sock)[1] == b"xxxxx"


@pytest.mark.parametrize("whole", [True, False])
def test_an_end_that_comes_with_the_handshake_is_seen(lab: Lab, inside: Start, whole: bool) -> None:
    """GAT-5: a client's last handshake message, its request and its end at once: it is answered, or seen to be gone."""
    lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    sock = gate.gate.tunnel("a.test:443")
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = gate.context().wrap_bio(come, go, server_hostname="a.test")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(go.read())
            come.write(sock.recv(65536))
    asked = get("a.test", "/", "Content-Length: 5", method="POST") + b"hello"
    client.write(asked if whole else asked[:-1])
    busy = threading.Event()
    gate.gate.gate.post(lambda: (busy.set(), time.sleep(0.3)))  # so that all of it is there when the gate looks
    assert busy.wait(10)
    sock.sendall(go.read())
    sock.shutdown(socket.SHUT_WR)
    event = gate.gate.event()
    assert event.reason is (Reason.ALLOWED if whole else Reason.CLIENT_GONE)
    assert event.status == (200 if whole else 0)
    sock.settimeout(10)
    while sock.recv(65536):
        pass
    sock.close()
