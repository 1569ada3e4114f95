"""Codings of a body, taken off whole and within bounds."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from tests.coded import coded
from tidegate.inspect.coded_body import CodedError, TooLargeError, can_decode, decoded

BODY = b'{"model": "x"}' * 50
ZSTD = coded(BODY, "zstd")
GZIP = gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(("coding", "data"), [(b"", BODY), (b"identity", BODY), (b"gzip", GZIP), (b"zstd", ZSTD)])
def test_what_agents_send(coding: bytes, data: bytes) -> None:
    """INS-8: each comes out as it was."""
    assert can_decode(coding)
    assert decoded(coding, data, 1 << 20) == BODY


def test_what_is_not_known() -> None:
    """INS-8: another coding, and a row of them."""
    for coding in (b"compress", b"gzip, gzip", b"aws-chunked"):
        assert not can_decode(coding)
        with pytest.raises(CodedError):
            decoded(coding, BODY, 1 << 20)


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", BODY),
        (b"gzip", GZIP[:-1]),
        (b"gzip", GZIP + b"x"),
        (b"zstd", BODY),
        (b"zstd", ZSTD[:-1]),
        (b"zstd", ZSTD + b"x"),
        (b"zstd", GZIP),
    ],
)
def test_what_is_not_what_it_says(coding: bytes, data: bytes) -> None:
    """INS-8: cut short, with something behind it, or another coding than it says."""
    with pytest.raises(CodedError):
        decoded(coding, data, 1 << 20)


@pytest.mark.parametrize("coding", ["gzip", "zstd", "br"])
def test_a_bomb_is_not_unpacked(coding: str) -> None:
    """INS-8: what would be too large is never there, not even for a moment."""
    bomb = coded(bytes(1 << 26), coding)
    tracemalloc.start()
    try:
        with pytest.raises(CodedError):
            decoded(coding.encode(), bomb, 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


def test_one_that_is_just_too_large() -> None:
    """INS-8: it is told from what cannot be read; one byte less passes."""
    assert decoded(b"gzip", GZIP, len(BODY)) == BODY
    with pytest.raises(TooLargeError):
        decoded(b"gzip", GZIP, len(BODY) - 1)


def test_a_body_is_of_few_members() -> None:
    """INS-5, INS-8: a task that sends a million of them would hold up everybody behind the gate."""
    assert decoded(b"gzip", GZIP * 16, 1 << 20) == BODY * 16
    for coding, empty in ((b"gzip", gzip.compress(b"")), (b"zstd", coded(b"", "zstd"))):
        with pytest.raises(CodedError, match="members"):
            decoded(coding, empty * 17, 1 << 20)


def test_a_window_of_brotli_is_no_larger_than_libraries_make_it() -> None:
    """INS-5, INS-8: fifty bytes that fill 16 MiB hold up everybody behind the gate for as long as that takes."""
    brotli = pytest.importorskip("brotli")
    assert decoded(b"br", brotli.compress(BODY), 1 << 20) == BODY
    assert decoded(b"br", brotli.compress(BODY, lgwin=22), 1 << 20) == BODY
    with pytest.raises(CodedError, match="window is larger than 4 MiB"):
        decoded(b"br", brotli.compress(BODY, lgwin=24), 1 << 20)
