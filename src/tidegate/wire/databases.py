"""What the gate says to a refused database client whose protocol lets the client speak first (GAT-9).

PostgreSQL (its documentation's chapter "Frontend/Backend Protocol", version 3): a client may ask for encryption first,
by eight bytes that are answered with one; then comes its start-up packet, to which an ErrorResponse is an answer.
Redis (the RESP specification): a request is an array of bulk strings, and `-ERR text` is an answer to any.

What it does not do: read what a client says beyond telling these two apart, or speak for servers that speak first.
"""

from __future__ import annotations

ENCRYPTION_REQUEST = 8  # bytes
NO_ENCRYPTION = b"N"

_SSL = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"  # SSLRequest: its length, 80877103
_GSS = b"\x00\x00\x00\x08\x04\xd2\x16\x30"  # GSSENCRequest: its length, 80877104
_VERSION = b"\x00\x03"  # the major number in a start-up packet, behind its length
_LONGEST = 10_000  # bytes: PostgreSQL's own bound of a start-up packet (MAX_STARTUP_PACKET_LENGTH)
_MAX_TEXT = 1024


def asks_for_encryption(data: bytes) -> bool:
    """Whether these are the first bytes of a PostgreSQL client that would like TLS or GSSAPI."""
    return data[:ENCRYPTION_REQUEST] in {_SSL, _GSS}


def database_refusal(data: bytes, text: str) -> bytes:
    """Return what tells a client with these first bytes why it is refused, empty where they are neither's."""
    if data[4:6] == _VERSION and 8 <= int.from_bytes(data[:4], "big") <= _LONGEST:
        return _error_response(text)
    if data[:1] == b"*" and data[1:2].isdigit():
        return b"-ERR " + _line(text) + b"\r\n"
    return b""


def _line(text: str) -> bytes:
    return bytes(byte if 0x20 <= byte < 0x7F else 0x3F for byte in text.encode("ascii", "backslashreplace"))[:_MAX_TEXT]


def _error_response(text: str) -> bytes:
    # Severity (twice: translated and not), SQLSTATE 28000 (invalid authorization specification), message.
    fields = b"SFATAL\x00VFATAL\x00C28000\x00M" + _line(text) + b"\x00\x00"
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
