"""What of a stream waits, and how far the window of the other side opens."""

from __future__ import annotations

import pytest

from tests.coded import coded
from tests.unit.inspect.test_clean import STANDS, VALUE, body_of
from tidegate.inspect.http2_stream import Half, Stream
from tidegate.wire.errors import WireError


def test_what_passes_as_it_is_opens_its_window_as_it_goes() -> None:
    """RFC 9113 section 5.2: byte for byte; small pieces wait together."""
    half = Half()
    half.take(b"a")
    half.take(b"b")
    assert (list(half.waiting), half.pending, half.owed) == ([b"ab"], False, 2)
    half.waiting.clear()
    assert (half.gone(2), half.owed) == (2, 0)
    half.finish()
    assert not half.waiting


def test_what_is_looked_through_opens_it_when_all_of_it_has_gone() -> None:
    """INS-5: what is held back is neither lost nor keeps the window shut; a coding's pieces are asked for."""
    half = Half()
    half.look_through(body_of((b"content-encoding", b"gzip")))
    packed = coded(b"x" * 100_000 + VALUE[:-1], "gzip")
    half.take(packed)
    assert (half.pending, half.gone(0), len(half.waiting)) == (True, 0, 0)
    while half.pending:
        half.refill()
    assert half.gone(0) == 0
    half.waiting.clear()
    assert (half.gone(100), half.owed) == (len(packed), 0)
    half.finish()
    assert list(half.waiting) == [VALUE[:-1]]


def test_an_end_in_the_middle_is_an_error() -> None:
    """INS-5: nobody takes it for the whole; the neighbour is."""
    for cut, passes in ((0, True), (3, False)):
        half = Half()
        half.look_through(body_of((b"content-encoding", b"gzip")))
        packed = coded(VALUE, "gzip")
        half.take(packed[: len(packed) - cut])
        while half.pending:
            half.refill()
        if passes:
            half.finish()
            assert b"".join(half.waiting) == STANDS
        else:
            with pytest.raises(WireError, match="in the middle"):
                half.finish()


def test_a_stream_begins_with_nothing() -> None:
    """Both directions are its own."""
    stream = Stream(1, 3, None, [])  # type: ignore[arg-type]
    stream.up.hold(b"x")
    assert (stream.answered, stream.over_up, stream.over_down, list(stream.down.waiting)) == (False, False, False, [])
