"""The grammar of RFC 9110 and RFC 9112 as tables, shared by the parsers of this room.

`data.translate(None, ALLOWED)` removes all allowed bytes in one C loop: what is left, if anything, is at
fault. That is as fast as a compiled pattern and spares the import of `re` (6 ms at every start).
"""

from __future__ import annotations

DIGIT = b"0123456789"
HEX = b"0123456789abcdefABCDEF"
ALPHA = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOKEN = DIGIT + ALPHA + b"!#$%&'*+-.^_`|~"  # RFC 9110 section 5.6.2
VCHAR = bytes(range(0x21, 0x7F))  # RFC 5234: visible ASCII, no space
OWS = b" \t"  # RFC 9110 section 5.6.3
# What may stand in a field line between its CRLFs: VCHAR, SP, HTAB and obs-text (RFC 9110 section 5.5).
FIELD = b"\t" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100))
HEAD = FIELD + b"\r\n"


def is_token(text: bytes) -> bool:
    """Whether `text` is one token: a method, a field name, a connection option."""
    return bool(text) and not text.translate(None, TOKEN)


def list_members(values: list[bytes]) -> list[bytes]:
    """Return the members of a comma-separated field, over all its lines, stripped and in lower case."""
    members = (member.strip(OWS).lower() for value in values for member in value.split(b","))
    return [member for member in members if member]
