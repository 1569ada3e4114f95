"""The answer's side of plain HTTP: heads, bodies, interim and early answers."""

from __future__ import annotations

import resource
import socket
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import Clock, read_exactly, read_head, small
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"


def scripted(lab: Lab, *steps: list[object]) -> None:
    """Let a.test answer exactly so."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("script", "1.2.3.4", 80, steps=[["head"], *steps])


@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 0\r\n\r\n",
        "HTTP/3 200\r\n\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: " + "y" * 70_000 + "\r\n\r\n",
    ],
)
def test_ambiguous_answers_are_502(lab: Lab, serve: Serve, answer: str) -> None:
    """GAT-4: nothing of them is passed on, and both connections close."""
    scripted(lab, ["send", answer], ["drain"])
    gate = serve("a.test")
    got = gate.raw(GET)
    assert got.startswith(b"HTTP/1.1 502 ")
    assert b"hello" not in got
    event = gate.event()
    assert (event.reason, event.status) == (Reason.UPSTREAM_RESPONSE, 502)
    gate.idle()


@pytest.mark.parametrize("size", ["0x5", "+5", "1_0", " 5", "5;a=\n", "5" * 20, "", "-1", "5 "])
def test_bad_chunk_sizes_of_an_answer_cut_it(lab: Lab, serve: Serve, size: str) -> None:
    """B64: no last chunk reaches the client, so it cannot take the answer for whole."""
    scripted(
        lab, ["send", f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\nhello\r\n0\r\n\r\n"], ["drain"]
    )
    gate = serve("a.test")
    assert not gate.raw(GET).endswith(b"0\r\n\r\n")
    assert gate.event().reason in {Reason.UPSTREAM_RESPONSE, Reason.UPSTREAM_CLOSED}


@pytest.mark.parametrize("size", ["0x5", "+5", "1_0", " 5", "5;a=\n", "5" * 20, "5\n"])
def test_bad_chunk_sizes_of_a_request_are_400(lab: Lab, serve: Serve, size: str) -> None:
    """B64: the origin gets no whole request, the client a 400."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("sink", "1.2.3.4", 80)
    gate = serve("a.test")
    head = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    got = gate.raw(f"{head}{size}\r\nhello\r\n0\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 400 "), got
    assert b"hello" not in origin.received
    assert gate.event().reason is Reason.BAD_FRAMING


def test_chunk_data_must_end_with_crlf(lab: Lab, serve: Serve) -> None:
    """B64: `XX` behind the data is no chunk's end, in either direction."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("sink", "1.2.3.4", 80)
    gate = serve("a.test")
    got = gate.raw(
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n"
    )
    assert got.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
)
def test_an_answer_that_ends_too_soon_is_not_completed(lab: Lab, serve: Serve, answer: str) -> None:
    """B64, B50: the client sees what came and then the end of the connection, never a made-up ending."""
    scripted(lab, ["send", answer])
    gate = serve("a.test")
    got = gate.raw(GET)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert not got.endswith(b"0\r\n\r\n")
    assert gate.event().reason is Reason.UPSTREAM_CLOSED
    gate.idle()


def test_no_answer_at_all_is_502(lab: Lab, serve: Serve) -> None:
    """GAT-7: the origin closed, or reset, before it answered."""
    scripted(lab)
    lab.origin("reset", "1.2.3.4", 81, after_head=True)
    gate = serve("a.test")
    for host in (b"a.test", b"a.test:81"):
        got = gate.raw(b"GET http://%b/ HTTP/1.1\r\nHost: %b\r\n\r\n" % (host, host))
        assert got.startswith(b"HTTP/1.1 502 ")
        assert b"connection_terminated" in got
    assert {event.reason for event in gate.events(2)} == {Reason.UPSTREAM_CLOSED}


def test_an_answer_without_length_ends_with_the_connection(lab: Lab, serve: Serve) -> None:
    """RFC 9112 section 6.3: until close; the client is told that its connection closes too."""
    scripted(lab, ["send", "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nhello "], ["sleep", 0.05], ["send", "world"])
    gate = serve("a.test")
    got = gate.raw(GET)
    assert got.endswith(b"\r\n\r\nhello world")
    assert b"Connection: close\r\n" in got
    assert b"X-A: b\r\n" in got
    assert gate.event().reason is Reason.ALLOWED


def test_a_client_of_http_1_0_gets_no_chunks(lab: Lab, serve: Serve) -> None:
    """RFC 9112 section 7: the data alone, and a close."""
    scripted(lab, ["send", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"], ["drain"])
    gate = serve("a.test")
    got = gate.raw(b"GET http://a.test/ HTTP/1.0\r\n\r\n")
    assert got.endswith(b"\r\n\r\nhello")
    assert b"chunked" not in got


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_answers_without_a_body_keep_the_connection(lab: Lab, serve: Serve, status: str) -> None:
    """RFC 9112 section 6.3: 204 and 304 end with their head."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin(
        "script", "1.2.3.4", 80, steps=[["head"], ["send", f"HTTP/1.1 {status}\r\n\r\n"]] * 2 + [["drain"]]
    )
    gate = serve("a.test")
    with gate.connect() as sock:
        for _ in range(2):
            sock.sendall(GET)
            assert read_head(sock).startswith(f"HTTP/1.1 {status[:3]}".encode())
    assert origin.connections == 1


def test_head_has_a_length_and_no_body(lab: Lab, serve: Serve) -> None:
    """RFC 9110 section 9.3.2, also where it is refused."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        for _ in range(2):
            sock.sendall(GET.replace(b"GET", b"HEAD"))
            assert b"Content-Length: 22\r\n" in read_head(sock)
    got = gate.raw(GET.replace(b"GET", b"HEAD").replace(b"a.test", b"b.test"))
    assert got.startswith(b"HTTP/1.1 403 ")
    assert got.endswith(b"\r\n\r\n")


def test_expect_100_continue_is_relayed(lab: Lab, serve: Serve) -> None:
    """B46: the expectation goes up, 100 comes back, then the body flows; an HTTP/1.0 client gets no 100."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("expect", "1.2.3.4", 80)
    echo = lab.origin("echo", "1.2.3.4", 81)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(
            b"PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert read_head(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"x" * 2_000_000)
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert read_exactly(sock, 7) == b"2000000"
    got = gate.raw(b"PUT http://a.test/ HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi")
    assert got.startswith(b"HTTP/1.1 200 ")
    assert gate.event().bytes_up > 2_000_000
    with gate.connect() as sock:
        sock.sendall(
            b"PUT http://a.test:81/ HTTP/1.1\r\nHost: a.test:81\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        echo.wait(lambda o: o.requests == 1)
        assert b"Expect: 100-continue" in echo.heads[0]


def test_a_final_answer_instead_of_100_is_relayed(lab: Lab, serve: Serve) -> None:
    """B46: an origin that answers 401 at once."""
    scripted(lab, ["send", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"], ["drain"])
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(
            b"PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert read_head(sock).startswith(b"HTTP/1.1 401 ")
    assert gate.event().status == 401


@pytest.mark.parametrize("reset", [False, True])
def test_an_early_final_answer_survives_the_upload(lab: Lab, serve: Serve, reset: bool) -> None:
    """B47: 401 right after the head while 10 MB are on their way; the client still reads it."""
    steps: list[list[object]] = [["send", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"]]
    steps += [["sleep", 0.05], ["reset"]] if reset else [["shut"], ["drain"]]
    scripted(lab, *steps)
    gate = serve("a.test")
    got = gate.raw(
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000_000
    )
    assert got.startswith(b"HTTP/1.1 401 ")
    assert got.endswith(b"no")
    assert gate.event().status == 401
    gate.idle()


def test_trailers_travel_and_dangerous_ones_do_not(lab: Lab, serve: Serve) -> None:
    """B50: X-T arrives; Content-Length and Host in trailers are dropped."""
    scripted(
        lab,
        [
            "send",
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                "2\r\nhi\r\n0\r\nX-T: 1\r\nContent-Length: 9\r\nHost: evil.test\r\n\r\n"
            ),
        ],
        ["drain"],
    )
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        read_head(sock)
        assert read_exactly(sock, 20) == b"2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n"


def test_events_arrive_as_they_are_sent(lab: Lab, serve: Serve) -> None:
    """B55, B53: each event is passed on at once, whatever the silence between: the next is sent once it is there."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    clock = Clock()
    gate = serve("a.test", clock=clock)
    with lab.listener("1.2.3.4", 80) as listener, gate.connect() as sock:
        sock.sendall(GET)
        origin, _ = listener.accept()
        with origin:
            assert read_head(origin).startswith(b"GET / HTTP/1.1\r\n")
            origin.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            read_head(sock)
            for event in (b"9\r\ndata: %d\n\n\r\n" % number for number in range(3)):
                origin.sendall(event)
                assert read_exactly(sock, len(event)) == event
                clock.goes_on(3600, gate)


def test_a_slow_reader_stops_the_origin_and_leaving_closes_it(lab: Lab, serve: Serve) -> None:
    """B56: bounded memory while the client does not read; the origin is closed soon after it left."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("download", "1.2.3.4", 80, size=200 << 20)
    gate = serve("a.test")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with gate.connect() as sock:
        sock.sendall(GET)
        read_exactly(sock, 1 << 20)
        time.sleep(0.5)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KiB
    origin.wait(lambda o: o.open == 0)
    assert gate.event().how is How.FORWARDED
    gate.idle()


def test_a_large_answer_arrives_whole(lab: Lab, serve: Serve) -> None:
    """GAT-5: 20 MB through a client that reads in its own time."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("download", "1.2.3.4", 80, size=20 << 20)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        read_head(sock)
        assert len(read_exactly(sock, 20 << 20)) == 20 << 20
    assert gate.event().bytes_down > 20 << 20


def test_the_idle_clock_is_one_for_both_directions(lab: Lab, serve: Serve) -> None:
    """B52: a download with a silent client lives; silence on both sides ends it."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    clock = Clock()
    gate = serve("a.test", limits=small(idle_seconds=60), clock=clock)
    with lab.listener("1.2.3.4", 80) as listener, gate.connect() as sock:
        sock.sendall(GET)
        origin, _ = listener.accept()
        with origin:
            read_head(origin)
            origin.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
            read_head(sock)
            for _ in range(8):
                clock.goes_on(50, gate)
                origin.sendall(b"x")
                assert sock.recv(1) == b"x"
    canary = lab.origin("canary", "1.2.3.4", 81)
    with gate.connect() as sock:
        sock.sendall(b"GET http://a.test:81/ HTTP/1.1\r\nHost: a.test:81\r\n\r\n")
        canary.wait(lambda one: one.received_size > 0)
        clock.goes_on(70, gate)
        assert read_exactly(sock, 1) == b""
    assert gate.event(1).reason is Reason.IDLE_TIMEOUT


def test_an_interim_answer_is_passed_on(lab: Lab, serve: Serve) -> None:
    """RFC 8297: 103 goes to a client of HTTP/1.1 and not to one of HTTP/1.0."""
    scripted(
        lab,
        ["send", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
        ["drain"],
    )
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        assert read_head(sock).startswith(b"HTTP/1.1 103 ")
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
    assert gate.raw(b"GET http://a.test/ HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_reset_in_the_middle_of_an_upload(lab: Lab, serve: Serve) -> None:
    """B67: a client that breaks off takes the origin's connection with it."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("sink", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\nhalf")
        origin.wait(lambda o: o.received_size > 50)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert gate.event().reason is Reason.CLIENT_GONE
    gate.idle()
    origin.wait(lambda o: o.open == 0)


def test_interim_answers_that_do_not_end_are_no_answer(lab: Lab, serve: Serve) -> None:
    """GAT-6: all heads of one answer share the bound of one; a few hundred interim ones pass."""
    scripted(lab, ["send", "HTTP/1.1 102 Processing\r\n\r\n" * 200 + "HTTP/1.1 204 No Content\r\n\r\n"])
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        for _ in range(200):
            assert read_head(sock).startswith(b"HTTP/1.1 102 ")
        assert read_head(sock).startswith(b"HTTP/1.1 204 ")
    gate.idle()
    lab.origin("script", "1.2.3.5", 80, steps=[["head"], ["send", "HTTP/1.1 102 Processing\r\n\r\n" * 2600]])
    lab.dns.set("a.test", A=["1.2.3.5"])
    with gate.connect() as sock:
        sock.sendall(GET)
        assert b"\r\n\r\nHTTP/1.1 502 " in read_exactly(sock, 100_000)
    assert gate.event(1).reason is Reason.UPSTREAM_RESPONSE
