"""Codings of a body, taken off whole and within bounds."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
import zstandard

from tidegate.inspect.coded_body import CodedError, TooLargeError, decoded

BODY = b'{"model": "x"}' * 50
ZSTD = zstandard.ZstdCompressor().compress(BODY)
STREAMED = zstandard.ZstdCompressor().compressobj()
OPEN_ENDED = STREAMED.compress(BODY) + STREAMED.flush()  # its frame announces no size
GZIP = gzip.compress(BODY)


@pytest.mark.parametrize(
    ("coding", "data"), [(b"", BODY), (b"identity", BODY), (b"gzip", GZIP), (b"zstd", ZSTD), (b"zstd", OPEN_ENDED)]
)
def test_what_agents_send(coding: bytes, data: bytes) -> None:
    """INS-8: each comes out as it was."""
    assert decoded(coding, data, 1 << 20) == BODY


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", BODY),
        (b"gzip", GZIP[:-1]),
        (b"gzip", GZIP + b"x"),
        (b"gzip", GZIP + GZIP),
        (b"gzip", b""),
        (b"zstd", BODY),
        (b"zstd", ZSTD[:-1]),
        (b"zstd", ZSTD + b"x"),
        (b"zstd", ZSTD + ZSTD),
        (b"zstd", ZSTD + bytes(300)),
        (b"zstd", b""),
        (b"zstd", OPEN_ENDED[:-4]),
        (b"zstd", GZIP),
    ],
)
def test_what_two_decoders_could_read_differently(coding: bytes, data: bytes) -> None:
    """INS-8: cut short, with something behind it, twice, or another coding than it says."""
    with pytest.raises(CodedError):
        decoded(coding, data, 1 << 20)


@pytest.mark.parametrize(
    ("coding", "bomb"),
    [(b"gzip", gzip.compress(bytes(1 << 26))), (b"zstd", zstandard.ZstdCompressor().compress(bytes(1 << 26)))],
)
def test_a_bomb_is_not_unpacked(coding: bytes, bomb: bytes) -> None:
    """INS-8: what would be too large is never there, not even for a moment."""
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            decoded(coding, bomb, 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


def test_a_window_that_is_too_large_is_refused() -> None:
    """INS-8: a frame may not ask for more memory than the bound."""
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    data = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(CodedError):
        decoded(b"zstd", data.compress(bytes(1 << 20)) + data.flush(), 1 << 24)
