"""DNS answers, built from the query they answer (RFC 1035, RFC 6891, RFC 8914).

Rules of the file:

* The question goes back byte for byte; the answer's owner is a pointer to it (RFC 1035 section 4.1.4).
* OPT stands in an answer exactly where it stood in the query (RFC 6891 section 6.1.1), and an extended error only then.
* Negative answers have no SOA, so that nobody keeps them (RFC 2308 section 5): a rule may be added at any time.
* What is too long for its transport loses the text of its extended error first, then its records, and says so with TC.
"""

from __future__ import annotations

from tidegate.wire.dns import CD, HEADER, IN, NOERROR, NXDOMAIN, PTR, QR, RA, RD, TC
from tidegate.wire.errors import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.wire.dns import Query

# Extended errors (RFC 8914 section 4).
OTHER = 0
BLOCKED = 15  # "due to an internal security policy imposed by the operator of the server"

UDP_SMALL = 512  # RFC 1035 section 2.3.4: without EDNS
UDP_LARGE = 1232  # never fragmented: IPv6's minimum MTU without headers (DNS flag day 2020)
STREAM = 65535
MAX_TEXT = 200  # of an extended error
_OWNER = b"\xc0\x0c"  # the name in the question


def datagram_limit(query: Query) -> int:
    """Return how long an answer over UDP may be."""
    return UDP_SMALL if query.edns is None else min(max(query.edns.size, UDP_SMALL), UDP_LARGE)


def addresses(query: Query, packed: Sequence[bytes], ttl: int, limit: int = STREAM) -> bytes:
    """Return an answer with addresses, all of the type that was asked for; none is NODATA. `ttl` is in seconds."""
    return _message(query, NOERROR, [_record(query.kind, ttl, data) for data in packed], limit)


def no_data(query: Query, limit: int = STREAM) -> bytes:
    """Return the answer for a name that exists and has nothing of this type."""
    return _message(query, NOERROR, [], limit)


def pointer(query: Query, name: str, ttl: int, limit: int = STREAM) -> bytes:
    """Return an answer with one PTR record that leads to `name`, a canonical host name."""
    labels = name.encode("ascii").split(b".")
    data = b"".join(b"%c%b" % (len(label), label) for label in labels) + b"\0"
    return _message(query, NOERROR, [_record(PTR, ttl, data)], limit)


def no_name(query: Query, text: str, limit: int = STREAM, *, code: int = BLOCKED) -> bytes:
    """Return NXDOMAIN, with an extended error that says why to who understands it."""
    return _message(query, NXDOMAIN, [], limit, (code, text))


def failure(query: Query, rcode: int, text: str = "", limit: int = STREAM, *, code: int = OTHER) -> bytes:
    """Return an answer that is nothing but a response code: FORMERR, SERVFAIL, NOTIMP, REFUSED or BADVERS."""
    return _message(query, rcode, [], limit, (code, text) if text else None)


def _record(kind: int, ttl: int, data: bytes) -> bytes:
    return b"%b%b%b%b%b%b" % (
        _OWNER,
        kind.to_bytes(2, "big"),
        IN.to_bytes(2, "big"),
        ttl.to_bytes(4, "big"),
        len(data).to_bytes(2, "big"),
        data,
    )


def _message(
    query: Query, rcode: int, records: Sequence[bytes], limit: int, error: tuple[int, str] | None = None
) -> bytes:
    flags = QR | RA | query.flags & (RD | CD) | rcode & 15
    opt = _opt(query, rcode, error)
    room = limit - HEADER - len(query.question)
    body = b"".join(records)
    count = len(records)
    if len(body) + len(opt) > room and error is not None:
        opt = _opt(query, rcode, (error[0], ""))
    if len(body) + len(opt) > room:
        body, count, flags = b"", 0, flags | TC
    head = b"%b%b\0\1%b\0\0%b" % (
        query.number.to_bytes(2, "big"),
        flags.to_bytes(2, "big"),
        count.to_bytes(2, "big"),
        b"\0\1" if opt else b"\0\0",
    )
    return head + query.question + body + opt


def _opt(query: Query, rcode: int, error: tuple[int, str] | None) -> bytes:
    if query.edns is None:
        return b""
    option = b""
    if error is not None:
        text = printable(error[1], MAX_TEXT).encode("ascii")
        option = b"\0\x0f%b%b%b" % ((len(text) + 2).to_bytes(2, "big"), error[0].to_bytes(2, "big"), text)
    # The root, OPT, our own size, the upper bits of the response code, version 0, DO as it came (RFC 3225 section 3).
    return b"\0\0\x29%b%c\0%b%b%b" % (
        UDP_LARGE.to_bytes(2, "big"),
        rcode >> 4,
        b"\x80\0" if query.edns.dnssec else b"\0\0",
        len(option).to_bytes(2, "big"),
        option,
    )
