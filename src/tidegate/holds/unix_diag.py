"""Which name a unix socket listens at, asked of the kernel by its inode: socket diagnostics, sock_diag(7).

One question, one answer; the kernel has answered when it was sent. linux/unix_diag.h.
"""

from __future__ import annotations

import errno
import os
import struct

from tidegate.holds import netlink
from tidegate.holds.netlink import Message

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_AF_UNIX = 1
_LISTEN = 10  # TCP_LISTEN, of unix sockets too
_SHOW_NAME = 1
_NAME = 0  # UNIX_DIAG_NAME
_ANY_COOKIE = 0xFFFFFFFF
_LARGEST = 8192
_ANSWER = 16  # struct unix_diag_msg


def listener(inode: int) -> bytes:
    """The name at which the socket with this inode listens, b'' where it does not; abstract ones begin with a zero.

    Raises:
        OSError: where there is no such socket, or the kernel has no diagnostics.
    """
    # struct unix_diag_req: family, protocol, padding, states, inode, what to show, cookie
    body = struct.pack("=BBHIIIII", _AF_UNIX, 0, 0, 1 << _LISTEN, inode, _SHOW_NAME, _ANY_COOKIE, _ANY_COOKIE)
    wire = netlink.connect(_SOCK_DIAG)
    try:
        wire.send(Message("a unix socket", _BY_FAMILY, 0, body).packed(1))
        data = wire.recv(_LARGEST)
    finally:
        wire.close()
    for kind, _sequence, start, end in netlink.split(data):
        if kind == netlink.NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", data, start)
            raise OSError(-code, os.strerror(-code), "socket diagnostics")
        family, _type, state, _pad, found = struct.unpack_from("=BBBBI", data, start)
        if kind == _BY_FAMILY and (family, found) == (_AF_UNIX, inode):
            return _name(data[start + _ANSWER : end]) if state == _LISTEN else b""
    raise OSError(errno.EPROTO, os.strerror(errno.EPROTO), "socket diagnostics")


def _name(attributes: bytes) -> bytes:
    at = 0
    while at + 4 <= len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, at)
        if length < 4:
            break
        if kind == _NAME:
            return attributes[at + 4 : at + length]
        at += length + -length % 4
    return b""
