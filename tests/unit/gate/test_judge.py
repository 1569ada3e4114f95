"""The first bytes inside a tunnel (GAT-9)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import Clock, client_hello, read_exactly, read_head, small, wait
from tidegate.gate.judge import decided
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.opening import OpeningReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab, Origin
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


@pytest.fixture
def origin(lab: Lab) -> Origin:
    """An origin that records and says nothing, as a.test:443."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    return lab.origin("canary", "1.2.3.4", 443)


def dribble(sock: Any, data: bytes, step: int) -> None:
    """Send in pieces."""
    for at in range(0, len(data), step):
        sock.sendall(data[at : at + step])


@pytest.mark.parametrize("name", ["a.test", "A.TEST", "a.test."])
@pytest.mark.parametrize("step", [1, 100, 100_000])
def test_a_hello_for_the_same_host_passes_unchanged(origin: Origin, serve: Serve, name: str, step: int) -> None:
    """B115: equal is equal in every spelling and at any pace; the origin gets exactly these bytes."""
    gate = serve("a.test:443")
    hello = client_hello("a.test").replace(b"a.test", name.encode()) if len(name) == 6 else client_hello(name)
    with gate.tunnel("a.test:443") as sock:
        dribble(sock, hello, step)
        origin.wait(lambda o: o.received_size == len(hello))
        assert bytes(origin.received) == hello
    assert gate.event().detail == "tls"


@pytest.mark.parametrize("step", [1, 100_000])
@pytest.mark.parametrize("together", [False, True])
def test_another_name_is_refused_with_an_alert(origin: Origin, serve: Serve, step: int, together: bool) -> None:
    """B115, GAT-9: the origin sees not one byte; the client is told in TLS; it is on record."""
    gate = serve("a.test:443", "b.test:443")
    hello = client_hello("b.test")
    if together:
        with gate.connect() as sock:
            sock.sendall(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n" + hello)
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
            alert = read_exactly(sock, 100)
    else:
        with gate.tunnel("a.test:443") as sock:
            dribble(sock, hello, step)
            alert = read_exactly(sock, 100)
    assert alert[:1] == b"\x15"
    assert alert[5:6] == b"\x02"  # fatal
    event = gate.event()
    assert (event.reason, event.how, event.verdict) == (Reason.SNI_MISMATCH, How.REFUSED, Verdict.DENY)
    assert (event.host, event.bytes_up) == ("a.test", 0)
    assert origin.received_size == 0
    origin.wait(lambda o: o.open == 0)


def test_a_hello_without_a_name_is_recorded_and_strict_refuses_it(origin: Origin, serve: Serve) -> None:
    """GAT-9: `tls: strict` is the neighbour that refuses."""
    hello = client_hello(None)
    gate = serve("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(hello)
        origin.wait(lambda o: o.received_size == len(hello))
    assert gate.event().detail == "tls-no-sni"
    strict = serve("a.test:443", tls="strict")
    with strict.tunnel("a.test:443") as sock:
        sock.sendall(hello)
        assert read_exactly(sock, 100)[:1] == b"\x15"
    assert strict.event().reason is Reason.SNI_REQUIRED
    assert origin.received_size == len(hello)


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02", b"SSH-2.0-x\r\n", b"EHLO a\r\n", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"]
)
def test_what_is_no_tls_is_refused_under_strict(origin: Origin, serve: Serve, data: bytes) -> None:
    """GAT-9: recorded otherwise, refused here."""
    gate = serve("a.test:443", tls="strict")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(data)
        read_exactly(sock, 1000)
    assert gate.event().reason is Reason.TLS_REQUIRED
    assert origin.received_size == 0
    plain = serve("a.test:443")
    with plain.tunnel("a.test:443") as sock:
        sock.sendall(data)
        origin.wait(lambda o: o.received_size == len(data))
    assert plain.event().detail in {"other", "ssh", "clear-http"}


def test_clear_text_http_for_another_host_gets_403_in_clear(origin: Origin, serve: Serve) -> None:
    """GAT-9, B116: Host and absolute targets; the same host passes."""
    gate = serve("a.test:443")
    for data in (
        b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"XODD / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"\r\nGET / HTTP/1.1\nHost: b.test\n\n",
    ):
        with gate.tunnel("a.test:443") as sock:
            sock.sendall(data)
            assert read_exactly(sock, 1000)[:12] in {b"HTTP/1.1 403", b"HTTP/1.1 400"}
    assert origin.received_size == 0
    assert gate.event().reason is Reason.TUNNEL_HOST_MISMATCH
    good = b"GET / HTTP/1.1\r\nHost: A.test:443\r\n\r\n"
    with gate.tunnel("a.test:443") as sock:
        dribble(sock, good, 1)
        origin.wait(lambda o: o.received_size == len(good))


def test_an_odd_method_sent_slowly_hides_no_host(origin: Origin, serve: Serve) -> None:
    """GAT-9: a word that could be data goes at once, but a Host of another name behind it never arrives."""
    gate = serve("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(b"XODD")
        origin.wait(lambda o: o.received_size == 4)
        dribble(sock, b" / HTTP/1.1\r\nHost: b.test\r\n\r\n", 1)
        assert read_exactly(sock, 12) == b"HTTP/1.1 403"
    assert bytes(origin.received) == b"XODD"
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(b"XODD")
        dribble(sock, b" / HTTP/1.1\r\nHost: a.test\r\n\r\n", 1)
        origin.wait(lambda o: o.received_size == 4 + 33)


@pytest.mark.parametrize(
    "data", [b"ping", b"x", b"hello", b"\x00", b"PING\r\n", b"get key\r\n", b"*1\r\n$4\r\nPING\r\n"]
)
def test_protocols_that_wait_for_an_answer_are_not_held(lab: Lab, serve: Serve, data: bytes) -> None:
    """GAT-9: an echo comes back at once, also for a word without a line end."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    gate = serve("a.test:9000")
    with gate.tunnel("a.test:9000") as sock:
        sock.sendall(data)
        assert read_exactly(sock, len(data)) == data


@pytest.mark.parametrize(
    "rest", [b"", b" / HTTP/1.1\r\nHost: b.test\r\n\r\n", b"\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", b"SSH-2.0"]
)
def test_the_short_cut_says_what_the_reader_says(rest: bytes) -> None:
    """GAT-9: a first byte that skips the reader makes OTHER of it, whatever follows; those of TLS and HTTP never do."""
    for first in range(256):
        if decided(first):
            opening = OpeningReader().feed(bytes([first]) + rest)
            assert opening is not None
            assert opening.speaks is Speaks.OTHER
    assert decided(0)
    assert not any(map(decided, b"\x16GETgets\r\n \t"))


def test_a_server_that_speaks_first_is_never_held(lab: Lab, serve: Serve) -> None:
    """GAT-9: the banner comes before the client has said anything."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 22)
    gate = serve("a.test:22")
    with gate.tunnel("a.test:22") as sock:
        assert read_exactly(sock, 13) == b"SSH-2.0-lab\r\n"
        sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        assert read_exactly(sock, 21) == b"SSH-2.0-OpenSSH_9.2\r\n"
    assert gate.event().detail == "ssh"


@pytest.mark.parametrize(
    "data",
    [client_hello("a.test")[:-20], b"\x16\x03\x01", b"GET / HTTP/1.1\r\nHost: a.te"],
    ids=["hello", "record", "request"],  # what is random is no name
)
@pytest.mark.parametrize("how", ["time", "end"])
def test_an_opening_that_never_ends_passes_not_one_byte(origin: Origin, serve: Serve, data: bytes, how: str) -> None:
    """B115: bounded by time, and by the client's end."""
    clock = Clock()
    gate = serve("a.test:443", limits=small(header_seconds=10), clock=clock)
    with gate.tunnel("a.test:443") as sock:
        quiet = gate.timers
        sock.sendall(data)
        if how == "end":
            sock.shutdown(1)
        else:
            wait(lambda: gate.timers > quiet)
            clock.goes_on(11, gate)
        read_exactly(sock, 1000)
    assert gate.event().reason in {Reason.BAD_TLS, Reason.HEADER_TIMEOUT}
    assert origin.received_size == 0


def test_a_client_that_says_nothing_is_left_alone(lab: Lab, serve: Serve) -> None:
    """GAT-9: only what has begun is bounded in time."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 9000)
    clock = Clock()
    gate = serve("a.test:9000", limits=small(header_seconds=10), clock=clock)
    with gate.tunnel("a.test:9000") as sock:
        clock.goes_on(3600, gate)
        sock.sendall(b"\x00")
        assert sock.recv(1) == b"\x00"


def test_a_hello_larger_than_16_kib_is_refused(origin: Origin, serve: Serve) -> None:
    """B115: bounded in bytes."""
    gate = serve("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(b"\x16\x03\x01\x40\x00\x01\x00\xff\xff" + b"\x03\x03" + b"\x00" * 20_000)
        assert read_exactly(sock, 7)[:1] == b"\x15"
    assert gate.event().reason is Reason.BAD_TLS
    assert origin.received_size == 0


def test_a_name_in_a_tunnel_to_a_literal_needs_a_rule_too(lab: Lab, serve: Serve) -> None:
    """GAT-9: the name is judged at that port; allowed passes, denied and asked do not."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443", "a.test:443", ask=("q.test:443",))
    hello = client_hello("a.test")
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(hello)
        origin.wait(lambda o: o.received_size == len(hello))
    for name, reason in (("b.test", Reason.NO_RULE), ("q.test", Reason.NO_APPROVER)):
        with gate.tunnel("1.2.3.4:443") as sock:
            sock.sendall(client_hello(name))
            assert read_exactly(sock, 7)[:1] == b"\x15"
        # The allowed tunnel may end, and be recorded, later than those that were cut.
        wait(lambda pair=(name, reason): pair in {(e.host, e.reason) for e in gate.recording.events})  # type: ignore[misc]
    assert origin.received_size == len(hello)
    assert lab.dns.queries == []


def test_a_question_about_the_name_holds_the_hello(lab: Lab, serve: Serve) -> None:
    """GAT-9, ASK-1: the person says yes, and hello and what came behind it go on."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    questions: list[Any] = []

    class Asking:
        def ask(self, _task: str, decision: Any, answer: Any) -> Any:
            questions.append((decision, answer))
            return lambda: None

    gate = serve("1.2.3.4:443", ask=("q.test:443",), asker=Asking())
    hello = client_hello("q.test")
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(hello)
        wait(lambda: bool(questions))
        sock.sendall(b"behind")
        time.sleep(0.05)
        assert origin.received_size == 0
        decision, answer = questions[0]
        gate.gate.post(lambda: answer(decision.replace(verdict=Verdict.ALLOW, reason=Reason.ALLOWED)))
        origin.wait(lambda o: o.received_size == len(hello) + 6)
