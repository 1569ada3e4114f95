"""What came on a connection of HTTP/2, handed on in pieces of whole frames, so that a turn ends in time (RFC 9113).

Rules of the file:

* The work that bytes make is not theirs by number: a header block of a hundred bytes may name a hundred fields, and a
  frame that moves nothing has nine. So a piece ends behind the first frame of a header block, and after some frames.
* A frame beyond its bound is an error as soon as its length is known. So is a SETTINGS frame with more entries than
  anybody has a use for.

It knows frames by their headers, and nothing of what is in them.
"""

from __future__ import annotations

from h2.exceptions import FrameTooLargeError

HEADER = 9  # RFC 9113 section 4.1
LARGEST = 16384  # RFC 9113 section 6.5.2: what we never allow more than
PREFACE = 24  # RFC 9113 section 3.4: what a client says first, no frame
MOST = 32  # frames of one piece
SETTINGS_BYTES = 6 * 64  # RFC 9113 section 6.5.1: six an entry; ten are defined
_SETTINGS = 4
_BLOCKS = frozenset((1, 5, 9))  # HEADERS, PUSH_PROMISE, CONTINUATION


class Frames:
    """Those of one side. `preface` is how many bytes come before the first frame."""

    __slots__ = ("_held", "_preface")

    def __init__(self, preface: int) -> None:
        self._held = b""
        self._preface = preface

    def add(self, data: bytes) -> None:
        """Take bytes."""
        self._held = self._held + data if self._held else data

    @property
    def waits(self) -> bool:
        """Whether a piece is there, or an error to be told of."""
        held = self._held
        if self._preface or len(held) < HEADER:
            return bool(self._preface and held)
        size = held[0] << 16 | held[1] << 8 | held[2]
        return len(held) >= HEADER + size or _too_large(held[3], size)

    def take(self) -> bytes:
        """Return the next piece, b"" where none is whole.

        Raises:
            FrameTooLargeError: a frame is larger than its bound.
        """
        held = self._held
        end = len(held)
        at = min(self._preface, end)
        self._preface -= at
        for _ in range(MOST):
            if end - at < HEADER:
                break
            kind, size = held[at + 3], held[at] << 16 | held[at + 1] << 8 | held[at + 2]
            if _too_large(kind, size):
                if at:
                    break  # what stands before it comes first
                raise FrameTooLargeError("a frame is larger than its bound")
            if end - at < HEADER + size:
                break
            at += HEADER + size
            if kind in _BLOCKS:
                break
        self._held = held[at:]
        return held[:at]


def _too_large(kind: int, size: int) -> bool:
    return size > LARGEST or (kind == _SETTINGS and size > SETTINGS_BYTES)
