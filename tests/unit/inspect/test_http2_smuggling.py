"""HTTP/2 that would be something else to who speaks HTTP/1 behind it, or to a sloppy reader (INS-3, INS-4)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from tests.unit.inspect.test_http2 import GET, World

if TYPE_CHECKING:
    from typing import Any

    Fields = list[tuple[str, str]]

POST: Fields = [(":method", "POST"), *GET[1:]]


def free(world: World) -> World:
    """Both ends say whatever they are told to."""
    for end in (world.client, world.site):
        end.config.validate_outbound_headers = False
        end.config.normalize_outbound_headers = False
    return world


def without(name: str) -> Fields:
    """A request without this field."""
    return [field for field in GET if field[0] != name]


def instead(name: str, value: str) -> Fields:
    """A request with another value."""
    return [(key, value if key == name else old) for key, old in GET]


REFUSED: dict[str, Fields] = {
    "no-method": without(":method"),
    "no-scheme": without(":scheme"),
    "no-path": without(":path"),
    "no-authority": without(":authority"),
    "empty-path": instead(":path", ""),
    "path-star": instead(":path", "*"),
    "path-of-another-host": instead(":path", "https://b.test/"),
    "path-with-a-space": instead(":path", "/x HTTP/1.1"),
    "path-with-lines": instead(":path", "/x HTTP/1.1\r\nHost: b.test\r\n\r\nGET /y"),
    "path-with-nul": instead(":path", "/x\0y"),
    "path-high": instead(":path", "/\u00e9"),
    "method-with-a-space": instead(":method", "GET /y"),
    "method-with-lines": instead(":method", "GET / HTTP/1.1\r\nX: y\r\n\r\nGET"),
    "method-empty": instead(":method", ""),
    "method-long": instead(":method", "G" * 33),
    "scheme-http": instead(":scheme", "http"),
    "scheme-upper": instead(":scheme", "HTTPS"),
    "scheme-with-lines": instead(":scheme", "https://b.test/\r\n"),
    "scheme-with-a-host": instead(":scheme", "https://b.test/?x="),
    "authority-user": instead(":authority", "u:p@a.test"),
    "authority-port": instead(":authority", "a.test:0443"),
    "authority-empty-port": instead(":authority", "a.test:"),
    "authority-empty": instead(":authority", ""),
    "authority-list": instead(":authority", "a.test,b.test"),
    "authority-path": instead(":authority", "a.test/x"),
    "authority-lines": instead(":authority", "a.test\r\nX: y"),
    "authority-address": instead(":authority", "1.2.3.4"),
    "authority-below": instead(":authority", "x.a.test"),
    "method-twice": [GET[0], *GET],
    "path-twice": [*GET, (":path", "/y")],
    "authority-twice": [*GET, (":authority", "a.test")],
    "scheme-twice": [*GET, (":scheme", "https")],
    "status": [*GET, (":status", "200")],
    "unknown-pseudo": [*GET, (":foo", "x")],
    "protocol-of-a-get": [*GET, (":protocol", "websocket")],
    "pseudo-late": [GET[0], ("a", "b"), *GET[1:]],
    "pseudo-upper": [*GET[:3], (":Path", "/x")],
    "connect": [(":method", "CONNECT"), (":authority", "a.test:443")],
    "connect-other": [(":method", "CONNECT"), (":authority", "b.test:443")],
    "extended-connect-udp": [(":method", "CONNECT"), (":protocol", "connect-udp"), *GET[1:]],
    "host-twice": [*GET, ("host", "a.test"), ("host", "b.test")],
    "host-other": [*GET, ("host", "b.test")],
    "connection": [*GET, ("connection", "x")],
    "keep-alive": [*GET, ("keep-alive", "x")],
    "proxy-connection": [*GET, ("proxy-connection", "x")],
    "upgrade-h2c": [*GET, ("upgrade", "h2c")],
    "transfer-encoding": [*GET, ("transfer-encoding", "chunked")],
    "transfer-encoding-as-a-variable": [*GET, ("transfer_encoding", "chunked")],
    "content-length-as-a-variable": [*GET, ("content_length", "5")],
    "te": [*GET, ("te", "trailers, gzip")],
    "length-plus": [*GET, ("content-length", "+0")],
    "length-underscore": [*GET, ("content-length", "0_0")],
    "length-list": [*GET, ("content-length", "0, 0")],
    "length-twice": [*GET, ("content-length", "0"), ("content-length", "0")],
    "length-huge": [*GET, ("content-length", "9" * 5000)],
    "length-without-a-body": [*GET, ("content-length", "5")],
    "name-upper": [*GET, ("X-Y", "z")],
    "name-space": [*GET, ("x y", "z")],
    "name-colon": [*GET, ("x:y", "z")],
    "name-lines": [*GET, ("x\r\ny", "z")],
    "name-nul": [*GET, ("x\0", "z")],
    "name-high": [*GET, ("x\u00e9", "z")],
    "name-empty": [*GET, ("", "z")],
    "value-lines": [*GET, ("x", "a\r\nHost: b.test")],
    "value-lf": [*GET, ("x", "a\nb")],
    "value-cr": [*GET, ("x", "a\rb")],
    "value-nul": [*GET, ("x", "a\0b")],
    "value-space-in-front": [*GET, ("x", " a")],
    "value-tab-behind": [*GET, ("x", "a\t")],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_requests_that_are_refused(kind: str) -> None:
    """INS-4, RFC 9113 sections 8.1 to 8.3, issue 6: the stream or the connection ends, unheard."""
    world = free(World())
    with contextlib.suppress(ProtocolError):
        world.ask(REFUSED[kind])
    assert [event for event in world.seen if isinstance(event, RequestReceived)] == []
    heads = [dict(event.headers)[":status"] for event in world.of(ResponseReceived)]
    assert heads in (["400"], ["403"], ["405"], ["421"]) or world.of(ConnectionTerminated) or world.of(StreamReset)
    assert world.middle.streams == 0


PASSES: dict[str, tuple[Fields, Fields]] = {
    "plain": (GET, GET),
    "authority-port": (instead(":authority", "A.Test.:443"), GET),
    "host-the-same": ([*GET, ("host", "a.test")], GET),
    "host-alone": ([*without(":authority"), ("host", "a.test")], GET),
    "te-trailers": ([*GET, ("te", "trailers")], [*GET, ("te", "trailers")]),
    "empty-value": ([*GET, ("x", "")], [*GET, ("x", "")]),
    "tab-inside": ([*GET, ("x", "a\tb")], [*GET, ("x", "a\tb")]),
    "cookies": ([*GET, ("cookie", "a=b"), ("cookie", "c=d")], [*GET, ("cookie", "a=b; c=d")]),
    "proxy-authorization": ([*GET, ("proxy-authorization", "Basic x")], GET),
    "alt-svc": ([*GET, ("alt-svc", "h3")], GET),
    "no-length-of-nothing": ([*GET, ("content-length", "0")], [*GET, ("content-length", "0")]),
    "expect": ([*GET, ("expect", "100-continue")], [*GET, ("expect", "100-continue")]),
}


@pytest.mark.parametrize("kind", PASSES)
def test_requests_that_pass(kind: str) -> None:
    """INS-3: the neighbours, and what of them the destination hears."""
    world = free(World())
    asked, heard = PASSES[kind]
    world.ask(asked)
    (seen,) = [event for event in world.seen if isinstance(event, RequestReceived)]
    assert sorted(seen.headers) == sorted(heard)


@pytest.mark.parametrize(
    ("length", "sent"),
    [("5", b"abc"), ("5", b"abcdefgh"), ("0", b"a"), ("3", b"")],
    ids=["less", "more", "none", "empty"],
)
def test_a_body_of_another_length_is_never_whole(length: str, sent: bytes) -> None:
    """RFC 9113 section 8.1.1, B34: whoever writes it as HTTP/1 behind it would take the next one for it."""
    world = free(World())
    number = world.ask([*POST, ("content-length", length)], ends=False)
    with contextlib.suppress(ProtocolError):
        world.client.send_data(number, sent, end_stream=True)
        world.turn()
    assert [event for event in world.seen if isinstance(event, StreamEnded)] == []


TRAILERS: dict[str, Fields] = {
    "pseudo": [(":path", "/y")],
    "status": [(":status", "200")],
    "lines": [("x", "a\r\nb")],
    "upper": [("X-Y", "z")],
    "connection": [("connection", "close")],
    "transfer-encoding": [("transfer-encoding", "chunked")],
}


@pytest.mark.parametrize("kind", TRAILERS)
def test_trailers_of_a_request_that_are_none(kind: str) -> None:
    """RFC 9113 section 8.1: its stream never ends for the destination."""
    world = free(World())
    number = world.ask(POST, ends=False)
    with contextlib.suppress(ProtocolError):
        world.client.send_data(number, b"hi")
        world.client.send_headers(number, TRAILERS[kind], end_stream=True)
        world.turn()
    assert [event for event in world.seen if isinstance(event, StreamEnded | TrailersReceived)] == []


def test_trailers_that_decide_stay_behind() -> None:
    """B64: the framing, target and identity of a request are said by its head alone, also with '_' in their names."""
    world = free(World())
    number = world.ask(POST, ends=False)
    world.client.send_data(number, b"hi")
    bad = ["content-length", "content_length", "host", "authorization", "cookie", "x-forwarded-for", "x_original_url"]
    world.client.send_headers(number, [*((name, "5") for name in bad), ("x-sum", "1")], end_stream=True)
    world.turn()
    (seen,) = [event for event in world.seen if isinstance(event, TrailersReceived)]
    assert seen.headers == [("x-sum", "1")]


OK = (":status", "200")
ANSWERS: dict[str, Fields] = {
    "no-status": [("x", "y")],
    "status-twice": [OK, (":status", "204")],
    "status-two-digits": [(":status", "20")],
    "status-plus": [(":status", "+20")],
    "status-words": [(":status", "200 OK")],
    "status-lines": [(":status", "200\r\nX: y")],
    "status-zero": [(":status", "000")],
    "switch": [(":status", "101")],
    "path": [OK, (":path", "/x")],
    "unknown-pseudo": [OK, (":foo", "x")],
    "pseudo-late": [("x", "y"), OK],
    "name-upper": [OK, ("X-Y", "z")],
    "name-lines": [OK, ("x\r\ny", "z")],
    "value-lines": [OK, ("x", "a\r\nSet-Cookie: b")],
    "value-nul": [OK, ("x", "a\0b")],
    "value-space": [OK, ("x", "a ")],
    "connection": [OK, ("connection", "close")],
    "transfer-encoding": [OK, ("transfer-encoding", "chunked")],
    "upgrade": [OK, ("upgrade", "h2c")],
    "length-words": [OK, ("content-length", "two")],
}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("interim", [False, True])
def test_answers_that_are_none(kind: str, interim: bool) -> None:
    """GAT-4, issue 6: nothing of them reaches the client, also behind an interim answer."""
    world = free(World())
    world.ask(GET)
    with contextlib.suppress(ProtocolError):
        if interim:
            world.site.send_headers(1, [(":status", "103"), ("link", "</x>")])
        world.site.send_headers(1, ANSWERS[kind])
        world.site.send_data(1, b"hi", end_stream=True)
        world.turn()
    answered = [dict(event.headers)[":status"] for event in world.of(ResponseReceived)]
    assert answered in ([], ["502"])
    assert b"hi" not in b"".join(event.data for event in world.of(DataReceived))
    assert answered or world.of(StreamReset) or world.of(ConnectionTerminated)
    assert len(world.of(InformationalResponseReceived)) <= interim


@pytest.mark.parametrize(
    ("length", "sent"), [("5", b"abc"), ("1", b"abc"), ("3", b""), ("0", b"a")], ids=["less", "more", "empty", "none"]
)
def test_an_answer_of_another_length_is_never_whole(length: str, sent: bytes) -> None:
    """RFC 9113 section 8.1.1: the client sees a reset, or the end of the connection."""
    world = free(World())
    world.ask(GET)
    with contextlib.suppress(ProtocolError):
        world.site.send_headers(1, [OK, ("content-length", length)])
        world.site.send_data(1, sent, end_stream=True)
        world.turn()
    assert not [event for event in world.of(StreamEnded) if dict(_head(world)).get(":status") == "200"]


def _head(world: World) -> Any:
    heads = world.of(ResponseReceived)
    return heads[-1].headers if heads else []
