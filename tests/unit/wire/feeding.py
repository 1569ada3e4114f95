"""Feeds parsers whole, byte by byte and in random pieces, and tells what came out (the invariant of wire/)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import head_end, parse_request_head, parse_response_head, response_head_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.model.reason import Reason

MORE = "more"


def outcome(parse: Callable[[], Any]) -> Any:
    """Return the value, or the reason of the WireError; any other error is the test's failure."""
    try:
        return parse()
    except WireError as error:
        failed = error
    assert all(" " <= char <= "~" for char in failed.detail + failed.raw)
    return failed.reason


def reason_of(parse: Callable[[], Any]) -> Reason:
    """Return the reason with which `parse` fails; it must fail."""
    try:
        value = parse()
    except WireError as error:
        return error.reason
    raise AssertionError(f"accepted: {value!r}")


def bytewise(data: bytes) -> list[bytes]:
    """Return the single bytes of `data`."""
    return [data[at : at + 1] for at in range(len(data))]


def cut(data: bytes, points: Iterable[int]) -> list[bytes]:
    """Return `data` cut at these points, in pieces that are not empty."""
    marks = sorted({point % (len(data) + 1) for point in points} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]


def pieces_of(data: bytes) -> st.SearchStrategy[list[bytes]]:
    """Return a strategy of ways to cut `data`."""
    return st.lists(st.integers(0, 10_000), max_size=6).map(lambda points: cut(data, points))


def read_head(pieces: Iterable[bytes], limits: Limits = DEFAULT_LIMITS, *, response: bool = False) -> Any:
    """Read one head as the gate does; return (head, bytes it took), MORE, or the reason of an error."""
    find, parse = (response_head_end, parse_response_head) if response else (head_end, parse_request_head)

    def read() -> Any:
        buf = bytearray()
        for piece in pieces:
            seen = len(buf)
            buf += piece
            end = find(buf, seen, limits)
            if end >= 0:
                return parse(bytes(buf[:end]), limits), end
        return MORE

    return outcome(read)


def read_body(make: Callable[[], Any], pieces: Iterable[bytes]) -> Any:
    """Read one body as the gate does; return (bytes that travel on, bytes used, done), or the reason of an error."""

    def read() -> Any:
        body = make()
        used = 0
        out = b""
        for piece in pieces:
            taken, spans = body.feed(piece)
            used += taken
            out += b"".join(bytes(span) for span in spans)
            if body.done:
                break
            assert taken == len(piece)
        return out, used, body.done

    return outcome(read)
