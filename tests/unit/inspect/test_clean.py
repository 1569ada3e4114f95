"""What a host of a secret answers: fields and bodies that tell no value, and are true."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from tests.coded import Coder, coded
from tests.unit.inspect.test_grpc import message
from tidegate.inspect.clean import CleanBody, Cleaner
from tidegate.inspect.codings import Windows
from tidegate.inspect.scrub import Scrubber
from tidegate.wire.errors import WireError

if TYPE_CHECKING:
    Field = tuple[bytes, bytes]

VALUE, STANDS = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"
CLEANER = Cleaner(Scrubber([(VALUE, STANDS)]))


def body_of(*fields: Field, status: int = 200) -> CleanBody:
    """The body of an answer with these fields."""
    body = CLEANER.answer(status, fields, [], empty=False)[1]
    assert body is not None
    return body


def through(body: CleanBody, data: bytes, step: int) -> bytes:
    """A whole body in pieces."""
    out = b""
    for at in range(0, len(data), step):
        out += body.feed(data[at : at + step])
        while body.pending:
            out += body.more()
    return out + body.end()


@pytest.mark.parametrize("said", [b"gzip", b"deflate", b"br", b"zstd", b"gzip, br", b"GZIP"])
def test_a_value_is_found_under_each_coding(said: bytes) -> None:
    """B118: as it is, in base64, and cut at each byte of what travels."""
    text = b"x" + VALUE + b" Basic " + base64.b64encode(b"u:" + VALUE) + b"." + VALUE
    packed = coded(text, *said.decode().lower().split(", "))
    for step in (1, 2, 7, 10_000):
        got = through(body_of((b"Content-Encoding", said)), packed, step)
        assert VALUE not in got
        assert base64.b64encode(b"u:" + VALUE)[4:-4] not in got
        assert got.startswith(b"x" + STANDS + b" Basic ")
        assert (got.endswith(b"." + STANDS), len(got)) == (True, len(text))


@pytest.mark.parametrize("kind", ["gzip", "deflate", "br", "zstd"])
def test_events_are_as_prompt_as_they_were_flushed(kind: str) -> None:
    """B119: nothing of one is held for the next, but what may begin a value."""
    coder, body = Coder(kind), body_of((b"content-encoding", kind.encode()))
    assert body.feed(coder.flushed(b"data: 1\n\n")) == b"data: 1\n\n"
    assert body.feed(coder.flushed(b"data: " + VALUE[:10])) == b"data: "
    assert body.feed(coder.flushed(VALUE[10:] + b"\n\n")) == STANDS + b"\n\n"
    assert body.feed(coder.end()) + body.end() == b""


def test_what_a_swap_makes_untrue_stays_behind() -> None:
    """RFC 9110 section 8.8, RFC 9530: the length and coding of what was decoded, digests; a tag becomes weak."""
    fields = [
        (b"Content-Encoding", b"gzip"), (b"Content-Length", b"5"), (b"ETag", b'"x"'), (b"Accept-Ranges", b"bytes"),
        (b"Content-MD5", b"A"), (b"Digest", b"B"), (b"Content-Digest", b"C"), (b"Repr-Digest", b"D"), (b"Vary", b"E"),
    ]  # fmt: skip
    assert CLEANER.answer(200, fields, [], empty=False)[0] == [(b"ETag", b'W/"x"'), (b"Vary", b"E")]
    plain = [fields[1], fields[2], fields[8]]
    assert CLEANER.answer(200, [*plain, fields[3], fields[4]], [], empty=False)[0] == plain
    assert CLEANER.answer(200, [*plain, (b"content-encoding", b"identity")], [], empty=False)[0][:3] == plain
    assert CLEANER.answer(200, [(b"etag", b'W/"x"'), fields[0]], [], empty=True) == ([(b"etag", b'W/"x"')], None)
    nothing = [(b"content-length", b"0"), fields[0]]
    assert CLEANER.answer(200, nothing, [], empty=True)[0] == nothing[:1]


def test_a_304_names_the_tag_that_was_given() -> None:
    """RFC 9111 section 4.3.4: weak where the client asks by the weak one that it got; else as it is."""
    tag = [(b"ETag", b'"x"')]
    assert CLEANER.answer(304, tag, [(b"If-None-Match", b'W/"x"')], empty=True)[0] == [(b"ETag", b'W/"x"')]
    assert CLEANER.answer(304, tag, [(b"If-None-Match", b'"x"')], empty=True)[0] == tag
    assert CLEANER.answer(200, tag, [(b"If-None-Match", b'W/"x"')], empty=True)[0] == tag


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (206, [(b"Content-Range", b"bytes 0-23/100")]),
        (206, [(b"Content-Type", b"multipart/byteranges; boundary=x")]),
        (206, [(b"Content-Range", b"chars 0-23/100")]),
        (206, [(b"Content-Range", b"0-23/100"), (b"content-range", b"bytes 0-23/100")]),
        (206, [(b"Content-Range", b"bytes 0-23/100"), (b"content-range", b"0-23/100")]),
        (200, [(b"content-range", b"bytes 0-23/100")]),
    ],
)
def test_a_part_of_something_is_refused(status: int, fields: list[Field]) -> None:
    """INS-5, B118: half a value is not recognised; whoever sends a part was not asked for one."""
    with pytest.raises(WireError, match="a part of something"):
        CLEANER.answer(status, fields, [], empty=False)


def test_rows_and_what_has_no_such_part_pass() -> None:
    """RFC 9110 section 14: other units than bytes, as some databases count, are looked through as all else."""
    for status, value in ((206, b"0-24/3573"), (206, b"items 0-24/*"), (200, b"0-24/3573"), (416, b"bytes */100")):
        part = (b"Content-Range", value)
        fields, body = CLEANER.answer(status, [part], [], empty=False)
        assert (fields, body is not None and body.resized) == ([part], False)
        assert through(body_of(part, status=status), VALUE, 5) == STANDS


@pytest.mark.parametrize(
    ("status", "field", "says"),
    [
        (200, (b"content-encoding", b"compress"), "content coding 'compress'"),
        (200, (b"content-encoding", b"gzip, dcb"), "content coding 'dcb'"),
        (200, (b"content-encoding", b"gzip, gzip, gzip, gzip"), "more than 3"),
        (226, (b"a", b"b"), "a delta"),
        (200, (b"IM", b"vcdiff"), "a delta"),
    ],
)
def test_what_cannot_be_read_is_refused(status: int, field: Field, says: str) -> None:
    """INS-5, B118: whatever was asked for."""
    with pytest.raises(WireError, match=says):
        CLEANER.answer(status, [field], [], empty=False)


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ([(b"Accept-Encoding", b"gzip, exi"), (b"A", b"b")], [(b"A", b"b"), (b"accept-encoding", b"gzip")]),
        ([], [(b"accept-encoding", b"identity")]),
        (
            [(b"accept-encoding", b"gzip"), (b"Range", b"bytes=0-1"), (b"range", b"x=0-1"), (b"If-Range", b'"x"')],
            [(b"accept-encoding", b"gzip")],
        ),
        ([(b"Request-Range", b"bytes=0-1"), (b"x-ms-range", b"bytes=0-1")], [(b"accept-encoding", b"identity")]),
        (
            [(b"Range", b"0-24"), (b"Range", b"items=25-")],
            [(b"Range", b"0-24"), (b"Range", b"items=25-"), (b"accept-encoding", b"identity")],
        ),
        (
            [(b"A-IM", b"vcdiff"), (b"grpc-accept-encoding", b"gzip")],
            [(b"grpc-accept-encoding", b"identity"), (b"accept-encoding", b"identity")],
        ),
    ],
)
def test_what_could_not_be_read_is_not_asked_for(fields: list[Field], sent: list[Field]) -> None:
    """INS-5: no range of bytes, no delta, no compressed messages; rows are no bytes."""
    assert CLEANER.asked(fields) == sent


def test_messages_are_made_plain_or_end_the_body() -> None:
    """INS-3, INS-5: under a coding too; the ones before it pass, and what cannot be is refused by the head."""
    grpc = (b"content-type", b"application/grpc")
    good, packed = message(b"say " + VALUE), message(coded(b"say " + VALUE, "gzip"), 1)
    clean = message(b"say " + STANDS)
    assert through(body_of(grpc), good, 7) == clean
    fields, body = CLEANER.answer(200, [grpc, (b"grpc-encoding", b"gzip"), (b"content-length", b"9")], [], empty=False)
    assert body is not None
    assert (fields, body.resized, through(body, good + packed, 7)) == ([grpc], True, clean + clean)
    again = body_of(grpc, (b"grpc-encoding", b"gzip"), (b"content-encoding", b"gzip"))
    assert through(again, coded(packed + good, "gzip"), 7) == clean + clean
    with pytest.raises(WireError, match="a message of it is compressed"):
        through(body_of(grpc), good + packed, 1000)
    with pytest.raises(WireError, match="content coding 'snappy'"):
        body_of(grpc, (b"grpc-encoding", b"snappy"))


def test_where_room_for_windows_is_scarce_only_small_ones_are_asked_for() -> None:
    """INS-5, GAT-5: so that servers need not be refused; once what took it is gone, all are again."""
    windows = Windows(1 << 23)
    cleaner = Cleaner(Scrubber([(VALUE, STANDS)]), windows)
    asks = [(b"Accept-Encoding", b"br, gzip")]
    assert cleaner.asked(asks) == [(b"accept-encoding", b"br, gzip")]
    _, body = cleaner.answer(200, [(b"content-encoding", b"zstd")], [], empty=False)
    assert body is not None
    assert body.feed(coded(b"say " + VALUE, "zstd")) == b"say " + STANDS
    assert cleaner.asked(asks) == [(b"accept-encoding", b"gzip")]
    del body
    assert cleaner.asked(asks) == [(b"accept-encoding", b"br, gzip")]


def test_a_host_whose_windows_are_too_large_is_asked_for_brotli_no_more() -> None:
    """INS-5, GAT-5: its answer is refused, and the client's next try passes; other hosts are still asked for it."""
    brotli = pytest.importorskip("brotli")
    cleaner, other = (Cleaner(Scrubber([(VALUE, STANDS)])) for _ in range(2))
    asks = [(b"Accept-Encoding", b"br, gzip")]
    _, body = cleaner.answer(200, [(b"content-encoding", b"br")], [], empty=False)
    assert body is not None
    with pytest.raises(WireError, match="window is larger than 4 MiB"):
        body.feed(brotli.compress(VALUE, lgwin=24))
    assert cleaner.asked(asks) == [(b"accept-encoding", b"gzip")]
    assert other.asked(asks) == [(b"accept-encoding", b"br, gzip")]
