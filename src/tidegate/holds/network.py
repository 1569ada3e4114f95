"""The network of a task: a loopback of its own and one listener on it, which the gate serves from outside.

By ioctl, so that no `ip` is needed (CASES B91). A loopback that is up already, or has its address already, is as
good as one that we brought up (B92). Man pages: netdevice(7), ip(7).
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import struct

SIOCGIFFLAGS = 0x8913  # linux/sockios.h
SIOCSIFFLAGS = 0x8914
SIOCSIFADDR = 0x8916
IFF_UP = 1  # linux/if.h
LOOPBACK = "127.0.0.1"
BACKLOG = 4096  # the kernel cuts it to net.core.somaxconn, which is 4096 since Linux 5.4
_LOOPBACK = b"lo".ljust(16, b"\0")


def raise_loopback() -> None:
    """Bring `lo` of this network namespace up; the kernel gives it 127.0.0.1/8 and ::1 itself.

    Raises:
        OSError: when it cannot be brought up.
    """
    wire = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
    try:
        answer = fcntl.ioctl(wire.fileno(), SIOCGIFFLAGS, _LOOPBACK.ljust(40, b"\0"))
        (flags,) = struct.unpack_from("H", answer, 16)
        if not flags & IFF_UP:
            request = _LOOPBACK + struct.pack("H", flags | IFF_UP)
            fcntl.ioctl(wire.fileno(), SIOCSIFFLAGS, request.ljust(40, b"\0"))
    finally:
        wire.close()


def give_address() -> None:
    """Give `lo` 127.0.0.1 where the kernel did not; that it is there already is fine."""
    wire = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
    try:
        address = struct.pack("HH4s8x", _socket.AF_INET, 0, _socket.inet_aton("127.0.0.1"))
        fcntl.ioctl(wire.fileno(), SIOCSIFADDR, (_LOOPBACK + address).ljust(40, b"\0"))
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    finally:
        wire.close()


def moulds() -> list[int]:
    """Two unbound TCP sockets of each family that this network namespace has, as descriptors.

    Raises:
        OSError: when there are none to be had.
    """
    made = [_stream(_socket.AF_INET), _stream(_socket.AF_INET)]
    try:
        made += [_stream(_socket.AF_INET6), _stream(_socket.AF_INET6)]
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
    return made


def _stream(family: int) -> int:
    return _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC).detach()


def listen(port: int, address: str = LOOPBACK) -> int:
    """A socket that listens on an address of loopback of this network namespace, as a descriptor.

    Raises:
        OSError: when the port cannot be had.
    """
    wire = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    # What is left of connections to a listener before this one must not hold its place; who listens still does.
    wire.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    try:
        try:
            wire.bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            give_address()
            wire.bind((address, port))
        wire.listen(BACKLOG)
    except OSError:
        wire.close()
        raise
    return wire.detach()
