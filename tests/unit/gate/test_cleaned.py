"""Bodies with values of secrets in them: what comes out is as long, framed anew, and without the value."""

from __future__ import annotations

import pytest

from tests.coded import coded
from tidegate.gate.cleaned import CleanedBody
from tidegate.gate.cleaned import cleaned as made_clean
from tidegate.inspect.clean import Cleaner
from tidegate.inspect.scrub import Scrubber
from tidegate.wire.body import ChunkedBody
from tidegate.wire.framing import CHUNKED, NO_BODY, Framing, Kind
from tidegate.wire.http1 import parse_request_head, parse_response_head

VALUE, STANDS = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"
CLEANER = Cleaner(Scrubber([(VALUE, STANDS)]))


def plain(framing: Framing, *, decode: bool = False) -> CleanedBody:
    """A body without a coding."""
    scrub = CLEANER.answer(200, [], [], empty=False)[1]
    assert scrub is not None
    return CleanedBody(framing, scrub, chunked=framing.kind is Kind.CHUNKED and not decode)


def cleaned(framing: Framing, data: bytes, step: int, *, decode: bool = False) -> tuple[bytes, CleanedBody]:
    """Feed a body in pieces."""
    body = plain(framing, decode=decode)
    out = b""
    for at in range(0, len(data), step):
        out += b"".join(body.feed(data[at : at + step])[1])
    return out, body


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_a_body_with_a_length_keeps_it(step: int) -> None:
    """INS-5, B118: also where the value lies at its very end or comes in pieces, and a beginning of one is no value."""
    text = b"a" + VALUE + b"b ghp_Real " + VALUE
    out, body = cleaned(Framing(Kind.LENGTH, len(text)), text, step)
    assert out == b"a" + STANDS + b"b ghp_Real " + STANDS
    assert body.done


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_value_across_chunks_is_found(step: int) -> None:
    """INS-5, B118: chunks are made anew, and no trailer is left to say it."""
    pieces = [b"x" + VALUE[:9], VALUE[9:] + b"y"]
    data = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\nX-End: " + VALUE + b"\r\n\r\n"
    out, body = cleaned(CHUNKED, data, step)
    assert body.done
    whole, rest = b"", out
    while not rest.startswith(b"0\r\n"):
        size, _, rest = rest.partition(b"\r\n")
        whole, rest = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    assert (whole, rest) == (b"x" + STANDS + b"y", b"0\r\n\r\n")
    plain, _ = cleaned(CHUNKED, data, step, decode=True)
    assert plain == whole


def test_what_lasts_to_the_end_gives_up_what_it_held() -> None:
    """INS-5: the beginning of a value that never came is passed on at the end."""
    out, body = cleaned(Framing(Kind.CLOSE), b"tail " + VALUE[:6], 1000)
    assert out == b"tail "
    body.eof()
    assert (body.rest(), body.done) == (VALUE[:6], True)


def test_an_event_is_not_held_back() -> None:
    """B119, B55: what cannot be the beginning of a value goes on at once."""
    body = plain(CHUNKED)
    assert body.feed(b"9\r\ndata: 1\n\n\r\n")[1] == [b"9\r\ndata: 1\n\n\r\n"]


GZIP = b'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: "x"\r\nContent-MD5: AAAA\r\n'


@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize("kind", [Kind.LENGTH, Kind.CHUNKED, Kind.CLOSE])
@pytest.mark.parametrize("step", [1, 50, 5000])
def test_a_coded_body_is_framed_anew(kind: Kind, version: bytes, step: int) -> None:
    """INS-5, B118: in chunks, or to the end of the connection for 1.0; the coding, its length and digest are gone."""
    text = b"a" + VALUE + b"b" * 1000
    packed = coded(text, "gzip")
    sent = packed
    length = b"Content-Length: %d\r\n" % len(packed) if kind is Kind.LENGTH else b""
    if kind is Kind.CHUNKED:
        sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(packed), packed)
        length = b"Transfer-Encoding: chunked\r\n"
    head = parse_response_head(GZIP + length + b"\r\n")
    request = parse_request_head(b"GET / " + version + b"\r\nHost: a.test\r\n\r\n")
    made, body = made_clean(CLEANER, head, Framing(kind, len(packed) if kind is Kind.LENGTH else 0), request)
    assert body is not None
    assert made.headers == ((b"ETag", b'W/"x"'), (b"Transfer-Encoding", b"chunked"))
    out = b""
    for at in range(0, len(sent), step):
        out += b"".join(body.feed(sent[at : at + step])[1])
        while body.pending:
            out += b"".join(body.more())
    if kind is Kind.CLOSE:
        assert not body.done
        body.eof()
        out += body.rest()
    assert body.done
    if version == b"HTTP/1.1":
        reader = ChunkedBody(decode=True)
        out = b"".join(reader.feed(out)[1])
        assert reader.done
    assert out == text.replace(VALUE, STANDS)


def test_what_a_coding_makes_is_given_out_piece_by_piece() -> None:
    """GAT-5: 8 MiB of spaces in a few thousand bytes; each piece is asked for, and a value at the end is found."""
    packed = coded(bytes(range(256)) * 8192 + VALUE, "gzip")
    request = parse_request_head(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    body = made_clean(CLEANER, parse_response_head(GZIP + b"\r\n"), Framing(Kind.LENGTH, len(packed)), request)[1]
    assert body is not None
    spans = body.feed(packed)[1]
    assert not body.done
    pieces = [len(spans[0])]
    while body.pending:
        spans = body.more()
        pieces += [len(one) for one in spans]
    assert (max(pieces) <= 1 << 17, body.done, sum(pieces)) == (True, True, 256 * 8192 + len(VALUE))
    assert bytes(spans[-1]).endswith(STANDS)


def test_an_answer_without_a_body_has_none() -> None:
    """RFC 9110 section 9.3.2: to HEAD; its head is what that of GET would be."""
    request = parse_request_head(b"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    head = parse_response_head(GZIP + b"Content-Length: 10\r\n\r\n")
    made, body = made_clean(CLEANER, head, NO_BODY, request)
    assert (body, made.headers) == (None, ((b"ETag", b'W/"x"'),))
