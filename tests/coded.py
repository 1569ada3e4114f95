"""Content codings, put on: what a server does before it answers.

Coder("gzip").all(b"…")           one body
Coder("br").flushed(b"data: 1")   what can be read at once; then `end()`
"""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any

import pytest


def zstd() -> Any:
    """The module for Zstandard, which the test is skipped without."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    pytest.skip("no module for Zstandard is installed")


class Coder:
    """One body in one coding: gzip, deflate, raw-deflate, br or zstd."""

    def __init__(self, coding: str) -> None:
        self._flush: Any
        self._end: Any
        if coding == "br":
            brotli = pytest.importorskip("brotli", reason="no module for Brotli is installed")
            engine = brotli.Compressor(quality=5)
            self._feed, self._flush, self._end = engine.process, engine.flush, engine.finish
        elif coding == "zstd":
            module = zstd()
            made = module.ZstdCompressor()
            self._feed, self._end = made.compress, made.flush
            self._flush = lambda: made.flush(module.ZstdCompressor.FLUSH_BLOCK)
        else:
            bits = {"gzip": 31, "deflate": 15, "raw-deflate": -15}[coding]
            packed = zlib.compressobj(wbits=bits)
            self._feed, self._end = packed.compress, packed.flush
            self._flush = lambda: packed.flush(zlib.Z_SYNC_FLUSH)

    def flushed(self, data: bytes) -> bytes:
        """Return what of it goes out now; all that was fed can be read from it."""
        return bytes(self._feed(data) + self._flush())

    def end(self) -> bytes:
        """Return the end."""
        return bytes(self._end())

    def all(self, data: bytes) -> bytes:
        """Return a whole body."""
        return bytes(self._feed(data) + self._end())


def coded(data: bytes, *codings: str) -> bytes:
    """Return a body with codings put on in this order."""
    for coding in codings:
        data = Coder(coding).all(data)
    return data
