"""Proves that the length of a message is read in one way or not at all (GAT-4, B34, B35)."""

from __future__ import annotations

from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import outcome, read_body
from tests.unit.wire.others import as_h11_reads, as_httptools_reads
from tidegate.model.reason import Reason
from tidegate.wire.body import make_body
from tidegate.wire.framing import CHUNKED, NO_BODY, UNTIL_CLOSE, Framing, Kind, request_framing, response_framing
from tidegate.wire.http1 import parse_request_head, parse_response_head


def request(*fields: bytes, method: bytes = b"POST", version: bytes = b"1.1") -> Any:
    """Return the framing of a request with these fields."""
    lines = b"".join(field + b"\r\n" for field in fields)
    return outcome(
        lambda: request_framing(parse_request_head(b"%b http://a/ HTTP/%b\r\n%b\r\n" % (method, version, lines)))
    )


def response(*fields: bytes, status: int = 200, method: str = "GET", version: bytes = b"1.1") -> Any:
    """Return the framing of a response with these fields to a request with this method."""
    lines = b"".join(field + b"\r\n" for field in fields)
    head = b"HTTP/%b %d x\r\n%b\r\n" % (version, status, lines)
    return outcome(lambda: response_framing(parse_response_head(head), method))


AMBIGUOUS = [
    [b"Content-Length: 5", b"Transfer-Encoding: chunked"],
    [b"Transfer-Encoding: chunked", b"Content-Length: 5"],
    [b"Content-Length: 5", b"Content-Length: 5"],
    [b"Content-Length: 5", b"Content-Length: 6"],
    [b"Content-Length: 5, 5"],
    [b"Content-Length: 5,"],
    [b"Content-Length: +5"],
    [b"Content-Length: -5"],
    [b"Content-Length: 05"],
    [b"Content-Length: 00"],
    [b"Content-Length: 0x5"],
    [b"Content-Length: 5_0"],
    [b"Content-Length: 5 0"],
    [b"Content-Length: 5.0"],
    [b"Content-Length: \xb2"],
    [b"Content-Length:"],
    [b"Content-Length: a"],
    [b"Content-Length: 9223372036854775808"],
    [b"Content-Length: " + b"9" * 200],
    [b"Transfer-Encoding: chunked,"],
    [b"Transfer-Encoding: ,chunked"],
    [b"Transfer-Encoding: chunked, gzip"],
    [b"Transfer-Encoding: gzip, chunked"],
    [b"Transfer-Encoding: chunked, chunked"],
    [b"Transfer-Encoding: xchunked"],
    [b"Transfer-Encoding: chunked;q=1"],
    [b'Transfer-Encoding: "chunked"'],
    [b"Transfer-Encoding: identity"],
    [b"Transfer-Encoding: gzip"],
    [b"Transfer-Encoding:"],
    [b"Transfer-Encoding: chunked\xa0"],
    [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"],
    [b"Transfer-Encoding: chunked", b"transfer-encoding: identity"],
]


@pytest.mark.parametrize("fields", AMBIGUOUS)
def test_an_ambiguous_length_is_refused(fields: list[bytes]) -> None:
    """Both lengths, a repeated or odd one, and any coding but exactly chunked: 400 in a request, 502 in a response."""
    for method in (b"GET", b"DELETE", b"OPTIONS", b"POST"):
        assert request(*fields, method=method) is Reason.BAD_FRAMING
    for status, method in [(200, "GET"), (200, "HEAD"), (304, "GET"), (204, "GET"), (200, "CONNECT")]:
        assert response(*fields, status=status, method=method) is Reason.UPSTREAM_RESPONSE


def test_http_1_0_has_no_transfer_encoding() -> None:
    """A coding in HTTP/1.0 is a smuggling attempt in both directions (B34)."""
    assert request(b"Transfer-Encoding: chunked", version=b"1.0") is Reason.BAD_FRAMING
    assert response(b"Transfer-Encoding: chunked", version=b"1.0") is Reason.UPSTREAM_RESPONSE


@pytest.mark.parametrize("value", [b"chunked", b"Chunked", b"CHUNKED", b" chunked", b"chunked\t", b"\t chunked \t"])
def test_chunked_in_any_case_and_with_outer_space(value: bytes) -> None:
    """Case does not matter and white space around the value is no part of it (RFC 9110 section 5.5)."""
    assert request(b"Transfer-Encoding:" + value) == CHUNKED
    assert response(b"Transfer-Encoding:" + value) == CHUNKED


@pytest.mark.parametrize(("text", "length"), [(b"0", 0), (b"5", 5), (b"10", 10), (b"9223372036854775807", 2**63 - 1)])
def test_plain_numbers_are_lengths(text: bytes, length: int) -> None:
    """The neighbours of odd lengths, up to the largest."""
    assert request(b"Content-Length: " + text) == Framing(Kind.LENGTH, length)
    assert response(b"Content-Length: " + text) == Framing(Kind.LENGTH, length)
    assert Framing(Kind.LENGTH, length).empty is (length == 0)


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"TRACE", b"POST", b"X"])
def test_a_request_is_framed_by_its_fields_alone(method: bytes) -> None:
    """The method changes nothing: what is announced is read, what is not announced is not there (B35)."""
    assert request(method=method) == NO_BODY
    assert request(b"Content-Length: 3", method=method) == Framing(Kind.LENGTH, 3)
    assert request(b"Transfer-Encoding: chunked", method=method) == CHUNKED


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (200, "GET", Framing(Kind.LENGTH, 5)),
        (404, "POST", Framing(Kind.LENGTH, 5)),
        (200, "HEAD", NO_BODY),
        (404, "HEAD", NO_BODY),
        (100, "PUT", NO_BODY),
        (101, "GET", NO_BODY),
        (199, "GET", NO_BODY),
        (204, "GET", NO_BODY),
        (205, "GET", Framing(Kind.LENGTH, 5)),
        (304, "GET", NO_BODY),
        (303, "GET", Framing(Kind.LENGTH, 5)),
        (200, "CONNECT", NO_BODY),
        (299, "CONNECT", NO_BODY),
        (300, "CONNECT", Framing(Kind.LENGTH, 5)),
        (407, "CONNECT", Framing(Kind.LENGTH, 5)),
    ],
)
def test_responses_without_a_body(status: int, method: str, expected: Framing) -> None:
    """HEAD, 1xx, 204, 304 and a 2xx to CONNECT end with their head, whatever they announce (RFC 9112 section 6.3)."""
    assert response(b"Content-Length: 5", status=status, method=method) == expected
    chunked = CHUNKED if expected.kind is Kind.LENGTH else NO_BODY
    assert response(b"Transfer-Encoding: chunked", status=status, method=method) == chunked


def test_a_response_without_a_length_lasts_until_the_close() -> None:
    """Only responses do; none of them is empty by that."""
    assert response() == UNTIL_CLOSE
    assert response(version=b"1.0") == UNTIL_CLOSE
    assert not UNTIL_CLOSE.empty
    assert NO_BODY.empty
    assert not CHUNKED.empty


FIELDS = st.lists(
    st.sampled_from(
        [
            *(
                b"Content-Length: 0",
                b"Content-Length: 3",
                b"Content-Length: 4",
                b"Content-Length: 3, 3",
                b"Content-Length: 03",
            ),
            *(
                b"Transfer-Encoding: chunked",
                b"Transfer-Encoding: Chunked",
                b"Transfer-Encoding: gzip, chunked",
                b"X: y",
            ),
        ]
    ),
    max_size=3,
)
BODIES = st.lists(
    st.sampled_from([b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n", b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"d"]), max_size=4
).map(b"".join)


def read_message(rest: bytes, make_framing: Any) -> Any:
    """Return the data of a body and what is left of `rest`, None where we refuse or wait."""
    framing = outcome(make_framing)
    if not isinstance(framing, Framing):
        return None
    found = read_body(lambda: make_body(framing, decode=True), [rest] if not framing.empty else [])
    if framing.empty:
        return b"", rest
    return (found[0], rest[found[1] :]) if isinstance(found, tuple) and found[2] else None


@given(FIELDS, BODIES, st.sampled_from([b"GET", b"POST", b"DELETE"]))
def test_a_request_that_others_accept_too_ends_at_the_same_byte(
    fields: list[bytes], rest: bytes, method: bytes
) -> None:
    """Where h11 or httptools and we accept a request, its body is the same: nothing can be smuggled (B35)."""
    head = b"%b http://a/ HTTP/1.1\r\nHost: a\r\n%b\r\n" % (method, b"".join(f + b"\r\n" for f in fields))
    mine = read_message(rest, lambda: request_framing(parse_request_head(head)))
    if mine is None:
        return
    theirs = as_h11_reads(head + rest)
    if theirs is not None:
        assert theirs == mine
    assert as_httptools_reads(head + rest[: len(rest) - len(mine[1])]) in (None, (mine[0], 1))


@given(FIELDS, BODIES, st.sampled_from([b"200", b"204", b"304", b"404"]))
def test_a_response_that_others_accept_too_ends_at_the_same_byte(
    fields: list[bytes], rest: bytes, status: bytes
) -> None:
    """The same for responses, those without a body included (GAT-4)."""
    head = b"HTTP/1.1 %b OK\r\n%b\r\n" % (status, b"".join(f + b"\r\n" for f in fields))
    mine = read_message(rest, lambda: response_framing(parse_response_head(head), "GET"))
    theirs = as_h11_reads(head + rest, h11.CLIENT)
    if mine is not None and theirs is not None:
        assert theirs == mine
