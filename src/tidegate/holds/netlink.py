"""Netlink messages, as much of them as a hold needs: build, send, and read what the kernel says to each.

Rules of the file: messages are bytes that are put together before anything is sent; one `transact` is one datagram,
so that what belongs together is asked together; every message is answered, by 0 or by an errno that becomes an
OSError with the name of what failed. Headers are in the machine's byte order, and netfilter's values are in the
network's: whoever builds them says which.

Man pages: netlink(7), rtnetlink(7). It knows no tables, routes or addresses: routes.py and netfilter.py do.
"""

from __future__ import annotations

import _socket
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

AF_NETLINK = 16
NETLINK_ROUTE = 0
NETLINK_NETFILTER = 12

# linux/netlink.h
NLM_F_REQUEST = 0x001
NLM_F_ACK = 0x004
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
NLM_F_APPEND = 0x800
NLMSG_ERROR = 2
NLA_F_NESTED = 0x8000

HEADER = 16  # struct nlmsghdr
_ALIGNED = 4
_LARGEST = 65536


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute: its length and kind, the value, and zeros up to the next four bytes."""
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % _ALIGNED)


def nest(kind: int, *attributes: bytes) -> bytes:
    """An attribute that is made of attributes."""
    return attribute(kind | NLA_F_NESTED, b"".join(attributes))


def text(kind: int, value: str) -> bytes:
    """An attribute that is a string; the kernel wants its final zero."""
    return attribute(kind, value.encode() + b"\0")


def big(kind: int, value: int, size: int = 4) -> bytes:
    """An attribute that is a number of `size` bytes in the network's order, as netfilter has them."""
    return attribute(kind, value.to_bytes(size, "big"))


class Message:
    """One request: `what` names it for errors, `kind` is its nlmsg_type, `flags` are added to NLM_F_REQUEST."""

    __slots__ = ("body", "flags", "kind", "what")

    def __init__(self, what: str, kind: int, flags: int, body: bytes) -> None:
        self.what = what
        self.kind = kind
        self.flags = flags | NLM_F_REQUEST
        self.body = body

    def packed(self, sequence: int) -> bytes:
        """The message with its header."""
        length = HEADER + len(self.body)
        return struct.pack("=IHHII", length, self.kind, self.flags, sequence, 0) + self.body + bytes(-length % _ALIGNED)


def connect(protocol: int) -> _socket.socket:
    """A netlink socket of this network namespace.

    Raises:
        OSError: where the kernel has no such protocol.
    """
    try:
        return _socket.socket(AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, protocol)
    except OSError as error:
        error.filename = f"netlink of kind {protocol}"
        raise


def transact(wire: _socket.socket, messages: Sequence[Message]) -> None:
    """Send all messages at once and see that every one that asks for an answer is answered by 0.

    Raises:
        OSError: with the first errno that came back and what it was for; EIO when an answer is missing.
    """
    wire.send(b"".join(message.packed(number) for number, message in enumerate(messages, 1)))
    waiting = {number for number, message in enumerate(messages, 1) if message.flags & NLM_F_ACK}
    # The kernel has done everything, and answered, when send returns: an answer that is not here will not come.
    while True:
        try:
            answers = wire.recv(_LARGEST, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
        for number, code in errors(answers):
            if code:
                what = messages[number - 1].what if 1 <= number <= len(messages) else "netlink"
                raise OSError(code, os.strerror(code), what)
            waiting.discard(number)
    if waiting:
        raise OSError(5, os.strerror(5), messages[min(waiting) - 1].what)  # EIO


def errors(data: bytes) -> list[tuple[int, int]]:
    """The (sequence, errno) of each acknowledgement in a datagram; errno 0 is success. Cut short ones are left out."""
    found = []
    for kind, sequence, start, end in split(data):
        if kind == NLMSG_ERROR and end - start >= 4:
            (code,) = struct.unpack_from("=i", data, start)
            found.append((sequence, -code))
    return found


def split(data: bytes) -> list[tuple[int, int, int, int]]:
    """The messages of a datagram: type, sequence, and where the body begins and ends."""
    found = []
    at = 0
    while at + HEADER <= len(data):
        length, kind, _flags, sequence, _port = struct.unpack_from("=IHHII", data, at)
        if length < HEADER or at + length > len(data):
            break
        found.append((kind, sequence, at + HEADER, at + length))
        at += length + -length % _ALIGNED
    return found
