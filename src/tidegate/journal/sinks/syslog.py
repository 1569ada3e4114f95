r"""The log as syslog messages (RFC 5424), and how they are framed on each transport.

    <108>1 2026-11-29T00:00:00.125Z box tidegate - net.blocked [tidegate@32473 seq="7" host="..."] {"seq":7,...}

Facility 13 is the audit log's. The structured data has what one filters by; the message is the line of the log, which
is ASCII and has no line end. In a value `"`, `\` and `]` are escaped (6.3.3), and what is not printable ASCII is
replaced: nothing in a message ends it, or begins another. 32473 is the number kept for examples (RFC 5612), for lack of
one of tidegate's own.

On TCP and TLS a message has its length before it (RFC 6587, 3.4.1; RFC 5425, 4.3). A datagram holds one message, of at
most `DATAGRAM` bytes (RFC 5426, 3.2): a longer line is left out of it, and said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate.journal.sinks.record import Record

FACILITY: Final = 13  # log audit (RFC 5424, 6.2.1)
DATAGRAM: Final = 8192  # what the usual receivers take at least
_LONGEST_VALUE = 255
_PLACE = ("task", "host", "port", "phase", "reason", "rule", "address")
_NAMES: Final = (*_PLACE, "outcome", "by", "count", "first", "last")
_NIL = "-"


def message(record: Record, hostname: str, longest: int = 0) -> bytes:
    """Return a record as one message; where it is longer than `longest` bytes (0: any), without the log's line."""
    values = {"seq": str(record.seq), "id": record.id}
    values |= {name: str(record.fields[name]) for name in _NAMES if record.fields.get(name) not in (None, "")}
    data = "".join(f' {name}="{_value(value)}"' for name, value in values.items())
    head = (
        f"<{FACILITY * 8 + record.severity}>1 {token(record.at, 32)} {token(hostname, 255)} tidegate - "
        f"{token(record.kind, 32)} [tidegate@32473{data}] "
    ).encode("ascii")
    whole = head + bytes(byte if 0x20 <= byte < 0x7F else 0x3F for byte in record.raw)
    return head + b"(the line is too long for a datagram)" if longest and len(whole) > longest else whole


def framed(text: bytes) -> bytes:
    """Return a message as it goes over a stream: its length in bytes, a space, itself."""
    return b"%d %s" % (len(text), text)


def token(text: str, longest: int) -> str:
    """Return text as a field of the header: printable ASCII without spaces, `-` where there is nothing."""
    return "".join(letter if "!" <= letter <= "~" else "?" for letter in text[:longest]) or _NIL


def _value(text: str) -> str:
    shown = "".join(letter if " " <= letter <= "~" else "?" for letter in text[:_LONGEST_VALUE])
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")
