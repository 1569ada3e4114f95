"""DNS queries as a stub resolver sends them: bytes to a value, strict and bounded (RFC 1035, RFC 6891).

Rules of the file:

* A query is one question and at most one OPT record, and nothing behind. Names in it are never compressed.
* A name is kept as the raw labels that came. Only what `canonical_host` takes as a name is a host (POL-3); a label that
  holds a dot is none, whatever it looks like when it is joined.
* An error carries the answer that says it in DNS, or none where the message must not be answered at all: a response,
  which would make two servers talk for ever, or what is too short to be a query.

Answers are built in dns_answer.py. What this does not do: it reads no answers, because nothing is ever forwarded.
"""

from __future__ import annotations

from _struct import unpack_from

from tidegate.model.host import Host, HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.wire.errors import WireError, escaped

HEADER = 12  # RFC 1035 section 4.1.1
MAX_QUERY = 4096  # bytes; a name has 255, the rest is padding (RFC 8467 pads to multiples of 128)
MAX_NAME = 255  # RFC 1035 section 2.3.4, in wire form
MAX_LABEL = 63

# Types and classes (IANA "DNS Parameters").
A = 1
PTR = 12
AAAA = 28
OPT = 41
IXFR = 251
AXFR = 252
IN = 1

# Response codes.
NOERROR = 0
FORMERR = 1
SERVFAIL = 2
NXDOMAIN = 3
NOTIMP = 4
REFUSED = 5
BADVERS = 16  # RFC 6891 section 9

# Bits of the second word of the header.
QR = 0x8000
TC = 0x0200
RD = 0x0100
RA = 0x0080
CD = 0x0010
_OPCODE = 0x7800

_IN_ADDR = (b"in-addr", b"arpa")
_IP6 = (b"ip6", b"arpa")


class Edns(Value):
    """What the OPT record of a query says: the largest answer its sender takes over UDP, the version, the DO bit."""

    size: int
    version: int
    dnssec: bool


class Query(Value):
    """One well-formed question.

    `labels` are the name's raw labels, `question` is the question section as it came, to be sent back byte for byte
    (clients mix upper and lower case to tell forgeries). `flags` is the second word of the header.
    """

    number: int
    flags: int
    labels: tuple[bytes, ...]
    kind: int
    space: int
    question: bytes
    edns: Edns | None = None

    @property
    def host(self) -> Host | None:
        """The canonical name that is asked for, None where it is no host name."""
        return host_of(self.labels)

    @property
    def shown(self) -> str:
        """The name as it may stand in a journal."""
        return escaped(b".".join(self.labels))


def host_of(labels: tuple[bytes, ...]) -> Host | None:
    """Return the canonical host that labels spell, None where they spell an address or no host at all."""
    if any(b"." in label for label in labels):
        return None
    try:
        host = canonical_host(b".".join(labels))
    except HostError:
        return None
    return host if host.packed is None else None


def address_of(labels: tuple[bytes, ...]) -> bytes | None:
    """Return the packed address whose reverse name this is (RFC 1035 section 3.5, RFC 3596 section 2.5), or None."""
    suffix = tuple(label.lower() for label in labels[-2:])
    digits = labels[:-2][::-1]
    if suffix == _IN_ADDR and len(digits) == 4:
        if all(digit.isdigit() and len(digit) <= 3 and int(digit) < 256 for digit in digits):
            return bytes(map(int, digits))
    elif suffix == _IP6 and len(digits) == 32:
        joined = b"".join(digits)
        if len(joined) == 32 and not joined.translate(None, b"0123456789abcdefABCDEF"):
            return bytes.fromhex(joined.decode("ascii"))
    return None


def parse_query(data: bytes) -> Query:
    """Return the query that one message is.

    Raises:
        WireError: BAD_DNS; its `reply` is the answer, empty where there must be none.
    """
    if len(data) < HEADER:
        raise WireError(Reason.BAD_DNS, "it is shorter than a header")
    number, flags, questions, answers, authorities, additional = unpack_from(">6H", data)
    if flags & QR:
        raise WireError(Reason.BAD_DNS, "it is a response")
    if flags & _OPCODE:
        raise _bad(data, "it is no standard query", NOTIMP)
    if len(data) > MAX_QUERY:
        raise _bad(data, f"it is longer than {MAX_QUERY} bytes")
    if flags & TC:
        raise _bad(data, "it is truncated")
    if questions != 1:
        raise _bad(data, "it has not exactly one question")
    if answers or authorities or additional > 1:
        raise _bad(data, "it has records that no query has")
    labels, end = _name(data)
    if end + 4 > len(data):
        raise _bad(data, "the question ends early")
    kind, space = unpack_from(">2H", data, end)
    end += 4
    edns, rest = _opt(data, end) if additional else (None, end)
    if rest != len(data):
        raise _bad(data, "something stands behind it")
    return Query(number, flags, labels, kind, space, data[HEADER:end], edns)


def _name(data: bytes) -> tuple[tuple[bytes, ...], int]:
    labels = []
    at = HEADER
    while True:
        if at >= len(data):
            raise _bad(data, "the name ends early")
        size = data[at]
        at += 1
        if not size:
            break
        if size > MAX_LABEL:
            raise _bad(data, "the name is compressed or has a label of an unknown kind")
        if at + size > len(data):
            raise _bad(data, "a label ends early")
        labels.append(data[at : at + size])
        at += size
        if at + 1 - HEADER > MAX_NAME:
            raise _bad(data, f"the name is longer than {MAX_NAME} bytes")
    return tuple(labels), at


def _opt(data: bytes, at: int) -> tuple[Edns, int]:
    # RFC 6891 section 6.1.2: the root name, OPT, size as the class, the rest in the place of the TTL.
    if at + 11 > len(data):
        raise _bad(data, "the additional record ends early")
    name, kind, size, _extended, version, flags, length = unpack_from(">BHHBBHH", data, at)
    if name or kind != OPT:
        raise _bad(data, "the additional record is no OPT")
    at += 11
    end = at + length
    if end > len(data):
        raise _bad(data, "the OPT record ends early")
    while at < end:
        if at + 4 > end:
            raise _bad(data, "an EDNS option ends early")
        at += 4 + int(unpack_from(">H", data, at + 2)[0])
        if at > end:
            raise _bad(data, "an EDNS option ends early")
    return Edns(size, version, bool(flags & 0x8000)), end


def _bad(data: bytes, detail: str, rcode: int = FORMERR) -> WireError:
    # A header alone: what cannot be read is not sent back.
    flags = int.from_bytes(data[2:4], "big") & (_OPCODE | RD | CD) | QR | RA | rcode
    return WireError(Reason.BAD_DNS, detail, reply=data[:2] + flags.to_bytes(2, "big") + bytes(8))


# Over TCP each message has its length in front (RFC 1035 section 4.2.2, RFC 7766 section 8).


def read_frame(buf: bytes | bytearray) -> tuple[bytes, int] | None:
    """Return the first message of `buf` and how many bytes it took, None while it is not whole.

    Raises:
        WireError: BAD_DNS, when it announces more than MAX_QUERY or less than a header.
    """
    if len(buf) < 2:
        return None
    size = int.from_bytes(buf[:2], "big")
    if not HEADER <= size <= MAX_QUERY:
        raise WireError(Reason.BAD_DNS, f"a message of {size} bytes is announced")
    if len(buf) < size + 2:
        return None
    return bytes(buf[2 : size + 2]), size + 2


def framed(message: bytes) -> bytes:
    """Return a message with its length in front."""
    return len(message).to_bytes(2, "big") + message
