"""Bodies with values of secrets in them: what comes out is as long, framed anew, and without the value."""

from __future__ import annotations

import pytest

from tidegate.gate.cleaned import CleanedBody, need_plain
from tidegate.inspect.scrub import Scrubber
from tidegate.wire.errors import WireError
from tidegate.wire.framing import CHUNKED, Framing, Kind
from tidegate.wire.http1 import parse_response_head

VALUE, STANDS = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"


def cleaned(framing: Framing, data: bytes, step: int, *, decode: bool = False) -> tuple[bytes, CleanedBody]:
    """Feed a body in pieces."""
    body = CleanedBody(framing, Scrubber([(VALUE, STANDS)]), decode=decode)
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
    assert (body.done, body.rest()) == (True, VALUE[:6])


def test_an_event_is_not_held_back() -> None:
    """B119, B55: what cannot be the beginning of a value goes on at once."""
    body = CleanedBody(CHUNKED, Scrubber([(VALUE, STANDS)]), decode=False)
    assert body.feed(b"9\r\ndata: 1\n\n\r\n")[1] == [b"9\r\ndata: 1\n\n\r\n"]


@pytest.mark.parametrize(("field", "passes"), [(b"gzip", False), (b"identity", True), (b"identity, br", False)])
def test_a_coded_body_is_refused(field: bytes, passes: bool) -> None:
    """B118: nobody can look for a value in it; it was asked for without."""
    head = parse_response_head(b"HTTP/1.1 200 OK\r\nContent-Encoding: " + field + b"\r\n\r\n")
    if passes:
        need_plain(head)
    else:
        with pytest.raises(WireError, match="compressed"):
            need_plain(head)
