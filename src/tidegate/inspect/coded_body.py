"""The codings of a request's body, taken off within bounds (RFC 9110 section 8.4): gzip and zstd, which agents send.

Rules of the file: one coded whole and nothing behind it, or an error; what comes out is bounded before it is made, and
so is the memory that a frame may ask for. Who reads the result sends on the result: two decoders never differ.
"""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GZIP = 16 + zlib.MAX_WBITS
_WINDOW = 1 << 27  # RFC 8878 section 3.1.1.1.2 recommends 8 MiB; encoders at their highest levels take 128
_PIECE = 256  # bytes that go in at once: no more than 64 blocks of 128 KiB come out of them (RFC 8878 section 3.1.1.2)


class CodedError(ValueError):
    """It cannot be decoded; says why."""


class TooLargeError(CodedError):
    """What comes out is larger than it may be."""


def decoded(coding: bytes, data: bytes, most: int) -> bytes:
    """Return a body without its coding, at most so many bytes.

    Raises:
        TooLargeError: it would be more.
        CodedError: it is not what the coding says, or there is something behind it.
    """
    if coding in {b"", b"identity"}:
        return data
    return _from_gzip(data, most) if coding == b"gzip" else _from_zstd(data, most)


def _from_gzip(data: bytes, most: int) -> bytes:
    reader = zlib.decompressobj(_GZIP)
    try:
        found = reader.decompress(data, most + 1)
    except zlib.error:
        raise CodedError("the body is not the gzip that it says it is") from None
    if len(found) > most:
        raise TooLargeError("decoded, the body is too large")
    if not reader.eof or reader.unused_data:
        raise CodedError("the body is no one whole gzip member")
    return found


def _from_zstd(data: bytes, most: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise CodedError("the body is zstd, and the package 'zstandard' is not installed") from None
    reader: Any = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
    parts, size, at = [], 0, 0
    try:
        while at < len(data) and not reader.eof:
            part = reader.decompress(data[at : at + _PIECE])
            at += _PIECE
            size += len(part)
            if size > most:
                raise TooLargeError("decoded, the body is too large")
            parts.append(part)
    except zstandard.ZstdError:
        raise CodedError("the body is not the zstd that it says it is") from None
    if not reader.eof or reader.unused_data or at < len(data):
        raise CodedError("the body is no one whole zstd frame")
    return b"".join(parts)
