"""tidegate.wire.head_shape: what is said of a head by its shape is what reading it in full says, or nothing is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tidegate.wire.errors import WireError
from tidegate.wire.framing import Framing, Kind, response_framing
from tidegate.wire.head_shape import HeadShape
from tidegate.wire.headers import keeps_alive, response_head_bytes
from tidegate.wire.http1 import parse_response_head

ALT_SVC = frozenset((b"alt-svc",))
NAMES = [
    *(b"Date", b"date", b"DATE", b"ETag", b"X-Request-Id", b"Server", b"Age", b"Content-Type", b"Alt-Svc", b"Vary"),
    *(b"Connection", b"Content-Length", b"content-length", b"Transfer-Encoding", b"Location", b"Upgrade", b"Trailer"),
    *(b"Keep-Alive", b"TE", b"Proxy-Status", b"Proxy-Authenticate", b"Proxy-Connection", b"X-One", b"X", b"X-"),
]
VALUES = [
    *(b"1", b"2", b"77", b"007", b"0", b"a", b"b b", b"keep-alive", b"close", b"chunked", b"x-one", b"websocket", b""),
    *(b"9" * 18, b"9" * 19, b"+1", b"1 2", b"a:b", b"\xe4", b"a\x00b", b"a\rb", b"a\nb", b"\x7f", b"Keep-Alive"),
]
SPACES = [b" "] * 6 + [b"", b"  ", b"\t"]
BEHIND = [b""] * 6 + [b" ", b"\t"]
STATUS = [b"HTTP/1.1 200 OK"] * 4 + [
    b"HTTP/1.1 204 ",
    b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 301",
]

lines = st.builds(
    lambda name, space, value, behind: name + b":" + space + value + behind,
    *map(st.sampled_from, (NAMES, SPACES, VALUES, BEHIND)),
)
usual = st.builds(
    lambda name, value: name + b": " + value,
    st.sampled_from([name for name in NAMES if b"on" not in name.lower()]),
    st.sampled_from([b"a", b"b b", b"1", b"x-one", b"a:b", b"\xe4"]),
)


def whole(first: bytes, fields: list[bytes]) -> bytes:
    """Return a head as head_end gives it: up to and with the first blank line."""
    raw = b"\r\n".join((first, *fields, b"", b""))
    return raw[: raw.index(b"\r\n\r\n") + 4]


def in_full(raw: bytes) -> tuple[int, bytes, Framing, bytes] | None:
    """Return what is made of a head when it is read; None where it cannot be, or ends the connection."""
    try:
        head = parse_response_head(raw)
        framing = response_framing(head, "GET")
        if framing.kind is Kind.CLOSE or not keeps_alive(head):
            return None
        out = response_head_bytes(head, close=False, without=ALT_SVC)
    except WireError:
        return None
    return head.status, head.get(b"location") or b"", framing, out


@st.composite
def pairs(draw: Any) -> tuple[bytes, bytes]:
    """Return a head, and one that is like it but for some lines."""
    first = draw(st.sampled_from(STATUS))
    fields = draw(st.lists(usual, max_size=6))
    for at in range(len(fields)):
        if not draw(st.integers(0, 9)):
            fields[at] = draw(lines)
    if draw(st.integers(0, 9)):
        fields.insert(draw(st.integers(0, len(fields))), b"Content-Length: 5")
    other = list(fields)
    for at in range(len(other)):
        what = draw(st.sampled_from(("same", "same", "value", "line", "case")))
        name, _, _ = other[at].partition(b":")
        if what == "value":
            other[at] = name + b":" + b"".join(draw(st.sampled_from(part)) for part in (SPACES, VALUES, BEHIND))
        elif what == "line":
            other[at] = draw(lines)
        elif what == "case":
            other[at] = other[at].swapcase()
    if other and draw(st.integers(0, 9)) == 0:
        other = draw(st.permutations(other))
    again = first if draw(st.integers(0, 9)) else draw(st.sampled_from(STATUS))
    return whole(first, fields), whole(again, other)


@settings(max_examples=1500, deadline=None)
@given(pairs())
def test_a_shape_says_what_reading_in_full_says_or_nothing(both: tuple[bytes, bytes]) -> None:
    """GAT-4, B64: for any two heads: status, end of body, where it leads and each byte sent on are the same."""
    first, second = both
    read = in_full(first)
    if read is None:
        event("the first is no answer that is kept")
        return
    shape = HeadShape(first, read[3], read[2])
    assert shape.again(first) == read[3]  # it is like itself
    for _ in range(2):  # and as well when it is the one before
        out = shape.again(second)
        event("said" if out is not None else "nothing said")
        if out is not None:
            assert in_full(second) == (read[0], read[1], shape.framing, out)
    assert shape.again(first) in {None, read[3]}  # None where what came between had a line that is not sent as it comes


HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: one\r\nDate: Mon\r\nConnection: keep-alive\r\nKeep-Alive: max=99\r\nAlt-Svc: clear\r\n"
    b"Content-Length: 128\r\nX-Id:spaced \r\nETag: 5\r\n\r\n"
)


def learned() -> HeadShape:
    """Return the shape of HEAD."""
    read = in_full(HEAD)
    assert read is not None
    return HeadShape(HEAD, read[3], read[2])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Date: Mon", b"Date: Tue, 1 Dec"),
        (b"ETag: 5", b"ETag: W/\xe4"),
        (b"max=99", b"max=98"),
        (b"Alt-Svc: clear", b"Alt-Svc: h3=:443"),
        (b"Length: 128", b"Length: 0"),
        (b"Length: 128", b"Length: 999999999999999999"),
        (b"X-Id:spaced ", b"X-Id: other"),
    ],
)
def test_values_that_nobody_reads_may_differ(old: bytes, new: bytes) -> None:
    """GAT-4: what every server changes from answer to answer does not have it read in full."""
    other = HEAD.replace(old, new)
    shape = learned()
    out = shape.again(other)
    read = in_full(other)
    assert read is not None
    assert (shape.framing, out) == (read[2], read[3])
    assert out is not None
    assert b"Alt-Svc" not in out
    assert b"onnection" not in out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"200 OK", b"200 Fine"),
        (b"Connection: keep-alive", b"Connection: close"),
        (b"Connection: keep-alive", b"Connection: etag"),
        (b"Length: 128", b"Length: 0128"),
        (b"Length: 128", b"Length: +128"),
        (b"Length: 128", b"Length: 128, 128"),
        (b"Length: 128", b"Length: 9999999999999999999"),
        (b"Content-Length: 128", b"Transfer-Encoding: chunked"),
        (b"ETag: 5", b"Content-Length: 5"),
        (b"ETag: 5", b"Transfer-Encoding: chunked"),
        (b"ETag: 5", b"ETag : 5"),
        (b"ETag: 5", b"Etag: 5"),
        (b"ETag: 5", b" ETag: 5"),
        (b"ETag: 5", b"ETag: "),
        (b"ETag: 5", b"ETag: 6 "),
        (b"ETag: 5", b"ETag: \x00"),
        (b"ETag: 5", b"ETag: a\nContent-Length: 5"),
        (b"ETag: 5", b"ETag: a\rb"),
        (b"ETag: 5", b"ETag: 5\r\nContent-Length: 128"),
        (b"ETag: 5\r\n", b""),
    ],
)
def test_what_is_read_or_stands_otherwise_is_read_in_full(old: bytes, new: bytes) -> None:
    """GAT-4, B34, B35: nothing is said of a head that ends elsewhere, or may."""
    assert learned().again(HEAD.replace(old, new)) is None


def test_where_nothing_is_said_nothing_is_learned() -> None:
    """A head that begins well and ends badly leaves the shape as it was."""
    shape = learned()
    bad = HEAD.replace(b"Date: Mon", b"Date: Evil").replace(b"ETag: 5", b"ETag: \x00").replace(b"128", b"64")
    assert shape.again(bad) is None
    read = in_full(HEAD)
    assert read is not None
    assert (shape.again(HEAD), shape.framing) == (read[3], read[2])


def test_no_shape_is_made_of_what_has_lines_of_its_own() -> None:
    """A head that is sent on with a line that did not come has no shape."""
    with pytest.raises(ValueError, match="lines of its own"):
        HeadShape(HEAD, HEAD[:-2] + b"Connection: close\r\n\r\n", Framing(Kind.LENGTH, 128))
