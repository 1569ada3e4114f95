"""The framing of netlink: messages in a datagram, and attributes in a message. Pure and strict.

Invariant: any bytes give their parts, each within the bytes given, or WireError; nothing is read twice or skipped but
padding. Numbers of the headers are in the machine's byte order; what a body holds is its reader's business.

From linux/netlink.h; netlink(7). holds/netlink.py builds and sends what makes a hold; here is what the gate reads.
"""

from __future__ import annotations

from errno import ENOENT
from struct import pack, unpack_from

from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError

NLM_F_REQUEST = 0x001
NLM_F_ACK = 0x004
NLMSG_ERROR = 2
HEADER = 16  # struct nlmsghdr
_ATTRIBUTE = 4  # struct nlattr
_KIND = 0x3FFF  # NLA_TYPE_MASK: without NLA_F_NESTED and NLA_F_NET_BYTEORDER

Part = tuple[int, int, int]
"""What it is, and where its content begins and ends."""


def request(kind: int, sequence: int, body: bytes, flags: int = 0) -> bytes:
    """Return one message to the kernel."""
    return pack("=IHHII", HEADER + len(body), kind, flags | NLM_F_REQUEST, sequence, 0) + body + bytes(-len(body) % 4)


def messages(data: bytes) -> list[tuple[Part, int]]:
    """Return the messages of a datagram, each with its sequence number.

    Raises:
        WireError: when one is cut short, or something is left at the end that is none.
    """
    found = []
    at = 0
    while at < len(data):
        if at + HEADER > len(data):
            raise malformed("a message of netlink is cut short")
        length, kind, _flags, sequence, _port = unpack_from("=IHHII", data, at)
        if length < HEADER or at + length > len(data):
            raise malformed("a message of netlink has an impossible length")
        found.append(((kind, at + HEADER, at + length), sequence))
        at += length + -length % 4
    return found


def attributes(data: bytes, start: int, end: int) -> list[Part]:
    """Return the attributes between two places.

    Raises:
        WireError: as `messages`.
    """
    found = []
    at = start
    while at < end:
        if at + _ATTRIBUTE > end:
            raise malformed("an attribute of netlink is cut short")
        length, kind = unpack_from("=HH", data, at)
        if length < _ATTRIBUTE or at + length > end:
            raise malformed("an attribute of netlink has an impossible length")
        found.append((kind & _KIND, at + _ATTRIBUTE, at + length))
        at += length + -length % 4
    return found


def answer(data: bytes, sequence: int, about: str) -> Part | None:
    """Return the one message that answers one question; None where the kernel knows no such thing (ENOENT).

    Raises:
        WireError: as `only`, and for any other error of the kernel's.
    """
    part = only(data, sequence)
    if part[0] != NLMSG_ERROR:
        return part
    number = error_number(data, part)
    if number == ENOENT:
        return None
    raise malformed(f"the kernel does not say {about} (error {number})")


def only(data: bytes, sequence: int) -> Part:
    """Return the one message of a datagram that answers one question.

    Raises:
        WireError: when there are more, or none, or it answers another.
    """
    parts = messages(data)
    if len(parts) != 1 or parts[0][1] != sequence:
        raise malformed("not one answer to one question")
    return parts[0][0]


def error_number(data: bytes, part: Part) -> int:
    """Return the errno that a message of type NLMSG_ERROR carries; 0 says that all is well.

    Raises:
        WireError: when it is too short for one.
    """
    _kind, start, end = part
    if end - start < 4:
        raise malformed("an error of netlink has no number")
    return -int(unpack_from("=i", data, start)[0])


def malformed(detail: str) -> WireError:
    """Return the error for what the kernel cannot have meant."""
    return WireError(Reason.UNKNOWN_PEER, detail)
