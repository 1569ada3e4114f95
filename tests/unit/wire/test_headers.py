"""Proves what of a head travels on and what stays behind (GAT-4, B35, B46, B50, B59)."""

from __future__ import annotations

from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import outcome
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.wire.authority import absolute_form, absolute_target
from tidegate.wire.framing import NO_BODY, Framing, Kind, request_framing
from tidegate.wire.headers import (
    accepts_websocket,
    basic_authorization,
    connect_request,
    connection_options,
    keeps_alive,
    offers_websocket,
    request_head_bytes,
    response_head_bytes,
    websocket_accept,
)
from tidegate.wire.http1 import parse_request_head, parse_response_head

WHERE = parse_authority(b"a.test:80")
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455 section 1.3
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def request(*fields: bytes, version: bytes = b"1.1", method: bytes = b"GET") -> Any:
    """Return the head of a request with these fields."""
    return parse_request_head(
        b"%b http://a.test/ HTTP/%b\r\n%b\r\n" % (method, version, b"".join(f + b"\r\n" for f in fields))
    )


def response(*fields: bytes, status: int = 200, version: bytes = b"1.1") -> Any:
    """Return the head of a response with these fields."""
    return parse_response_head(b"HTTP/%b %d OK\r\n%b\r\n" % (version, status, b"".join(f + b"\r\n" for f in fields)))


def sent(*fields: bytes, version: bytes = b"1.1", **options: Any) -> list[bytes]:
    """Return the lines of the head that goes to the destination."""
    data = request_head_bytes(request(*fields, version=version), WHERE, b"/x", **options)
    assert data.endswith(b"\r\n\r\n")
    return data[:-4].split(b"\r\n")


def answered(*fields: bytes, status: int = 200, close: bool = False, **options: Any) -> list[bytes]:
    """Return the lines of the head that goes to the client."""
    data = response_head_bytes(response(*fields, status=status), close=close, **options)
    assert data.endswith(b"\r\n\r\n")
    return data[:-4].split(b"\r\n")


def test_nothing_else_in_a_request_is_changed() -> None:
    """Order, spelling, duplicates and bytes of end-to-end fields stay; the target is what it is given (GAT-4)."""
    lines = [b"uSer-aGent: x  y", b"HOST: a.test", b"X: 1", b"X: 2", b"x: \xff", b"Empty: ", b"Via: 1.1 p"]
    assert sent(*lines) == [b"GET /x HTTP/1.1", *lines]


@pytest.mark.parametrize(
    "field",
    [
        b"Connection: close",
        b"Connection: Keep-Alive",
        b"Proxy-Connection: Keep-Alive",
        b"Keep-Alive: timeout=5",
        b"Proxy-Authorization: Basic c2VjcmV0",
        b"PROXY-AUTHORIZATION: Basic c2VjcmV0",
        b"Proxy-Authenticate: x",
        b"Proxy-Anything: x",
        b"TE: gzip",
        b"TE: gzip, deflate",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABk",
    ],
)
def test_hop_by_hop_fields_stay_behind(field: bytes) -> None:
    """Each of them alone, in any case, never reaches the destination (B59)."""
    assert sent(b"Host: a.test", field, b"Z: z") == [b"GET /x HTTP/1.1", b"Host: a.test", b"Z: z"]


def test_what_connection_names_stays_behind() -> None:
    """`Connection: close, X-Foo` removes X-Foo, from Connection and Proxy-Connection alike (B59)."""
    fields = [
        b"Host: a.test",
        b"X-Foo: 1",
        b"Connection: close, x-foo ,",
        b"Proxy-Connection: X-Bar",
        b"X-bar: 2",
        b"Y: 3",
    ]
    assert sent(*fields) == [b"GET /x HTTP/1.1", b"Host: a.test", b"Y: 3"]
    assert answered(b"X-Foo: 1", b"Connection: X-Foo", b"Y: 3") == [b"HTTP/1.1 200 OK", b"Y: 3"]


@pytest.mark.parametrize(
    "name",
    [
        b"host",
        b"Authorization",
        b"Content-Length",
        b"Transfer-Encoding",
        b"close, Host",
        b"COOKIE",
        b"X-Api-Key",
        b"Expect",
    ],
)
@pytest.mark.parametrize("field", [b"Connection", b"Proxy-Connection"])
def test_connection_may_not_name_what_the_ends_need(name: bytes, field: bytes) -> None:
    """`Connection: Host` is 400: it would make the gate delete what decides (B59)."""
    head = request(b"Host: a.test", b"%b: %b" % (field, name))
    for call in (connection_options, keeps_alive, lambda head: request_head_bytes(head, WHERE, b"/")):
        assert outcome(lambda call=call: call(head)) is Reason.BAD_REQUEST


def test_in_a_response_it_is_the_upstreams_fault() -> None:
    """502 there; Transfer-Encoding, which a large network really names, passes and is kept."""
    assert (
        outcome(lambda: response_head_bytes(response(b"Connection: Set-Cookie"), close=False))
        is Reason.UPSTREAM_RESPONSE
    )
    assert outcome(lambda: connection_options(response(b"Connection: a b"))) is Reason.UPSTREAM_RESPONSE
    chunked = [b"Transfer-Encoding: chunked", b"Connection: keep-alive, Transfer-Encoding"]
    assert answered(*chunked) == [b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked"]


@pytest.mark.parametrize("value", [b"a b", b'"x"', b"close;x", b"close/1"])
def test_connection_is_a_list_of_tokens(value: bytes) -> None:
    """What is none is 400, and an empty list is fine."""
    assert outcome(lambda: connection_options(request(b"Connection: " + value))) is Reason.BAD_REQUEST
    assert connection_options(request(b"Connection: ,")) == frozenset()


def test_te_trailers_travels_on() -> None:
    """GRPC needs it; it is named in Connection again, as RFC 9110 section 10.1.4 wants."""
    lines = sent(b"Host: a.test", b"TE: gzip, Trailers", b"Connection: TE")
    assert lines == [b"GET /x HTTP/1.1", b"Host: a.test", b"TE: trailers", b"Connection: TE"]
    assert sent(b"Host: a.test", b"TE: trailers", close=True)[-1] == b"Connection: close, TE"


def test_host_is_made_from_the_destination() -> None:
    """It keeps its place and the spelling of its name; where there was none it comes first (B32, B61)."""
    where = parse_authority(b"[2600:beef::1]:8080")
    head = request(b"Proxy-Connection: x", b"A: b", b"hoST: [2600:BEEF:0::1]:8080", b"C: d")
    assert (
        request_head_bytes(head, where, b"/") == b"GET / HTTP/1.1\r\nA: b\r\nhoST: [2600:beef::1]:8080\r\nC: d\r\n\r\n"
    )
    head = request(b"A: b", version=b"1.0")
    assert request_head_bytes(head, where, b"/") == b"GET / HTTP/1.1\r\nHost: [2600:beef::1]:8080\r\nA: b\r\n\r\n"


@pytest.mark.parametrize("method", [b"GET", b"DELETE", b"OPTIONS", b"POST"])
@pytest.mark.parametrize("field", [b"Content-Length: 3", b"Transfer-Encoding: chunked"])
def test_exactly_one_framing_field_travels_on(method: bytes, field: bytes) -> None:
    """It is the one that was judged, whatever the method (B35)."""
    data = request_head_bytes(request(b"Host: a.test", field, method=method), WHERE, b"/")
    assert data == b"%b / HTTP/1.1\r\nHost: a.test\r\n%b\r\n\r\n" % (method, field)


def test_the_expectation_travels_on_but_not_from_http_1_0() -> None:
    """`Expect: 100-continue` is the origin's to answer; a 1.0 client does not wait (B46)."""
    assert b"Expect: 100-continue" in sent(b"Host: a.test", b"Expect: 100-continue")
    assert sent(b"Host: a.test", b"Expect: 100-continue", version=b"1.0") == [b"GET /x HTTP/1.1", b"Host: a.test"]


def test_an_upstream_proxy_gets_the_absolute_form_and_credentials_of_the_gate() -> None:
    """The task's own Proxy-Authorization is gone, the gate's is there once (B59, GAT-8)."""
    head = request(b"Host: a.test", b"Proxy-Authorization: Basic task")
    where, path = absolute_target(head)
    extra = [(b"Proxy-Authorization", basic_authorization(b"me", b"pw"))]
    data = request_head_bytes(head, where, absolute_form(where, path), extra=extra)
    assert data == b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n"
    assert connect_request(parse_authority(b"a.test:443")) == b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
    assert connect_request(parse_authority(b"[::2]:22"), b"Basic x") == (
        b"CONNECT [::2]:22 HTTP/1.1\r\nHost: [::2]:22\r\nProxy-Authorization: Basic x\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("version", "fields", "expected"),
    [
        (b"1.1", [], True),
        (b"1.1", [b"Connection: close"], False),
        (b"1.1", [b"Connection: keep-alive, CLOSE"], False),
        (b"1.1", [b"Connection: keep-alive"], True),
        (b"1.1", [b"Proxy-Connection: close"], False),
        (b"1.0", [], False),
        (b"1.0", [b"Connection: Keep-Alive"], True),
        (b"1.0", [b"Connection: keep-alive, close"], False),
        (b"1.0", [b"Proxy-Connection: Keep-Alive"], False),
    ],
)
def test_persistence(version: bytes, fields: list[bytes], expected: bool) -> None:
    """RFC 9112 section 9.3, and no Proxy-Connection for HTTP/1.0, whose proxies pass it on blindly."""
    assert keeps_alive(request(*fields, version=version)) is expected


def test_nothing_else_in_a_response_is_changed() -> None:
    """Also when it is from HTTP/1.0 the gate speaks 1.1; an empty phrase stays empty."""
    lines = [b"serVer: x", b"Set-Cookie: a", b"Set-Cookie: b", b"Content-Length: 3", b"Proxy-Status: p; error=x"]
    assert answered(*lines) == [b"HTTP/1.1 200 OK", *lines]
    head = parse_response_head(b"HTTP/1.0 404\r\nA: b\r\n\r\n")
    assert response_head_bytes(head, close=True) == b"HTTP/1.1 404 \r\nA: b\r\nConnection: close\r\n\r\n"


def test_hop_by_hop_fields_of_a_response_stay_behind() -> None:
    """With them goes every Upgrade that no 101 accepted, and an origin's try to ask for proxy credentials (B59)."""
    fields = [
        b"Connection: keep-alive",
        b"Keep-Alive: x",
        b"Upgrade: h2",
        b"Proxy-Authenticate: Basic",
        b"Proxy-Connection: x",
    ]
    assert answered(*fields, b"A: b") == [b"HTTP/1.1 200 OK", b"A: b"]


def test_the_connection_of_the_client() -> None:
    """Close is said, and to HTTP/1.0 also that it stays open; an interim response says neither."""
    assert answered(close=True) == [b"HTTP/1.1 200 OK", b"Connection: close"]
    assert answered(client_version=(1, 0)) == [b"HTTP/1.1 200 OK", b"Connection: keep-alive"]
    assert answered(status=103, close=True, client_version=(1, 1)) == [b"HTTP/1.1 103 OK"]


@pytest.mark.parametrize("status", [100, 103, 204])
def test_a_response_without_a_body_announces_none(status: int) -> None:
    """A length in 1xx or 204 could make a lenient client wait; 304 and HEAD keep theirs (RFC 9110 section 8.6)."""
    assert answered(b"Content-Length: 3", b"A: b", status=status) == [b"HTTP/1.1 %d OK" % status, b"A: b"]
    assert answered(b"Transfer-Encoding: chunked", status=status) == [b"HTTP/1.1 %d OK" % status]
    assert b"Content-Length: 3" in answered(b"Content-Length: 3", status=304)


def test_a_decoded_body_is_not_announced_as_chunked() -> None:
    """For a client of HTTP/1.0 Transfer-Encoding and Trailer stay behind (B50)."""
    fields = [b"Transfer-Encoding: chunked", b"Trailer: X", b"A: b"]
    assert answered(*fields, decode=True, close=True) == [b"HTTP/1.1 200 OK", b"A: b", b"Connection: close"]
    assert answered(*fields) == [b"HTTP/1.1 200 OK", *fields]


UPGRADE = [b"Host: a.test", b"Connection: keep-alive, Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: " + KEY]


def test_a_websocket_offer_travels_on() -> None:
    """With Upgrade and Connection, and without what else they offered (GAT-1)."""
    head = request(*UPGRADE, b"Sec-WebSocket-Version: 13")
    assert offers_websocket(head, request_framing(head))
    assert request_head_bytes(head, WHERE, b"/x", websocket=True).split(b"\r\n") == [
        b"GET /x HTTP/1.1",
        b"Host: a.test",
        b"Sec-WebSocket-Key: " + KEY,
        b"Sec-WebSocket-Version: 13",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"",
        b"",
    ]
    both = request(*UPGRADE[:2], b"Upgrade: h2c, WebSocket", UPGRADE[3])
    assert offers_websocket(both, NO_BODY)


@pytest.mark.parametrize(
    ("change", "framing", "method", "version"),
    [
        ({}, NO_BODY, b"POST", b"1.1"),
        ({}, NO_BODY, b"GET", b"1.0"),
        ({}, Framing(Kind.LENGTH, 1), b"GET", b"1.1"),
        ({1: b"Connection: keep-alive"}, NO_BODY, b"GET", b"1.1"),
        ({2: b"Upgrade: h2c"}, NO_BODY, b"GET", b"1.1"),
        ({2: b"Upgrade: websockets"}, NO_BODY, b"GET", b"1.1"),
        ({2: b"X: y"}, NO_BODY, b"GET", b"1.1"),
        ({3: b"X: y"}, NO_BODY, b"GET", b"1.1"),
        ({0: b"Sec-WebSocket-Key: two"}, NO_BODY, b"GET", b"1.1"),
    ],
)
def test_other_offers_are_dropped(change: dict[int, bytes], framing: Framing, method: bytes, version: bytes) -> None:
    """What is no WebSocket offer by RFC 6455 is forwarded as a plain request (GAT-1)."""
    fields = [change.get(number, field) for number, field in enumerate(UPGRADE)]
    head = request(*fields, method=method, version=version)
    assert not offers_websocket(head, framing)
    assert b"pgrade" not in request_head_bytes(head, WHERE, b"/")


ACCEPTED = [b"Upgrade: WebSocket", b"Connection: upgrade", b"Sec-WebSocket-Accept: " + ACCEPT]


def test_a_websocket_needs_a_true_101() -> None:
    """Only the answer to exactly this key opens the tunnel (GAT-5); it travels on whole."""
    head = request(*UPGRADE)
    assert websocket_accept(KEY) == ACCEPT
    assert accepts_websocket(head, response(*ACCEPTED, status=101))
    lines = answered(*ACCEPTED, status=101, switching=True)
    assert lines == [b"HTTP/1.1 101 OK", ACCEPTED[2], b"Upgrade: websocket", b"Connection: Upgrade"]


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (200, ACCEPTED),
        (101, ACCEPTED[:2]),
        (101, ACCEPTED[1:]),
        (101, [ACCEPTED[0], ACCEPTED[2]]),
        (101, [*ACCEPTED, ACCEPTED[2]]),
        (101, [b"Upgrade: h2c", *ACCEPTED[1:]]),
        (101, [b"Upgrade: websocket, h2c", *ACCEPTED[1:]]),
        (101, [*ACCEPTED[:2], b"Sec-WebSocket-Accept: " + ACCEPT.lower()]),
    ],
)
def test_a_false_101_opens_nothing(status: int, fields: list[bytes]) -> None:
    """Another status, another protocol, a wrong or repeated key: no tunnel (GAT-5)."""
    assert not accepts_websocket(request(*UPGRADE), response(*fields, status=status))
    assert not accepts_websocket(request(*UPGRADE), response(*ACCEPTED, status=101, version=b"1.0"))


FIELDS = st.lists(
    st.sampled_from(
        [
            b"Connection: close",
            b"Connection: X-A, TE",
            b"TE: trailers",
            b"X-A: 1",
            b"Upgrade: h2c",
            b"Cookie: c",
            b"X-B:",
            b"Proxy-Authorization: s",
            b"Keep-Alive: 1",
            b"Expect: 100-continue",
            b"Content-Length: 0",
            b"Accept: */*",
        ]
    ),
    max_size=6,
    unique=True,
)


@given(FIELDS, st.booleans(), st.sampled_from([b"1.0", b"1.1"]))
def test_what_is_sent_is_a_head_of_its_own(fields: list[bytes], close: bool, version: bytes) -> None:
    """The next hop reads what travels on strictly, with the same meaning, and h11 does too."""
    head = request(b"Host: a.test", *fields, version=version)
    data = request_head_bytes(head, WHERE, b"/x", close=close)
    again = parse_request_head(data)
    assert again.values(b"host") == [b"a.test"]
    assert not any(name.startswith(b"proxy-") for name in again.names)
    assert request_framing(again) == request_framing(head)
    assert keeps_alive(again) is not close
    assert request_head_bytes(again, WHERE, b"/x", close=close) == data
    peer = h11.Connection(h11.SERVER)
    peer.receive_data(data)
    assert isinstance(peer.next_event(), h11.Request)
