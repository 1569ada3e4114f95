"""Proves what the first bytes inside a tunnel are taken for, and what is refused for them (GAT-9, B115)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import hellos
from tests.unit.wire.feeding import bytewise, outcome, pieces_of
from tidegate.model.destination import parse_authority
from tidegate.model.host import canonical_host
from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.model.reason import Reason
from tidegate.wire.client_hello import ClientHello
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.opening import Opening, OpeningReader, clear_text_speaks, opening_verdict


def read(pieces: list[bytes], limits: Limits = DEFAULT_LIMITS) -> Any:
    """Feed the pieces in order; return the opening, None, or the reason of the error."""

    def feed() -> Any:
        reader = OpeningReader(limits)
        for piece in pieces:
            answer = reader.feed(piece)
            if answer is not None:
                return answer
        return None

    return outcome(feed)


def http(*hosts: str) -> Opening:
    """Return the opening of clear-text HTTP that names these hosts."""
    return Opening(Speaks.HTTP, hosts=tuple(canonical_host(host) for host in hosts))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", http("a.test")),
        (b"GET / HTTP/1.1\r\nHost: A.TEST.:8080\r\nX: y\r\n\r\nbody", http("a.test")),
        (b"POST /x HTTP/1.0\r\n\r\n", http()),
        (b"FOO / HTTP/1.1\r\nHost: b.test\r\n\r\n", http("b.test")),
        (b"get / HTTP/1.1\r\nhost: b.test\r\n\r\n", http("b.test")),
        (b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", http("a.test", "b.test")),
        (b"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", http("a.test", "b.test")),
        (b"GET https://b.test?x HTTP/1.1\r\nHost: a.test\r\n\r\n", http("a.test", "b.test")),
        (b"GET /http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", http("a.test")),
        (b"CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", http("a.test", "b.test")),
        (b"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", http("[::1]")),
    ],
)
def test_clear_text_http_names_its_hosts(data: bytes, expected: Opening) -> None:
    """Every Host and the host of an absolute target are seen, with any method (GAT-9)."""
    assert read([data]) == expected
    assert read(bytewise(data)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"\nGET / HTTP/1.1\nHost: b.test\n\n",
        b"\r\n" * 40 + b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET / HTTP/1.1\nHost: b.test\n\n",
        b"GET  / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET\t/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET\x0b/\x0cHTTP/1.1\r\nHost: b.test\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        b"GET / http/1.1\r\nHost: b.test\r\n\r\n",
        b"GET / HTTP/1.1\rHost: b.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : b.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: y\r\n Host: b.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test b.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET / HTTP/3.0\r\nHost: b.test\r\n\r\n",
        b"PRI * HTTP/2.0\nHost: b.test\n\n",
        b"GET /" + b"x" * 70_000,
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000,
    ],
)
def test_what_only_a_lenient_origin_would_read_is_refused(data: bytes) -> None:
    """A request that we read otherwise than the origin must not get by: malformed HTTP fails closed (GAT-9)."""
    whole = read([data])
    assert isinstance(whole, Reason)
    assert whole.status >= 400
    assert read(bytewise(data)) is whole


@pytest.mark.parametrize(
    ("data", "speaks"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", Speaks.SSH),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Speaks.HTTP2),
        (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", Speaks.OTHER),  # PostgreSQL asks for TLS
        (b"\x10\x0c\x00\x04MQTT", Speaks.OTHER),
        (b"*1\r\n$4\r\nPING\r\n", Speaks.OTHER),  # Redis
        (b"EHLO me\r\n", Speaks.OTHER),
        (b"NICK x\nUSER", Speaks.OTHER),
        (b"get key\r\n", Speaks.OTHER),
        (b"0032git-upload-pack /project.git\x00host=b.test\x00", Speaks.OTHER),
        (b"@RSYNCD: 31.0\n", Speaks.OTHER),
        (b"<?xml version='1.0'?>", Speaks.OTHER),
        (b"OPTIONS rtsp://b.test/ RTSP/1.0\r\n", Speaks.OTHER),
        (b"\x16\xfe\xfd\x00", Speaks.OTHER),
        (b"\x14\x00\x00\x00", Speaks.OTHER),
        (b"x" * 33, Speaks.OTHER),
        (b"\xff\xfb\x01", Speaks.OTHER),
    ],
)
def test_other_protocols_are_told_apart(data: bytes, speaks: Speaks) -> None:
    """After their first line or earlier, so that nobody who waits for an answer is held up."""
    assert read([data]) == Opening(speaks)
    assert read(bytewise(data)) == Opening(speaks)


@pytest.mark.parametrize(
    "data", [b"S", b"SSH", b"GET", b"GET / ", b"GET / HTTP/1.1\r", b"PRI * HTTP/2.0", b"\r\n", b"\r"]
)
def test_what_can_still_become_http_is_waited_for(data: bytes) -> None:
    """It stays open, and the reader says so for a deadline."""
    reader = OpeningReader()
    assert reader.feed(data) is None
    assert reader.speaks_so_far is Speaks.HTTP
    assert reader.held == data


def test_tls_is_read() -> None:
    """Whole, with bytes of the tunnel behind it, and byte by byte; all bytes are held to be sent on."""
    data = hellos.real_hello("b.test", ["h2"])
    expected = Opening(Speaks.TLS, ClientHello("b.test", (b"h2",), ech=False))
    assert read([data]) == read(bytewise(data)) == expected
    reader = OpeningReader()
    assert reader.speaks_so_far is None
    assert reader.feed(data[:100]) is None
    assert reader.speaks_so_far is Speaks.TLS
    assert reader.feed(data[100:] + b"early") == expected
    assert reader.feed(b"later") == expected
    assert reader.held == data + b"earlylater"
    assert reader.speaks_so_far is Speaks.TLS
    assert read([hellos.hello(hellos.server_name(b"a.test", b"b.test"))]) is Reason.BAD_TLS


NAME = parse_authority(b"a.test:443")
OWN = parse_authority(b"localhost:443")
LITERAL = parse_authority(b"1.2.3.4:443")


def tls(sni: str | None, *, ech: bool = False) -> Opening:
    """Return the opening of TLS with this SNI."""
    return Opening(Speaks.TLS, ClientHello(sni, (), ech=ech))


@pytest.mark.parametrize(
    ("opening", "where", "loose", "strict"),
    [
        (tls("a.test"), NAME, None, None),
        (tls("b.test"), NAME, Reason.SNI_MISMATCH, Reason.SNI_MISMATCH),
        (tls("x.a.test"), NAME, Reason.SNI_MISMATCH, Reason.SNI_MISMATCH),
        (tls("b.test", ech=True), NAME, Reason.SNI_MISMATCH, Reason.SNI_MISMATCH),
        (tls("a.test", ech=True), NAME, None, None),
        (tls(None), NAME, None, Reason.SNI_REQUIRED),
        (tls("1.2.3.4"), NAME, Reason.SNI_MISMATCH, Reason.SNI_MISMATCH),
        (tls("b.test"), LITERAL, None, None),
        (tls("1.2.3.4"), LITERAL, None, None),
        (tls(None), LITERAL, None, Reason.SNI_REQUIRED),
        (http("a.test"), NAME, None, Reason.TLS_REQUIRED),
        (http("b.test"), NAME, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("a.test", "b.test"), NAME, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("a.test"), LITERAL, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("1.2.3.4"), LITERAL, None, Reason.TLS_REQUIRED),
        (http("127.0.0.1"), OWN, None, Reason.TLS_REQUIRED),
        (http("[::1]"), OWN, None, Reason.TLS_REQUIRED),
        (http("localhost"), parse_authority(b"127.0.0.1:80"), None, Reason.TLS_REQUIRED),
        (http("128.0.0.1"), OWN, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("[::2]"), OWN, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("a.localhost"), OWN, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("127.0.0.1"), LITERAL, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http("localhost"), NAME, Reason.TUNNEL_HOST_MISMATCH, Reason.TLS_REQUIRED),
        (http(), NAME, None, Reason.TLS_REQUIRED),
        (Opening(Speaks.SSH), NAME, None, Reason.TLS_REQUIRED),
        (Opening(Speaks.OTHER), NAME, None, Reason.TLS_REQUIRED),
        (Opening(Speaks.HTTP2), NAME, None, Reason.TLS_REQUIRED),
    ],
)
def test_verdicts(opening: Opening, where: Any, loose: Reason | None, strict: Reason | None) -> None:
    """Another name is always refused; no name and no TLS only under `tls: strict` (GAT-9, B115)."""
    assert opening_verdict(opening, where, strict=False) is loose
    assert opening_verdict(opening, where, strict=True) is strict


def test_limits_hold_inside_a_tunnel() -> None:
    """The same bounds as for a head outside."""
    limits = Limits(header_bytes=200, target_bytes=50)
    assert read([b"GET / HTTP/1.1\r\nX: " + b"x" * 200], limits) is Reason.HEADERS_TOO_LARGE
    assert read([b"GET /" + b"x" * 200], limits) is Reason.TARGET_TOO_LONG
    assert clear_text_speaks(b"GET /" + b"x" * 200, limits) is Speaks.HTTP


OPENINGS = st.lists(
    st.sampled_from(
        [
            b"GET",
            b" ",
            b"/",
            b"HTTP/1.1",
            b"http/",
            b"\r\n",
            b"\n",
            b"\r",
            b"Host: a.test",
            b"SSH-",
            b"PRI * HTTP/2.0\r\n",
            b"\x16\x03\x01",
            b"\x00",
            b"\t",
            b"\x0b",
            b"\x1f",
            b"\xa0",
            b"\x7f",
            b"X",
            b"http://b.test/",
            b"\x00\x05",
            b"\x01",
        ]
    ),
    max_size=12,
).map(b"".join)


@given(OPENINGS, st.data())
def test_whole_or_in_pieces_is_the_same(data: bytes, source: Any) -> None:
    """An opening, a wait or one error, however the bytes come."""
    for limits in (DEFAULT_LIMITS, Limits(header_bytes=60, target_bytes=20)):
        whole = read([data], limits)
        assert read(bytewise(data), limits) == whole
        assert read(source.draw(pieces_of(data)), limits) == whole


@pytest.mark.parametrize(
    "line",
    [
        b"GET /\x01 HTTP/1.1",
        b"GET /\x7f HTTP/1.1",
        b"GET /\x00 HTTP/1.1",
        b"GET\x1f/ HTTP/1.1",
        b"GET\x1c/\x1cHTTP/1.1",
        b"GET\xa0/\xa0HTTP/1.1",
        b"GET\x85/ HTTP/1.1",
        b"\xa0GET / HTTP/1.1",
        b"\x1f\x85 GET / HTTP/1.1",
        b" GET / HTTP/1.1",
        b"PROPFIND /\x01 HTTP/1.1",
    ],
)
def test_a_request_line_that_a_lenient_server_reads_hides_no_host(line: bytes) -> None:
    """GAT-9: Python's http.server reads each of these and serves the Host behind it; here each is refused."""
    data = line + b"\r\nHost: b.test\r\n\r\n"
    assert read([data]) is Reason.BAD_REQUEST
    assert read(bytewise(data)) is Reason.BAD_REQUEST


@pytest.mark.parametrize(
    "data",
    [
        b"\x1f\x8b\x08\x00",  # gzip
        b"\xa0\x00",
        b"GET key\r\n",
        b"GET\x85key\r\n",
        b"GET(\x01",
        b"GETS\x01",
        b"\x85G\x01",
        b"GET\n",
    ],
)
def test_their_neighbours_are_other_protocols(data: bytes) -> None:
    """Neither a first byte that Python calls white space nor the word GET makes HTTP of another protocol."""
    assert read([data]) == Opening(Speaks.OTHER)
    assert read(bytewise(data)) == Opening(Speaks.OTHER)
