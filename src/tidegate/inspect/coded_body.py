"""The coding of a request's body, taken off whole and within bounds (RFC 9110 section 8.4; codings.py).

Rules of the file: one coding, and the whole of it, or an error; what comes out is never more than it may be, not even
for a moment. Who reads the result sends on the result: two decoders never differ.
"""

from __future__ import annotations

from tidegate.inspect.codings import CODINGS, Decoding
from tidegate.wire.errors import WireError

PLAIN = (b"", b"identity")
_MEMBERS = 16  # a body is of one; each costs time in which nobody else is served


class CodedError(ValueError):
    """It cannot be decoded; says why."""


class TooLargeError(CodedError):
    """What comes out is larger than it may be."""


def can_decode(coding: bytes) -> bool:
    """Whether this one coding, in lower case, can be taken off here."""
    return coding in PLAIN or coding in CODINGS


def decoded(coding: bytes, data: bytes, most: int) -> bytes:
    """Return a body without its coding, at most so many bytes.

    Raises:
        TooLargeError: it would be more.
        CodedError: it is not what the coding says, is cut short, or grows beyond measure.
    """
    if coding in PLAIN:
        return data
    parts, size = [], 0
    try:
        decoding = Decoding((coding,), _MEMBERS)
        decoding.put(data)
        while decoding.pending:
            part = decoding.take()
            size += len(part)
            if size > most:
                raise TooLargeError("decoded, the body is too large")
            parts.append(part)
        decoding.end()
    except WireError as error:
        raise CodedError(error.detail) from None
    return b"".join(parts)
