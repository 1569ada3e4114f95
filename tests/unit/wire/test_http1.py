"""Proves that heads are read strictly, within bounds, and the same however their bytes come (GAT-4, B34, B58)."""

from __future__ import annotations

from functools import partial
from typing import Any

import h11
import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.wire.feeding import MORE, bytewise, outcome, pieces_of, read_head, reason_of
from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import (
    RequestHead,
    head_end,
    parse_fields,
    parse_request_head,
    parse_response_head,
    response_head_end,
)

CONNECT = b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"
GET = b"GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nX-Long: a  b\t c\r\nx-empty:\r\n\r\n"
SMALL = Limits(header_bytes=120, header_fields=4, target_bytes=40)


def test_a_request_head_keeps_order_case_and_duplicates() -> None:
    """What was sent is what is there: spelling and order of names, values without outer white space."""
    head = parse_request_head(b"GET http://a/ HTTP/1.0\r\nHOST: a\r\nX-b:\t1 \r\nx-B: 2\r\nX-Utf: \xc3\xa9\r\n\r\n")
    assert (head.method, head.target, head.version) == ("GET", b"http://a/", (1, 0))
    assert head.headers == ((b"HOST", b"a"), (b"X-b", b"1"), (b"x-B", b"2"), (b"X-Utf", b"\xc3\xa9"))
    assert head.names == (b"host", b"x-b", b"x-b", b"x-utf")
    assert head.get(b"x-b") == b"1"
    assert head.values(b"x-b") == [b"1", b"2"]
    assert head.get(b"none") is None


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(kind: Any) -> None:
    """Bytes, a bytearray and a memoryview give the same head."""
    assert parse_request_head(kind(CONNECT)) == parse_request_head(CONNECT)
    assert hash(parse_request_head(kind(CONNECT))) == hash(parse_request_head(CONNECT))


def test_the_end_of_a_head_is_found_while_it_comes() -> None:
    """Bytes behind the blank line are not looked at, and before it the answer is -1 for every prefix."""
    data = CONNECT + b"\x16\x03\x01\n\r\r\x00"
    assert head_end(data) == len(CONNECT)
    for size in range(len(CONNECT)):
        assert head_end(data[:size]) == -1
    assert read_head(bytewise(data)) == (parse_request_head(CONNECT), len(CONNECT))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"GET http://a/", Reason.BAD_REQUEST),  # HTTP/0.9
        (b"GET  http://a/ HTTP/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/  HTTP/1.1", Reason.BAD_REQUEST),
        (b" GET http://a/ HTTP/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/ HTTP/1.1 ", Reason.BAD_REQUEST),
        (b"GET\thttp://a/\tHTTP/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/b c HTTP/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/\xc3\xa9 HTTP/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/\x7f HTTP/1.1", Reason.BAD_REQUEST),
        (b"G(T http://a/ HTTP/1.1", Reason.BAD_REQUEST),
        (b"G\x00T http://a/ HTTP/1.1", Reason.BAD_REQUEST),
        (b"", Reason.BAD_REQUEST),
        (b"M" * 33 + b" http://a/ HTTP/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/ http/1.1", Reason.BAD_REQUEST),
        (b"GET http://a/ ICE/1.0", Reason.BAD_REQUEST),
        (b"GET http://a/ HTTP/1.2", Reason.BAD_VERSION),
        (b"GET http://a/ HTTP/2.0", Reason.BAD_VERSION),
        (b"PRI * HTTP/2.0", Reason.BAD_VERSION),
        (b"GET http://a/ HTTP/1.10", Reason.BAD_VERSION),
        (b"GET http://a/ HTTP/0.9", Reason.BAD_VERSION),
    ],
)
def test_a_request_line_is_method_target_version(line: bytes, reason: Reason) -> None:
    """Everything but `METHOD SP TARGET SP HTTP/1.x` is refused."""
    assert read_head([line + b"\r\nHost: a\r\n\r\n"]) is reason
    assert read_head(bytewise(line + b"\r\nHost: a\r\n\r\n")) is reason


@pytest.mark.parametrize("method", ["M" * 32, "PROPFIND", "get", "M-SEARCH", "X!"])
def test_any_token_is_a_method(method: str) -> None:
    """A method that is not known is no fault, and its case is kept."""
    assert parse_request_head(f"{method} http://a/ HTTP/1.1\r\n\r\n".encode()).method == method


@pytest.mark.parametrize(
    "host",
    [
        b"127.0.0.1\x00.a.test",
        b"127.0.0.1\x01.a.test",
        b"127.0.0.1\t.a.test",
        b"127.0.0.1 .a.test",
        b"127.0.0.1\x7f.a.test",
        "127\u30020\u30020\u30021".encode(),
        "\uff0e\uff61\u2460.a".encode(),
    ],
)
def test_odd_bytes_in_a_host_are_told_as_such(host: bytes) -> None:
    """Controls, spaces and non-ASCII in the host of either form are BAD_HOST, shown escaped only (B04, B05)."""
    for line in (b"CONNECT %b:443 HTTP/1.1", b"GET http://%b/ HTTP/1.1", b"GET http://u:secret@%b/ HTTP/1.1"):
        with pytest.raises(WireError) as caught:
            parse_request_head(line % host + b"\r\nHost: a\r\n\r\n")
        assert caught.value.reason is Reason.BAD_HOST
        assert caught.value.raw.isascii()
        assert caught.value.raw.isprintable()
        assert "secret" not in caught.value.sentence()


@pytest.mark.parametrize("name", [b"Content_Length", b"transfer_encoding", b"TRANSFER_ENCODING"])
def test_framing_under_another_name_is_refused_each_time(name: bytes) -> None:
    """B34, RFC 3875 section 4.1.18: '-' and '_' are one to who hands fields on as variables; of answers nobody does."""
    field = name + b": 5\r\n\r\n"
    assert parse_response_head(b"HTTP/1.1 200 OK\r\n" + field).names == (name.lower(),)
    for _ in range(2):
        with pytest.raises(WireError) as caught:
            parse_request_head(b"GET http://a/ HTTP/1.1\r\nHost: a\r\n" + field)
        assert caught.value.reason is Reason.BAD_FRAMING
    parse_request_head(b"GET http://a/ HTTP/1.1\r\nHost: a\r\nX_" + field)


@pytest.mark.parametrize(
    "field",
    [
        b"Host : a",
        b"Host\t: a",
        b": a",
        b"Host",
        b"X",
        b" folded",
        b"\tfolded",
        b"X-A: a\x00b",
        b"X-A: a\x0bb",
        b"X-A: a\x7f",
        b"X-A\xe9: a",
        b"X A: a",
        b"X(A): a",
        b"Transfer-Encoding: \x0bchunked",
        b"X-A: a\nX-B: b",
        b"X-A: a\rX-B: b",
        b"X-A: a\r\r",
        b"\nX: y",
    ],
)
def test_a_field_line_is_read_strictly(field: bytes) -> None:
    """Space before the colon, folding, empty or odd names, controls, bare CR or LF: 400, from upstream 502 (B34)."""
    request = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n" + field + b"\r\nX-Z: z\r\n\r\n"
    response = b"HTTP/1.1 200 OK\r\nServer: a\r\n" + field + b"\r\nX-Z: z\r\n\r\n"
    for pieces in ([request], bytewise(request)):
        assert read_head(pieces) is Reason.BAD_REQUEST
    for pieces in ([response], bytewise(response)):
        assert read_head(pieces, response=True) is Reason.UPSTREAM_RESPONSE


@pytest.mark.parametrize("field", [b"X-A: a\tb", b"X-A:a", b"X-A: \xe9\xff", b"X-A:", b"X-A: :", b"0: z", b"x'~: z"])
def test_the_neighbours_of_a_bad_field_pass(field: bytes) -> None:
    """A tab inside, no space behind the colon, obs-text and an empty value are all legal."""
    head, _ = read_head([b"GET http://a/ HTTP/1.1\r\n" + field + b"\r\n\r\n"])
    name, _, value = field.partition(b":")
    assert head.headers == ((name, value.strip()),)


@pytest.mark.parametrize(
    "data", [b"GET http://a/ HTTP/1.1\n", b"G\n", b"G\rG", b"GET http://a/ HTTP/1.1\r\r", b"G\r\n\n"]
)
def test_a_bare_line_end_fails_before_the_head_is_whole(data: bytes) -> None:
    """A bare LF or CR can never become a head, so nobody waits for its end."""
    assert read_head([data]) is Reason.BAD_REQUEST
    assert read_head(bytewise(data)) is Reason.BAD_REQUEST
    assert read_head([data[:-1]]) is MORE


@pytest.mark.parametrize("first", [b"\r", b"\n", b" ", b"\t", b"\x00", b"\x04", b"\x16", b"\x80", b"(", b"SSH-"])
def test_a_head_begins_with_a_method(first: bytes) -> None:
    """Behind an empty line, or bytes of another protocol, none is waited for; one rule for a part and for the whole."""
    for data in (first, first + b"\n" + GET, first + GET):
        whole = _detail([data])
        assert whole == _detail(bytewise(data))
        assert whole is not None
    assert read_head([b"\r\n\r\n"]) is Reason.BAD_REQUEST
    assert read_head([b"M-SEARCH"]) is MORE


def _detail(pieces: list[bytes]) -> str | None:
    # What is told of a head that comes in these pieces.
    buf = b""
    try:
        for piece in pieces:
            buf += piece
            if (end := head_end(buf)) >= 0:
                parse_request_head(buf[:end])
    except WireError as error:
        return error.detail
    return None


def test_the_bounds_of_a_head() -> None:
    """9 KB of URL is 414, 200 fields and 70 KB of headers are 431, and the largest that fit pass (B58, GAT-6)."""
    start = b"GET http://a/ HTTP/1.1\r\n"
    assert read_head([b"GET http://a/" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n"]) is Reason.TARGET_TOO_LONG
    assert read_head([start + b"X: y\r\n" * 200 + b"\r\n"]) is Reason.HEADERS_TOO_LARGE
    assert read_head([start + b"X: " + b"y" * 70_000 + b"\r\n\r\n"]) is Reason.HEADERS_TOO_LARGE
    longest = b"http://a/" + b"x" * (8192 - 9)
    assert read_head([b"UPDATEREDIRECTREF " + longest + b" HTTP/1.1\r\n\r\n"])[0].target == longest
    assert read_head([b"GET " + longest + b"x HTTP/1.1\r\n\r\n"]) is Reason.TARGET_TOO_LONG
    assert len(read_head([start + b"X: y\r\n" * 100 + b"\r\n"])[0].headers) == 100
    assert read_head([start + b"X: y\r\n" * 101 + b"\r\n"]) is Reason.HEADERS_TOO_LARGE
    room = 65536 - len(start) - len(b"X: \r\n\r\n")
    assert read_head([start + b"X: " + b"y" * room + b"\r\n\r\n"])[1] == 65536
    assert read_head([start + b"X: " + b"y" * (room + 1) + b"\r\n\r\n"]) is Reason.HEADERS_TOO_LARGE


@pytest.mark.parametrize(
    ("start", "filler", "reason", "bound"),
    [
        (b"GET http://a/ HTTP/1.1\r\nX: ", b"y", Reason.HEADERS_TOO_LARGE, 65536),
        (b"GET http://a/", b"x", Reason.TARGET_TOO_LONG, 8192 + 100),
        (b"", b"G", Reason.TARGET_TOO_LONG, 8192 + 100),
    ],
)
def test_a_head_without_end_fails_at_its_bound(start: bytes, filler: bytes, reason: Reason, bound: int) -> None:
    """A megabyte without a newline fails as soon as the bound is passed, not when it has arrived (B58)."""
    buf = bytearray(start)
    for _ in range(1024):
        seen = len(buf)
        buf += filler * 1024
        found = outcome(partial(head_end, buf, seen, DEFAULT_LIMITS))
        if found != -1:
            break
    assert found is reason
    assert len(buf) <= bound + 1024
    assert read_head(bytewise(bytes(buf[: bound + 1]))) is reason


def test_a_response_head_is_read() -> None:
    """A phrase may hold anything printable, be empty, or be missing with its space."""
    for line, phrase in [(b"HTTP/1.1 200 OK then", b"OK then"), (b"HTTP/1.1 200 ", b""), (b"HTTP/1.1 200", b"")]:
        head = parse_response_head(line + b"\r\nA: b\r\n\r\n")
        assert (head.status, head.reason, head.version, head.headers) == (200, phrase, (1, 1), ((b"A", b"b"),))
    assert parse_response_head(b"HTTP/1.0 999 x\r\n\r\n").status == 999


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"ICY 200 OK",
        b"HTTP/2 200",
        b"HTTP/1.2 200 OK",
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 099 OK",
        b"HTTP/1.1 +20 OK",
        b"HTTP/1.1 2x0 OK",
        b"HTTP/1.1\t200 OK",
        b"HTTP/1.1 200\tOK",
        b"http/1.1 200 OK",
        b"HTTP/1.1 200 O\x00K",
    ],
)
def test_a_malformed_status_line_is_the_upstreams_fault(line: bytes) -> None:
    """The client is told 502, whatever was wrong (GAT-4)."""
    assert reason_of(lambda: parse_response_head(line + b"\r\n\r\n")) is Reason.UPSTREAM_RESPONSE


def test_a_response_head_has_bounds() -> None:
    """A response cannot fill memory either; a long status line is no target."""
    assert reason_of(lambda: response_head_end(b"x" * 70_000)) is Reason.UPSTREAM_RESPONSE
    assert response_head_end(b"HTTP/1.1 200 " + b"x" * 20_000) == -1


def test_incomplete_bytes_are_no_head() -> None:
    """The parser itself checks that it got exactly one head."""
    for data in (b"", b"\r\n", GET[:-2], GET[:-1], GET + b"x", GET + GET):
        assert reason_of(lambda data=data: parse_request_head(data)) is Reason.BAD_REQUEST


def test_nothing_secret_is_in_a_repr() -> None:
    """A head in a traceback shows no header value (JRN-5)."""
    head = parse_request_head(b"GET http://a/ HTTP/1.1\r\nAuthorization: Bearer tok\r\n\r\n")
    assert "tok" not in repr(head)
    response = parse_response_head(b"HTTP/1.1 200 OK\r\nSet-Cookie: tok\r\n\r\n")
    assert "tok" not in repr(response)
    assert response == parse_response_head(b"HTTP/1.1 200 OK\r\nSet-Cookie: tok\r\n\r\n")
    assert len({response, parse_response_head(b"HTTP/1.1 200 OK\r\nSet-Cookie: tok\r\n\r\n")}) == 1


def test_parse_fields_is_as_strict_for_trailers() -> None:
    """Trailer lines pass the same checks."""
    assert parse_fields([b"A: b"], DEFAULT_LIMITS) == (((b"A", b"b"),), (b"a",))
    for line in (b"A : b", b"A: \x00", b"A"):
        assert reason_of(lambda line=line: parse_fields([line], DEFAULT_LIMITS)) is Reason.BAD_REQUEST


FRAGMENTS = [
    *(b"GET", b"CONNECT", b" ", b"http://a.test/", b"a.test:443", b"HTTP/1.1", b"HTTP/1.0", b"\r\n", b"\r\n\r\n"),
    *(b"Host: a.test", b"X: y", b":", b"\r", b"\n", b"\t", b"\x00", b"\xe9", b"Content-Length: 3", b"abc", b"x" * 30),
    *(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n", b"Transfer-Encoding: chunked", b"HTTP/1.1 200 OK\r\n"),
]
junk = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=3), max_size=14).map(b"".join)


@given(junk, st.data(), st.booleans())
@example(b"\r\r\n\r\n", None, False)
def test_whole_or_in_pieces_is_the_same(data: bytes, source: Any, response: bool) -> None:
    """A head or one error, the same one for every way the bytes are cut; nothing but WireError is raised."""
    for limits in (DEFAULT_LIMITS, SMALL):
        whole = read_head([data], limits, response=response)
        assert read_head(bytewise(data), limits, response=response) == whole
        if source is not None:
            assert read_head(source.draw(pieces_of(data)), limits, response=response) == whole


NAMES = st.sampled_from([b"Host", b"hOST", b"X-A", b"Accept", b"content-type", b"Cookie"])
VALUES = st.lists(st.sampled_from([b"a", b" ", b"\t", b",", b";=", b"\xe9", b'"q"', b"long" * 9]), max_size=5).map(
    b"".join
)


@st.composite
def nearly_good(draw: Any) -> bytes:
    """Draw request heads that are mostly well formed, with one byte changed in some."""
    method = draw(st.sampled_from([b"GET", b"POST", b"OPTIONS", b"PROPFIND", b"HEAD"]))
    target = draw(st.sampled_from([b"http://a.test/", b"http://a.test:80/x?y=%20", b"/x", b"*", b"http://[::1]/"]))
    version = draw(st.sampled_from([b"HTTP/1.1", b"HTTP/1.0"]))
    fields = draw(st.lists(st.tuples(NAMES, VALUES), max_size=4))
    lines = [b"%b %b %b" % (method, target, version), b"Host: a.test"]
    lines += [b"%b: %b" % field for field in fields if field[0].lower() != b"host"]
    data = bytearray(b"\r\n".join(lines) + b"\r\n\r\n")
    if draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from(b"\r\n\t :,\x00aZ\xff/"))
    return bytes(data)


def as_h11_reads(data: bytes) -> tuple[Any, ...] | None:
    """Return what h11 makes of a request, None where it refuses or waits."""
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=100_000)
    try:
        peer.receive_data(data)
        event = peer.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.Request):
        return None
    return event.method, event.target, event.http_version, [(bytes(n), bytes(v)) for n, v in event.headers]


class Seen:
    """Collects what httptools calls back."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.whole = False

    def on_url(self, url: bytes) -> None:
        """Take the target, which may come in pieces."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take note that the head is whole."""
        self.whole = True


def as_httptools_reads(data: bytes) -> tuple[Any, ...] | None:
    """Return what httptools makes of a request, None where it refuses or waits."""
    seen = Seen()
    parser = httptools.HttpRequestParser(seen)
    try:
        parser.feed_data(data)
    except httptools.HttpParserError:
        return None
    if not seen.whole:
        return None
    return parser.get_method(), seen.url, parser.get_http_version().encode(), seen.headers


@given(nearly_good())
def test_what_others_accept_too_means_the_same(data: bytes) -> None:
    """Where h11 or httptools accepts what we accept, method, target, version and fields are the same."""
    mine = read_head([data])
    if not isinstance(mine, tuple):
        return
    head: RequestHead = mine[0]
    version = b"%d.%d" % head.version
    lower = [(name, pair[1]) for name, pair in zip(head.names, head.headers, strict=True)]
    theirs = as_h11_reads(data)
    if theirs is not None:
        assert theirs == (head.method.encode(), head.target, version, lower)
    theirs = as_httptools_reads(data)
    if theirs is not None:
        values = [(name.lower(), value.strip(b" \t")) for name, value in theirs[3]]
        assert (*theirs[:3], values) == (head.method.encode(), head.target, version, lower)
