"""Secrets at the gate: a stand-in becomes the value for its own host, in its place, and nowhere else (INS-5)."""

from __future__ import annotations

import base64
import random
import re
import ssl
import time
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.coded import Coder, coded
from tests.unit.gate.inside import answer, get, inside, read_all
from tests.unit.gate.kit import read_exactly, read_head, read_until
from tidegate.gate.open_now import open_now
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits
from tidegate.model.verdict import How
from tidegate.wire.body import ChunkedBody

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.inside import Inside

    Start = Callable[..., Inside]

__all__ = ["inside"]

VALUE, STANDS = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"
NONE = RuleLimits()
BEARER = f"Authorization: Bearer {STANDS.decode()}"


def secret(place: Place) -> tuple[Secret, ...]:
    """One secret of a.test."""
    return (Secret("TOKEN", (("a.test", 443),), place, VALUE, STANDS),)


TOKEN = secret(Place(Where.BEARER))


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])


def basic(text: bytes) -> str:
    """The value of an Authorization field."""
    return f"Basic {base64.b64encode(text).decode()}"


@pytest.mark.parametrize(
    ("place", "path", "line", "seen"),
    [
        (Place(Where.BEARER), "/", BEARER, b"Authorization: Bearer " + VALUE),
        (Place(Where.BASIC), "/", f"Authorization: {basic(b'u:' + STANDS)}", basic(b"u:" + VALUE).encode()),
        (Place(Where.HEADER, b"x-api-key"), "/", f"X-Api-Key: {STANDS.decode()}", b"X-Api-Key: " + VALUE),
        (Place(Where.QUERY, b"key"), f"/x?key={STANDS.decode()}", "A: b", b"GET /x?key=" + VALUE + b" HTTP/1.1"),
    ],
)
def test_the_origin_sees_the_value_and_the_task_never(
    lab: Lab, inside: Start, place: Place, path: str, line: str, seen: bytes
) -> None:
    """INS-5, B118: swapped in and, where an answer repeats it, back; a rule without paths is enough."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=secret(place))
    with gate.tunnel("a.test:443") as sock:
        for _ in range(2):
            sock.sendall(get("a.test", path, line, "Accept-Encoding: gzip, br, dcz, *"))
            head, body = answer(sock)
            assert VALUE not in head + body
            assert base64.b64encode(b"u:" + VALUE) not in head + body
            assert STANDS in body or basic(b"u:" + STANDS)[:-3].encode() in body  # its last character shares bits
            assert b"accept-encoding: gzip, br\r\n" in body.lower()
    assert [seen in head for head in origin.heads] == [True, True]
    assert [event.how for event in gate.gate.events(2)] == [How.INSPECTED, How.INSPECTED]


@pytest.mark.parametrize("name", ["X-Back", "Location", "Set-Cookie"])
def test_a_head_that_repeats_the_value(lab: Lab, inside: Start, name: str) -> None:
    """B118: whatever field it is in."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test", headers=[f"{name}: x{VALUE.decode()}y"])
    got = inside("a.test:443", limit=NONE, secrets=TOKEN).ask("a.test:443", get("a.test", "/", "Connection: close"))
    assert f"{name}: x{STANDS.decode()}y\r\n".encode() in got
    assert VALUE not in got


@pytest.mark.parametrize(
    ("path", "line", "says"),
    [
        ("/", f"X-Other: {STANDS.decode()}", b"belongs in bearer, and was sent to a.test:443 elsewhere"),
        (f"/?t={STANDS.decode()}", "A: b", b"belongs in bearer"),
        ("/", f"Authorization: {basic(b'u:' + STANDS)}", b"belongs in bearer"),
        ("/", f"Authorization: AWS4-HMAC-SHA256 Credential={STANDS.decode()}/x", b"a signature cannot be swapped"),
    ],
)
def test_a_stand_in_elsewhere_stops_the_request(lab: Lab, inside: Start, path: str, line: str, says: bytes) -> None:
    """INS-5, B124, GAT-7: 403 inside TLS that names the secret, a line of the journal; the origin hears nothing."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    got = gate.ask("a.test:443", get("a.test", path, line))
    assert got.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"[secret-misdirected; rule 'a.test:443'" in got
    assert b"the secret TOKEN " in got
    assert says in got
    assert VALUE not in got
    event = gate.gate.event()
    assert (event.how, event.reason, event.host, event.port) == (How.REFUSED, Reason.SECRET_MISDIRECTED, "a.test", 443)
    assert origin.requests == 0


def test_another_host_that_is_read_gets_no_stand_in(lab: Lab, inside: Start) -> None:
    """B121: where a redirect leads, the client has the stand-in only, and it is refused; without it all passes."""
    origin = lab.origin("http", "1.2.3.5", 443, tls="b.test")
    gate = inside("a.test:443", "b.test:443", secrets=TOKEN)
    assert b"the secret TOKEN does not belong to b.test:443" in gate.ask("b.test:443", get("b.test", "/", BEARER))
    assert origin.requests == 0
    assert gate.ask("b.test:443", get("b.test", "/", "Connection: close")).startswith(b"HTTP/1.1 200 ")


def test_in_clear_text_nothing_is_swapped(lab: Lab, inside: Start) -> None:
    """B122: a plain request with the stand-in is refused, also to the secret's own host; one without it passes."""
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = inside("a.test:443", "a.test:80", limit=NONE, secrets=TOKEN)
    line = f"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{BEARER}\r\n\r\n".encode()
    got = gate.gate.raw(line)
    assert got.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"secret-misdirected" in got
    assert b"the secret TOKEN does not belong to a.test:80" in got
    assert origin.requests == 0
    assert gate.gate.event().reason is Reason.SECRET_MISDIRECTED
    plain = gate.gate.raw(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
    assert plain.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("line", [BEARER, f"Authorization: {basic(b'u:' + STANDS)}", f"X-Other: {STANDS.decode()}"])
def test_nor_in_clear_text_inside_a_tunnel(lab: Lab, inside: Start, line: str) -> None:
    """B122: as a captured client sends it, or after CONNECT: the first request is looked at, and one without passes."""
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = inside("a.test:443", "a.test:80", limit=NONE, secrets=TOKEN)
    with gate.gate.tunnel("a.test:80") as sock:
        sock.sendall(get("a.test", "/", line))
        got = read_all(sock)
    assert got.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"secret-misdirected" in got
    assert origin.requests == 0
    assert gate.gate.event().reason is Reason.SECRET_MISDIRECTED
    with gate.gate.tunnel("a.test:80") as sock:
        sock.sendall(get("a.test", "/", "Connection: close"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")


def test_what_cannot_be_kept_free_of_the_value_does_not_pass(lab: Lab, inside: Start) -> None:
    """B118: an answer in an unknown coding is 502 and a WebSocket 403, at a host of a secret alone."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test", headers=["Content-Encoding: exi"])
    lab.origin("http", "1.2.3.5", 443, tls="b.test", headers=["Content-Encoding: exi"])
    gate = inside("a.test:443", "b.test:443", secrets=TOKEN)
    assert gate.ask("a.test:443", get("a.test")).startswith(b"HTTP/1.1 502 ")
    assert gate.ask("b.test:443", get("b.test", "/", "Connection: close")).startswith(b"HTTP/1.1 200 ")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    offer = get("a.test", "/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key)
    got = gate.ask("a.test:443", offer)
    assert b"a WebSocket cannot be kept free of a secret's value" in got


def test_events_stream_and_chunks_stay_chunks(lab: Lab, inside: Start) -> None:
    """B119: the first event is there long before the last one is sent."""
    lab.origin("stream", "1.2.3.4", 443, tls="a.test", interval=600)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", BEARER, "Connection: close"))
        head = read_head(sock)
        assert b"transfer-encoding: chunked" in head.lower()
        event = b"9\r\ndata: 0\n\n\r\n"
        assert read_exactly(sock, len(event)) == event
    lab.origin("stream", "1.2.3.5", 443, tls="a.test", count=2, interval=0)
    lab.dns.set("a.test", A=["1.2.3.5"])
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", BEARER, "Connection: close"))
        got = read_all(sock)
    assert [int(one) for one in re.findall(rb"data: (\d)", got)] == [0, 1]
    assert got.endswith(b"0\r\n\r\n")


def test_a_client_of_both_gets_what_the_origin_speaks(lab: Lab, inside: Start) -> None:
    """INS-3: nothing is translated, with secrets as without."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443", "h2", "http/1.1") as sock:
        assert sock.selected_alpn_protocol() in {"http/1.1", None}
        sock.sendall(get("a.test", "/", "Connection: close"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")


KINDS = ("gzip", "deflate", "raw-deflate", "br", "zstd")


def unchunked(data: bytes) -> bytes:
    """Return the body of a chunked message, which has to be whole."""
    reader = ChunkedBody(decode=True)
    spans = reader.feed(data)[1]
    assert reader.done
    return b"".join(spans)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("codings", [*((kind,) for kind in KINDS), ("gzip", "br")], ids="-".join)
def test_a_coded_echo_is_clean(lab: Lab, inside: Start, codings: tuple[str, ...], framing: str) -> None:
    """B118: gzip, deflate, br, zstd and two in a row; the answer is decoded, whole, and without the value."""
    origin = lab.origin("coded", "1.2.3.4", 443, tls="a.test", codings=list(codings), framing=framing, size=7)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    accept = "Accept-Encoding: gzip, deflate, br, zstd"
    head, _, body = gate.ask("a.test:443", get("a.test", "/", BEARER, accept, "Connection: close")).partition(
        b"\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-encoding" not in head.lower()
    echoed = unchunked(body)
    assert b"Authorization: Bearer " + STANDS in echoed
    assert VALUE not in echoed
    assert b"Authorization: Bearer " + VALUE in origin.heads[0]
    assert b"accept-encoding: gzip, deflate, br, zstd\r\n" in origin.heads[0]


def test_a_coded_answer_leaves_the_connection_in_use(lab: Lab, inside: Start) -> None:
    """GAT-3: three requests on one connection, a HEAD among them, each answer read to its own end."""
    origin = lab.origin("coded", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443") as sock:
        for method in ("GET", "HEAD", "GET"):
            sock.sendall(get("a.test", "/", BEARER, "Accept-Encoding: gzip", method=method))
            head = read_head(sock)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert b"content-length" not in head.lower()
            if method == "GET":
                assert STANDS in unchunked(read_until(sock, b"\r\n0\r\n\r\n"))
    assert (origin.connections, origin.requests) == (1, 3)


def test_a_client_of_http_1_0_has_it_to_the_end(lab: Lab, inside: Start) -> None:
    """RFC 9112 section 6.3: no chunks for it; the end of the connection is the end of the body."""
    lab.origin("coded", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    got = gate.ask("a.test:443", f"GET / HTTP/1.0\r\nHost: a.test\r\n{BEARER}\r\n\r\n".encode())
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert b"Connection: close" in head
    assert body.startswith(b"GET / HTTP/1.1\r\n")
    assert STANDS in body


def test_events_under_a_coding_are_as_prompt(lab: Lab, inside: Start) -> None:
    """B119, B55: the first one is there long before the second is sent, which nobody waits for here."""
    kind = "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
    packed = Coder("gzip").flushed(b"data: 0 " + VALUE + b"\n\n").decode("latin-1")
    first = f"HTTP/1.1 200 OK\r\n{kind}\r\n{len(packed):x}\r\n{packed}\r\n"
    steps = [["head"], ["send", first], ["sleep", 60], ["send", "0\r\n\r\n"]]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443") as sock:
        sock.settimeout(20)
        sock.sendall(get("a.test", "/", BEARER, "Accept-Encoding: gzip"))
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        event = b"data: 0 " + STANDS + b"\n\n"
        sent = b"%x\r\n%b\r\n" % (len(event), event)
        assert read_exactly(sock, len(sent)) == sent


BOMB = coded(bytes(24 << 20), "gzip")


@pytest.mark.parametrize("body", [BOMB, coded(b"x" * 5000 + VALUE, "gzip")[:-9], b"no gzip at all" * 9], ids=range(3))
@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_what_is_no_whole_coding_ends_in_an_error(lab: Lab, inside: Start, body: bytes, version: str) -> None:
    """Issue 6: a bomb, an end in the middle, and what is none; never an end that looks like one. The gate serves on."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    steps = [["head"], ["send", head + body.decode("latin-1")], ["drain"]]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    request = f"GET / HTTP/{version}\r\nHost: a.test\r\n{BEARER}\r\n\r\n".encode()
    # An end without close_notify is the error that it is, to a client that looks.
    strict = gate.context()
    strict.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    tunnel = gate.gate.tunnel("a.test:443")
    with strict.wrap_socket(tunnel, server_hostname="a.test", suppress_ragged_eofs=False) as sock:
        sock.sendall(request)
        got, ended = b"", True
        try:
            while data := sock.recv(1 << 16):
                got += data
        except OSError:
            ended = False
    if got.startswith(b"HTTP/1.1 502 "):
        assert b"upstream-response" in got
    else:
        assert not got.endswith(b"0\r\n\r\n")
        assert not ended
        assert len(got) < 10 << 20
    assert VALUE not in got
    assert gate.gate.event().reason is Reason.UPSTREAM_RESPONSE


def test_a_client_that_does_not_read_stops_what_a_coding_makes(lab: Lab, inside: Start) -> None:
    """GAT-5: 32 MiB that came as three wait undecoded until the client reads; then all of it is there."""
    drawn = random.Random(1)
    text = b"".join(b"%08x%s\n" % (drawn.getrandbits(32), b"-" * 119) for _ in range(1 << 18))
    body = coded(text, "zstd")
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: {len(body)}\r\n\r\n"
    steps = [["head"], ["send", head + body.decode("latin-1")], ["drain"]]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", BEARER, "Accept-Encoding: zstd", "Connection: close"))
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        sent = settled(gate)
        assert sent < 16 << 20
        parts = []
        while data := sock.recv(1 << 20):
            parts.append(data)
    assert gate.gate.event().reason is Reason.ALLOWED
    assert unchunked(b"".join(parts)) == text


def settled(gate: Inside) -> int:
    """What the gate has sent of the answer once it sends no more."""
    last = -1
    while True:
        glances = gate.gate.on_thread(lambda: open_now(gate.gate.gate, [gate.gate.task], 9, count(1).__next__)[0])
        now = sum(glance.down for glance in glances)
        if now == last and now:
            return now
        last = now
        time.sleep(0.3)
