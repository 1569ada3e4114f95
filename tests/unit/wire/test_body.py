"""Proves that bodies stream on exactly as far as they are well formed (GAT-4, GAT-5, B50, B64)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import bytewise, outcome, pieces_of, read_body
from tests.unit.wire.others import as_h11_reads, as_httptools_reads
from tidegate.model.reason import Reason
from tidegate.wire.body import MAX_EXTENSION, MAX_TRAILERS, ChunkedBody, CloseBody, LengthBody, make_body
from tidegate.wire.framing import CHUNKED, NO_BODY, UNTIL_CLOSE, Framing, Kind

BAD = Reason.BAD_FRAMING


def plain() -> ChunkedBody:
    """Return the reader of a chunked request."""
    return ChunkedBody()


def decoding() -> ChunkedBody:
    """Return the reader for a client that knows no chunks."""
    return ChunkedBody(decode=True)


def test_a_body_of_known_length_ends_there() -> None:
    """Bytes behind it belong to the next message, and none of it is copied."""
    body = LengthBody(5)
    data = bytearray(b"helloGET /")
    assert body.feed(b"") == (0, [])
    used, spans = body.feed(data)
    assert (used, spans, body.done) == (5, [b"hello"], True)
    assert isinstance(spans[0], memoryview)
    assert spans[0].obj is data
    assert body.feed(b"more") == (0, [])
    body.eof()


def test_a_body_that_is_cut_short_is_an_error() -> None:
    """End of file in the middle is told, never taken for the end of the body."""
    body = LengthBody(5, Reason.UPSTREAM_RESPONSE)
    body.feed(b"hel")
    assert body.remaining == 2
    assert outcome(body.eof) is Reason.UPSTREAM_RESPONSE


def test_a_body_until_close() -> None:
    """Everything belongs to it, and the close completes it."""
    body = CloseBody()
    assert body.feed(b"") == (0, [])
    assert body.feed(b"abc") == (3, [b"abc"])
    assert not body.done
    body.eof()
    assert body.done


def test_make_body_takes_the_reader_that_fits() -> None:
    """One without a body is done before the first byte."""
    assert make_body(NO_BODY).done
    assert make_body(Framing(Kind.LENGTH, 0)).done
    assert not make_body(Framing(Kind.LENGTH, 1)).done
    assert isinstance(make_body(UNTIL_CLOSE), CloseBody)
    chunked = make_body(CHUNKED, Reason.UPSTREAM_RESPONSE, decode=True)
    assert isinstance(chunked, ChunkedBody)
    assert outcome(lambda: chunked.feed(b"x")) is Reason.UPSTREAM_RESPONSE


@pytest.mark.parametrize(
    ("sent", "travels", "data"),
    [
        (b"0\r\n\r\n", b"0\r\n\r\n", b""),
        (b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", None, b"0123456789" * 2),
        (b"0000000000000005\r\nhello\r\n000\r\n\r\n", b"0000000000000005\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"5;a=b\r\nhello\r\n0;x\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b'5;a="q\t\xe9"\r\nhello\r\n0\r\n\r\n', b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"1;" + b"e" * (MAX_EXTENSION - 1) + b"\r\nx\r\n0\r\n\r\n", b"1\r\nx\r\n0\r\n\r\n", b"x"),
        (b"2\r\n\r\n\r\n0\r\n\r\n", b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
        (b"0\r\nX-T: 1\r\n\r\n", b"0\r\nX-T: 1\r\n\r\n", b""),
        (b"0\r\nX-T:1\r\ngrpc-status: 0\r\n\r\n", b"0\r\nX-T: 1\r\ngrpc-status: 0\r\n\r\n", b""),
        (b"0\r\nContent-Length: 9\r\nHost: evil.test\r\nX: y\r\n\r\n", b"0\r\nX: y\r\n\r\n", b""),
        (b"0\r\nTransfer-Encoding: gzip\r\n\r\n", b"0\r\n\r\n", b""),
    ],
)
def test_a_chunked_body_travels_on(sent: bytes, travels: bytes | None, data: bytes) -> None:
    """The validated bytes go on without extensions and forbidden trailers, and end where the body does (B50, B64)."""
    travels = sent if travels is None else travels
    for pieces in ([sent + b"GET /"], bytewise(sent + b"GET /")):
        assert read_body(plain, pieces) == (travels, len(sent), True)
        assert read_body(decoding, pieces) == (data, len(sent), True)


@pytest.mark.parametrize(
    "sent",
    [
        b"0x5\r\nhello\r\n",
        b"+5\r\nhello\r\n",
        b"-5\r\nhello\r\n",
        b"1_0\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"5\t;a\r\nhello\r\n",
        b"\r\nhello\r\n",
        b";a=b\r\n",
        b"g\r\n",
        b"5\nhello\r\n",
        b"5;a=\nhello\r\n",
        b"5;a=\x00\r\nhello\r\n",
        b"5;a=\x7f\r\nhello\r\n",
        b"5;a=b\rc\r\nhello\r\n",
        b"5\rx\nhello\r\n",
        b"5\r\nhelloXX0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhello\r0\r\n\r\n",
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"5\r\nhell\r\n0\r\n\r\n",
        b"00000000000000005\r\nhello\r\n",
        b"12345678901234567890\r\n",
        b"8000000000000000\r\n",
        b"ffffffffffffffff\r\n",
        b"5;" + b"e" * MAX_EXTENSION + b"\r\nhello\r\n",
        b"5;" + b"e" * 5000,
        b"0\r\nX : y\r\n\r\n",
        b"0\r\n X\r\n\r\n",
        b"0\r\nX\r\n\r\n",
        b"0\r\n: y\r\n\r\n",
        b"0\r\nX: y\n\r\n",
        b"0\r\n\n",
        b"0\r\n\rx",
        b"0\r\nX: \x00\r\n\r\n",
        b"0\r\nX: y\r\n\r",
    ],
)
def test_a_malformed_chunk_is_refused(sent: bytes) -> None:
    """What int(text, 16) would take, and every other laxness, is an error, also when it comes byte by byte (B64)."""
    if sent.endswith(b"\r\n\r"):
        sent += b"x"
    for make in (plain, decoding):
        for pieces in ([sent], bytewise(sent)):
            assert read_body(make, pieces) is BAD


def test_the_largest_chunk_size_is_accepted() -> None:
    """The neighbour of the too large: 2**63 - 1."""
    assert read_body(plain, [b"7fffffffffffffff\r\nx"])[2] is False


def test_trailers_are_bounded() -> None:
    """The largest section that fits passes; one byte more, or a megabyte without end, is an error."""
    line = b"X: " + b"y" * (MAX_TRAILERS - 5) + b"\r\n"
    for pieces in (lambda data: [data], bytewise):
        assert read_body(plain, pieces(b"0\r\n" + line + b"\r\n"))[2] is True
        assert read_body(plain, pieces(b"0\r\nX" + line + b"\r\n")) is BAD
    assert read_body(plain, [b"0\r\n" + b"X" * 100_000]) is BAD
    assert read_body(plain, [b"0\r\n" + b"X: y\r\n" * 33 + b"\r\n"]) is BAD


@pytest.mark.parametrize(
    "sent", [b"", b"5", b"5\r\n", b"5\r\nhel", b"5\r\nhello", b"5\r\nhello\r\n", b"0\r\n", b"0\r\n\r", b"0\r\nX: y\r\n"]
)
def test_an_end_before_the_last_chunk_is_an_error(sent: bytes) -> None:
    """A missing final CRLF and then end of file is told, and nothing that went out looks complete (B50, B64)."""
    body = ChunkedBody(Reason.UPSTREAM_RESPONSE)
    out = b"".join(bytes(span) for span in body.feed(sent)[1])
    assert not body.done
    assert b"0\r\n" not in out
    assert outcome(body.eof) is Reason.UPSTREAM_RESPONSE


def test_trailers_that_travel_on_are_known_afterwards() -> None:
    """Those that set framing, routing, credentials or content format are not among them (B50)."""
    body = ChunkedBody()
    body.feed(b"0\r\nX-Sum: 1\r\nAuthorization: x\r\nProxy-Status: x\r\nSet-Cookie: a\r\nx-sum: 2\r\n\r\n")
    assert body.trailers == ((b"X-Sum", b"1"), (b"x-sum", b"2"))
    body.eof()
    assert body.feed(b"rest") == (0, [])


def test_a_large_chunk_is_passed_on_without_a_copy() -> None:
    """One view for each read in the middle of a chunk, and one for a read with many whole chunks."""
    body = ChunkedBody()
    body.feed(b"100000\r\n")
    data = bytearray(65536)
    used, spans = body.feed(data)
    assert (used, len(spans)) == (65536, 1)
    assert isinstance(spans[0], memoryview)
    assert spans[0].obj is data
    many = b"1\r\nx\r\n" * 5000
    used, spans = ChunkedBody().feed(many)
    assert (used, len(spans), bytes(spans[0])) == (len(many), 1, many)


CHUNKY = st.lists(
    st.sampled_from(
        [
            b"0",
            b"1",
            b"3",
            b"a",
            b"\r\n",
            b"\r",
            b"\n",
            b"abc",
            b";x=y",
            b";",
            b"0\r\n\r\n",
            b"3\r\nabc\r\n",
            b"X: y\r\n",
            b"Host: e\r\n",
            b" ",
            b"\x00",
            b"3\r\n",
            b"0\r\n",
            b"0" * 15,
        ]
    ),
    max_size=12,
).map(b"".join)


@given(CHUNKY, st.data())
def test_whole_or_in_pieces_is_the_same(data: bytes, source: Any) -> None:
    """The bytes that travel on, where the body ends and whether it fails do not depend on how its bytes come."""
    for make in (plain, decoding):
        whole = read_body(make, [data])
        assert read_body(make, bytewise(data)) == whole
        assert read_body(make, source.draw(pieces_of(data))) == whole


@given(CHUNKY)
def test_what_travels_on_is_a_fixed_point(data: bytes) -> None:
    """The next hop reads the same data from what travels on, and would change nothing of it."""
    whole = read_body(plain, [data])
    if isinstance(whole, tuple) and whole[2]:
        out = whole[0]
        assert read_body(plain, [out]) == (out, len(out), True)
        assert read_body(decoding, [out])[0] == read_body(decoding, [data])[0]


HEAD = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"


@given(CHUNKY)
def test_what_others_accept_too_means_the_same(data: bytes) -> None:
    """Where h11 or httptools accepts a body we accept, its data and its end are the same; so after we passed it on."""
    mine = read_body(decoding, [data])
    if not isinstance(mine, tuple) or not mine[2]:
        return
    out, used, _ = mine
    travels = read_body(plain, [data])[0]
    theirs = as_h11_reads(HEAD + data)
    if theirs is not None:
        assert theirs == (out, data[used:])
    assert as_h11_reads(HEAD + travels) == (out, b"")
    for sent in (data[:used], travels):
        assert as_httptools_reads(HEAD + sent) in (None, (out, 1))
