"""A client's connection up to its tunnel or its refusal."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.gate.kit import Clock, read_exactly, read_head, small, wait
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


def test_a_tunnel_carries_bytes_both_ways_and_is_recorded(lab: Lab, serve: Serve) -> None:
    """GAT-1, JRN-1: CONNECT to an allowed name, with what was moved on record."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(b"ping\n")
        assert read_exactly(sock, 5) == b"ping\n"
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""
    event = gate.event()
    assert (event.verdict, event.how, event.reason) == (Verdict.ALLOW, How.TUNNELED, Reason.ALLOWED)
    assert (event.host, event.port, event.address, event.status, event.method) == (
        "a.test",
        443,
        "1.2.3.4",
        200,
        "CONNECT",
    )
    assert (event.bytes_up, event.bytes_down, event.rule) == (5, 5, "a.test:443")
    wait(lambda: gate.recording.flushes >= 1)  # at the end of the turn


@pytest.mark.parametrize(
    "request_line",
    [
        b"CONNECT a.test:443 HTTP/1.0\r\n\r\n",
        b"CONNECT a.test:443 HTTP/1.0\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
        b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"CONNECT A.TEST.:443 HTTP/1.1\r\nHost: A.TEST.:443\r\nUser-Agent: curl/7.88\r\n\r\n",
    ],
)
@pytest.mark.parametrize("by_byte", [False, True])
def test_what_real_clients_send_is_accepted(lab: Lab, serve: Serve, request_line: bytes, by_byte: bool) -> None:
    """B61, B62, GAT-1, GAT-2: HTTP/1.0 without Host, credentials or none, Host without a port, case, final dot."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = serve("a.test:443")
    assert gate.raw(request_line, by_byte=by_byte, until=b"hi") == b"HTTP/1.1 200 Connection established\r\n\r\nhi"


@pytest.mark.parametrize(
    "target",
    [
        "a.test", "a.test:", "a.test:0", "a.test:65536", "a.test:+443", "a.test:0443", "a.test:443x", ":443", "[::1]",
        "http://a.test:443", "2001:db8::1:443", "[[::1]]:443", "[::1:443", "::1:443", "[fe80::1%25lo]:443",
        "[1.2.3.4]:443", "0177.0.0.1:443", "2130706433:443", "127.1:443", "0x7f000001:443", "a..test:443",
    ],
)  # fmt: skip
def test_a_malformed_target_is_400_and_hurts_nobody_else(lab: Lab, serve: Serve, target: str) -> None:
    """B43, B44, B25, B26: an answer and no crash, no look-up, and the next client is served."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = serve("a.test:443", default=Verdict.DENY)
    answer = gate.raw(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Connection: close\r\n" in answer
    assert lab.dns.queries == []
    event = gate.event()
    assert (event.how, event.verdict, event.status) == (How.REFUSED, Verdict.DENY, 400)
    gate.tunnel("a.test:443").close()


@pytest.mark.parametrize(
    "data",
    [b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"],
)
def test_origin_form_is_refused_with_a_line_that_helps(lab: Lab, serve: Serve, data: bytes) -> None:
    """B31: 400, the body says that this is a proxy, and nothing upstream hears of it."""
    gate = serve("a.test")
    answer = gate.raw(data)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"proxy" in answer
    assert gate.event().reason is Reason.REQUEST_FORM
    assert lab.dns.queries == []


@pytest.mark.parametrize(
    ("data", "answer", "what"),
    [
        (b"\x16\x03\x01\x02\x00\x01", b"HTTP/1.1 400 ", b"write http://"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 ", b"ProxyCommand"),
        (b"\x04\x01\x00\x50\x01\x02\x03\x04\x00", b"\x00\x5b" + bytes(6), b""),
        (b"\x04\x01\x00\x50\x00\x00\x00\x01\x00a.test\x00", b"\x00\x5b" + bytes(6), b""),
        (b"\x00\x00", b"HTTP/1.1 400 ", b"method"),
    ],
)
@pytest.mark.parametrize("by_byte", [False, True])
def test_another_protocol_on_the_proxys_port_is_answered_and_not_waited_for(
    lab: Lab, serve: Serve, data: bytes, answer: bytes, what: bytes, by_byte: bool
) -> None:
    """GAT-1, B31, B43: it hears at its first byte what is spoken here, SOCKS4 in its own words."""
    gate = serve("a.test")
    told = gate.raw(data, by_byte=by_byte, timeout=60)
    assert told.startswith(answer)
    assert what in told
    assert gate.event().reason is Reason.BAD_REQUEST
    assert lab.dns.queries == []


def test_a_refused_connect_is_answered_once_and_never_read_on(lab: Lab, serve: Serve) -> None:
    """B37, B73, GAT-3: one 403, end of file; what was sent ahead is no request."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = serve("allowed.test")
    answer = gate.raw(
        b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n"
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert b'Proxy-Status: tidegate; error=http_request_denied; details="no-rule"' in answer
    assert b"--allow denied.test:443" in answer
    assert origin.connections == 0
    assert len(gate.events(1)) == 1
    assert lab.dns.queries == []


def test_early_bytes_of_an_allowed_connect_arrive_intact(lab: Lab, serve: Serve) -> None:
    """B37: what an optimistic client sent with its CONNECT goes into the tunnel, in order."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("a.test:443")
    blob = bytes(range(1, 256)) * 40
    answer = gate.raw(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n\x00" + blob, shut=True)
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n\x00" + blob


def test_a_denied_name_causes_no_look_up(lab: Lab, serve: Serve) -> None:
    """B29, ADR-4: rules first; the neighbour that is allowed is looked up."""
    lab.dns.set("*.evil.test", A=["1.2.3.4"])
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443)
    gate = serve("a.test:443", deny=("**.evil.test",))
    assert b" 403 " in gate.raw(b"CONNECT c2VjcmV0.evil.test:443 HTTP/1.1\r\nHost: c2VjcmV0.evil.test:443\r\n\r\n")
    assert lab.dns.queries == []
    gate.tunnel("a.test:443").close()
    assert lab.dns.count("a.test", "A") == 1


def test_a_policy_without_rules_refuses_all_before_any_2xx(serve: Serve) -> None:
    """B73: the first bytes of the answer are the refusal."""
    gate = serve()
    for host in ("a.test:443", "1.2.3.4:443", "[2600:beef::1]:443", "localhost:22"):
        assert gate.raw(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()).startswith(b"HTTP/1.1 403")


def test_the_verdict_does_not_depend_on_who_sends(serve: Serve) -> None:
    """B74: a relay in between gets what the direct client gets."""
    gate = serve("a.test:443")
    data = b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n"
    direct = gate.raw(data)
    relay = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(relay.getsockname()) as sender:
        inner, _ = relay.accept()
        sender.sendall(data)
        with inner, gate.connect() as sock:
            sock.sendall(inner.recv(4096))
            relayed = read_exactly(sock, len(direct))
    relay.close()
    assert direct == relayed


def test_port_not_allowed_is_told_apart(lab: Lab, serve: Serve) -> None:
    """B41: 403 that names port and rule; the port that is allowed passes."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 22)
    gate = serve("a.test:443", "a.test:22")
    answer = gate.raw(b"CONNECT a.test:8443 HTTP/1.1\r\nHost: a.test:8443\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"port-not-allowed" in answer
    assert b"--allow a.test:8443" in answer
    gate.tunnel("a.test:22").close()


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (b"GET http://a.test/" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a.test\r\n\r\n", 414, Reason.TARGET_TOO_LONG),
        (
            b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" + b"X: 1\r\n" * 200 + b"\r\n",
            431,
            Reason.HEADERS_TOO_LARGE,
        ),
        (
            b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
            431,
            Reason.HEADERS_TOO_LARGE,
        ),
        (b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: " + b"y" * 1_000_000, 431, Reason.HEADERS_TOO_LARGE),
        (b"\r\n\r\n", 400, Reason.BAD_REQUEST),
        (b"\x80\x81", 400, Reason.BAD_REQUEST),
        (b"GET http://a.test/ HTTP/2.0\r\nHost: a.test\r\n\r\n", 505, Reason.BAD_VERSION),
    ],
)
def test_heads_beyond_the_limits_get_their_status(serve: Serve, data: bytes, status: int, reason: Reason) -> None:
    """B58, GAT-6: 414, 431 or 400 and a close, never an empty answer."""
    gate = serve("a.test")
    if data == b"\x80\x81":
        data += b"\r\n\r\n"
    answer = gate.raw(data)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:100]
    event = gate.event()
    assert (event.reason, event.status) == (reason, status)


def test_a_slow_head_is_408_and_a_quick_one_is_served(lab: Lab, serve: Serve) -> None:
    """GAT-6: the clock runs from the first moment to the whole head."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443)
    clock = Clock()
    gate = serve("a.test:443", limits=small(header_seconds=10), clock=clock)
    with gate.connect() as sock:
        sock.sendall(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.te")
        wait(lambda: gate.gate.connections == 1)
        clock.goes_on(11, gate)
        assert read_exactly(sock, 12) == b"HTTP/1.1 408"
    event = gate.event()
    assert (event.reason, event.status) == (Reason.HEADER_TIMEOUT, 408)
    with gate.tunnel("a.test:443") as sock:
        clock.goes_on(3600, gate)
        assert sock.recv(20) == b"SSH-2.0-lab\r\n"


def test_a_client_that_leaves_before_its_request_is_whole(serve: Serve) -> None:
    """B67: half a request and a close leave nothing behind; an empty connection is no line in the journal."""
    gate = serve("a.test")
    gate.connect().close()
    with gate.connect() as sock:
        sock.sendall(b"CONNECT a.te")
    assert gate.event().reason is Reason.CLIENT_GONE
    gate.idle()
    assert len(gate.recording.events) == 1


class Asking:
    """An Asker whose person answers when the test says so."""

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.withdrawn = 0

    def ask(self, task: str, decision: Any, answer: Any) -> Any:
        """Keep the question."""
        self.open.append((task, decision, answer))

        def withdraw() -> None:
            self.withdrawn += 1

        return withdraw


def test_ask_without_an_asker_refuses_at_once(lab: Lab, serve: Serve) -> None:
    """ASK-4: the command line asks no one, and says so; no look-up was made."""
    gate = serve(ask=("q.test:443",))
    answer = gate.raw(b"CONNECT q.test:443 HTTP/1.1\r\nHost: q.test:443\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"would wait for approval" in answer
    event = gate.event()
    assert (event.verdict, event.reason, event.how) == (Verdict.ASK, Reason.NO_APPROVER, How.REFUSED)
    assert lab.dns.queries == []


def test_a_question_holds_the_connection_and_its_name(lab: Lab, serve: Serve) -> None:
    """B29, ADR-4: no look-up while a question is open, one after the answer."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    asking = Asking()
    gate = serve(ask=("q.test:443",), asker=asking)
    with gate.connect() as sock:
        sock.sendall(b"CONNECT q.test:443 HTTP/1.1\r\nHost: q.test:443\r\n\r\n")
        wait(lambda: bool(asking.open))
        gate.on_thread(lambda: None)
        assert lab.dns.queries == []
        task, decision, answer = asking.open[0]
        assert task == "t1"
        gate.gate.post(lambda: answer(decision.replace(verdict=Verdict.ALLOW, reason=Reason.ALLOWED)))
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert sock.recv(2) == b"hi"
    assert lab.dns.count("q.test", "A") == 1
    assert asking.withdrawn == 0


def test_a_client_that_gives_up_withdraws_its_question(serve: Serve) -> None:
    """B67: the client vanishes while a question is open."""
    asking = Asking()
    gate = serve(ask=("q.test:443",), asker=asking)
    with gate.connect() as sock:
        sock.sendall(b"CONNECT q.test:443 HTTP/1.1\r\nHost: q.test:443\r\n\r\n")
        wait(lambda: bool(asking.open))
    wait(lambda: asking.withdrawn == 1)
    assert gate.event().reason is Reason.CLIENT_GONE
    gate.idle()


def test_a_literal_is_admitted_before_any_question(serve: Serve) -> None:
    """ADR-6, POL-5: an address that is never reached opens no question."""
    asking = Asking()
    gate = serve(ask=("169.254.169.254:80",), asker=asking)
    answer = gate.raw(b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert asking.open == []
    assert gate.event().reason is Reason.NEVER_ADDRESS


def test_an_unexpected_exception_closes_one_connection_only(lab: Lab, serve: Serve) -> None:
    """No traceback reaches the task; the failure is recorded as what it is, and others go on."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443)
    asking = Asking()
    asking.ask = lambda *_: 1 // 0  # type: ignore[method-assign,assignment]
    gate = serve("a.test:443", ask=("q.test:443",), asker=asking)
    answer = gate.raw(b"CONNECT q.test:443 HTTP/1.1\r\nHost: q.test:443\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"Traceback" not in answer
    assert b"ZeroDivision" not in answer
    assert gate.event().reason is Reason.INTERNAL
    gate.tunnel("a.test:443").close()
    assert [type(error) for error in gate.faults] == [ZeroDivisionError]
    gate.faults.clear()


_PIECES = st.sampled_from(
    [
        b"CONNECT ",
        b"GET ",
        b"POST ",
        b"http://",
        b"a.test",
        b"1.2.3.4",
        b":443",
        b":80",
        b"/",
        b" HTTP/1.1",
        b" HTTP/1.0",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"Host: a.test",
        b"Content-Length: 5",
        b"Transfer-Encoding: chunked",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"hello",
        b"Connection: close",
        b"Expect: 100-continue",
        b"Upgrade: websocket",
        b"\x05\x01\x00",
        b"\x05\x01\x00\x03\x06a.test\x00\x50",
        b"\x16\x03\x01\x00\x05",
        b"\x00",
        b"\xff",
        b" ",
        b":",
    ]
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.one_of(_PIECES, st.binary(max_size=20)), max_size=14), by_byte=st.booleans())
def test_no_bytes_break_the_gate(lab: Lab, fuzzed: Serving, pieces: list[bytes], by_byte: bool) -> None:
    """DESIGN rule 7: whatever a client sends, in whatever pieces, no exception and nothing left open."""
    data = b"".join(pieces)
    if by_byte and len(data) > 200:
        data = data[:200]
    fuzzed.raw(data, by_byte=by_byte, shut=True, timeout=5)
    fuzzed.idle()
    assert not fuzzed.faults
    assert lab.dns is not None


@pytest.fixture
def fuzzed(lab: Lab, serve: Serve) -> Serving:
    """A gate with destinations that answer."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("echo", "1.2.3.4", 80)
    lab.origin("raw", "1.2.3.4", 443)
    return serve("a.test", "1.2.3.4", limits=small(header_seconds=1.0))
