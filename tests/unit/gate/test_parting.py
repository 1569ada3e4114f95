"""Proves how a captured connection is refused: in its own protocol, or with a reset (HLD-6, GAT-9)."""

from __future__ import annotations

import shutil
import socket
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import Serving, client_hello, read_exactly, small, wait
from tidegate.gate import parting
from tidegate.gate.parting import PATIENCE, SERVER_FIRST, speaks
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.ssh import BANNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.captive import Captive

    Capturing = Callable[..., tuple[Serving, Captive]]

ADDRESS = "1.2.3.4"  # no rule names it


def told(captive: Captive, port: int, data: bytes = b"") -> bytes:
    """Connect, send, and return what the client is told; ends in b"RST" where the end is a reset."""
    got = b""
    try:
        with captive.connect(ADDRESS, port) as sock:
            if data:
                sock.sendall(data)
            while part := sock.recv(65536):
                got += part
    except (ConnectionResetError, BrokenPipeError):  # also from connect(): it may find the reset there already
        got += b"RST"
    return got


def test_tls_gets_an_alert(capture: Capturing) -> None:
    """GAT-9: a whole hello, and the first byte of one that comes slowly; on any port."""
    _, captive = capture()
    for port in (443, 8443, 993):
        for data in (client_hello("a.test"), b"\x16"):
            alert = told(captive, port, data)
            assert (alert[:1], alert[5:]) == (b"\x15", b"\x02\x31")  # fatal, access_denied


def test_http_gets_a_page(capture: Capturing) -> None:
    """GAT-7: 403, one line with the rule and what to do; HEAD without the line."""
    gate, captive = capture()
    for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /x HTTP/1.1\r\nContent-Length: 9999999\r\n\r\nabc"):
        answer = told(captive, 80, request)
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert answer.endswith(b"; to allow it: --allow 1.2.3.4:80\n")
        assert b"Connection: close\r\n" in answer
    assert told(captive, 80, b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").endswith(b"\r\n\r\n")
    assert {event.how for event in gate.events(3)} == {How.REFUSED}


def test_a_request_line_that_comes_in_pieces(capture: Capturing) -> None:
    """The protocol is clear after the line, not before: `GET` alone could be something else."""
    _, captive = capture()
    with captive.connect(ADDRESS, 80) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (b"G", b"ET", b" / HT", b"TP/1.1\r\n"):
            sock.sendall(piece)
            time.sleep(0.01)
        assert read_exactly(sock, 12) == b"HTTP/1.1 403"


def test_ssh_gets_a_disconnect_at_once_on_its_port(capture: Capturing) -> None:
    """GAT-9: without a byte of the client; on other ports when its own banner tells."""
    _, captive = capture()
    for port, data in ((22, b""), (22, b"SSH-2.0-x\r\n"), (2222, b"SSH-2.0-OpenSSH_9.9\r\n")):
        answer = told(captive, port, data)
        assert answer.startswith(BANNER)
        assert b"1.2.3.4:%d: an address needs a rule" % port in answer


@pytest.mark.parametrize("port", sorted(SERVER_FIRST))
def test_where_the_server_speaks_first_there_is_a_reset_at_once(
    capture: Capturing, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    """HLD-6: with nothing sent, and without waiting for a client that waits itself."""
    monkeypatch.setattr(parting, "PATIENCE", 3600.0)
    _, captive = capture()
    assert told(captive, port) == b"RST"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\x00\x00\x08\x04\xd2\x16\x2e", b"*x\r\n$4\r\nPING\r\n", b"PING\r\n", b"PI", b"\x05\x01\x00",
     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
)  # fmt: skip
def test_everything_else_is_reset(capture: Capturing, data: bytes) -> None:
    """PostgreSQL's cancelling, inline Redis, SOCKS, clear HTTP/2, half a word and silence: reset."""
    gate, captive = capture()
    assert told(captive, 5433, data) == b"RST"
    assert gate.event().reason is Reason.LITERAL_NOT_NAMED
    gate.idle()


SSL, GSS = b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"\x00\x00\x00\x08\x04\xd2\x16\x30"
STARTUP = b"\x00\x00\x00\x10\x00\x03\x00\x00user\0u\0\0"


@pytest.mark.parametrize(
    ("data", "start"),
    [(STARTUP, b"E"), (SSL + STARTUP, b"NE"), (GSS + SSL + STARTUP, b"NNE"), (b"*1\r\n$4\r\nPING\r\n", b"-ERR ")],
)
def test_a_database_client_is_told_why(capture: Capturing, data: bytes, start: bytes) -> None:
    """GAT-9: PostgreSQL with and without a wish for encryption, and Redis, each in its own words."""
    gate, captive = capture()
    answer = told(captive, 5432, data)
    assert answer.startswith(start)
    assert b"1.2.3.4:5432: an address needs a rule" in answer
    assert gate.event().reason is Reason.LITERAL_NOT_NAMED
    gate.idle()


def test_a_postgres_client_is_waited_for_after_its_wish(capture: Capturing, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start-up packet comes after the answer, so the deadline begins anew; a third wish is one too many."""
    monkeypatch.setattr(parting, "PATIENCE", 3600.0)
    monkeypatch.setattr(parting, "LONG_PATIENCE", 0.05)
    gate, captive = capture()
    assert told(captive, 5433, SSL) == b"NRST"
    assert told(captive, 5433, SSL * 3) == b"NNRST"
    monkeypatch.setattr(parting, "LONG_PATIENCE", 3600.0)
    with captive.connect(ADDRESS, 5433) as sock:
        for _ in range(2):
            sock.sendall(SSL)
            assert sock.recv(1) == b"N"
        sock.sendall(STARTUP)
        assert sock.recv(1) == b"E"
    gate.idle()


@pytest.mark.parametrize(("port", "told_why"), [(443, True), (80, True), (444, False), (5432, False)])
def test_a_client_that_is_slow_to_speak(
    capture: Capturing, monkeypatch: pytest.MonkeyPatch, port: int, told_why: bool
) -> None:
    """GAT-9: a JVM connects half a second before its ClientHello; where clients speak first that is waited for."""
    assert 5 <= parting.LONG_PATIENCE <= 30
    monkeypatch.setattr(parting, "PATIENCE", 0.05)
    _, captive = capture()
    with captive.connect(ADDRESS, port) as sock:
        time.sleep(0.3)  # what is tested is the passing of time
        try:
            sock.sendall(client_hello("a.test"))
            answer = sock.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            answer = b""
    assert (answer[5:] == b"\x02\x31") is told_why


def test_a_silent_client_is_not_kept(capture: Capturing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded in time and number: it counts as a connection until it is reset."""
    assert PATIENCE <= 0.5
    monkeypatch.setattr(parting, "PATIENCE", 3600.0)
    gate, captive = capture(limits=small(connections=3))
    socks = [captive.connect(ADDRESS, 5433) for _ in range(3)]
    wait(lambda: gate.gate.connections == 3)
    assert told(captive, 80, b"GET / HTTP/1.1\r\n\r\n") in (b"", b"RST")
    assert gate.events(4)[-1].reason is Reason.TOO_MANY_CONNECTIONS
    socks.pop().close()
    wait(lambda: gate.gate.connections == 2)
    gate.on_thread(lambda: gate.gate.remove_capture(captive.handle, cut=True))
    assert gate.gate.connections == 0
    for sock in socks:
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        sock.close()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", None),
        (b"\x16", Speaks.TLS),
        (b"\x15\x03", Speaks.OTHER),
        (b"\x80\x2e\x01", Speaks.OTHER),
        (b"GET", None),
        (b"GET / HTTP/1.0\n", Speaks.HTTP),
        (b"SSH-", Speaks.SSH),
        (b"SSH", None),
        (b"EHLO a\r\n", Speaks.OTHER),
    ],
)
def test_what_first_bytes_tell(data: bytes, found: Speaks | None) -> None:
    """None is "not yet"."""
    assert speaks(data) is found


def test_a_refused_client_that_floods_is_bounded(capture: Capturing) -> None:
    """GAT-6: 2,000 refused connections in a loop leave no descriptor, no timer and no connection behind."""
    gate, captive = capture()
    captive.socket_reset(ADDRESS, 3306)
    gate.idle()
    before = gate.on_thread(lambda: (len(gate.gate.reactor.table), gate.gate.reactor.timers))
    for _ in range(2000):
        captive.socket_reset(ADDRESS, 3306)
    gate.idle()
    assert gate.on_thread(lambda: (len(gate.gate.reactor.table), gate.gate.reactor.timers)) == before


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
def test_what_curl_says(lab: Lab, capture: Capturing) -> None:
    """HLD-6: a real client without proxy settings; allowed, refused by name, by port, and by address."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    _, captive = capture("a.test:80", "a.test:443")
    bare = ("curl", "-sS", "--noproxy", "*", "--cacert", lab.ca_file, "-m", "10")
    assert captive.run(*bare, "-o", "/dev/null", "-w", "%{http_code}", "https://a.test/")[:2] == (0, "200")
    assert captive.run(*bare, "-o", "/dev/null", "-w", "%{http_code}", "http://a.test/")[:2] == (0, "200")
    status, _, errors = captive.run(*bare, "https://b.test/")
    assert (status, errors.strip()) == (6, "curl: (6) Could not resolve host: b.test")
    assert captive.run(*bare, "http://a.test:8080/")[1].startswith(
        "a.test:8080: a rule names this host, but with another"
    )
    status, _, errors = captive.run(*bare, "https://a.test:8443/")
    assert status == 35
    assert "alert access denied" in errors
    assert captive.run(*bare, "http://1.2.3.4/")[1].startswith("1.2.3.4:80: an address needs a rule")


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is missing")
def test_what_ssh_says(capture: Capturing) -> None:
    """GAT-9: OpenSSH shows the text of the disconnect message."""
    _, captive = capture("a.test:2222")
    bare = ("ssh", "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
    status, _, errors = captive.run(*bare, "-p", "22", "x@a.test", "true")
    if "No user exists" in errors:
        pytest.skip("ssh wants a user with a name")
    assert status == 255
    assert "a rule names this host, but with another port" in errors
    status, _, errors = captive.run(*bare, "x@b.test", "true")
    assert "Could not resolve hostname b.test" in errors


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is missing")
@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("disable", "FATAL:  a.test:5432: a rule names this host, but with another port"),
        ("prefer", "FATAL:  a.test:5432: a rule names this host, but with another port"),
        ("require", "server does not support SSL, but SSL was required"),
    ],
)
def test_what_psql_says(capture: Capturing, mode: str, says: str) -> None:
    """GAT-9: PostgreSQL's client shows the gate's line, unless it insists on a TLS that nobody offers it."""
    _, captive = capture("a.test:80")
    status, _, errors = captive.run("psql", "-X", f"host=a.test user=u dbname=d sslmode={mode}", "-c", "select 1")
    assert status == 2
    assert says in errors
