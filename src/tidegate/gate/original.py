"""Where a captured connection was going: four ways to find out, by what brought it here.

* `redirected`: netfilter changed its destination, and remembers the first one (SO_ORIGINAL_DST, linux/netfilter_ipv4.h;
  IP6T_SO_ORIGINAL_DST, linux/netfilter_ipv6/ip6_tables.h). The kernel looks in the socket's own namespace, so the gate
  may ask from outside.
* `addressed`: the listener stands on the destination itself (every address is local inside, or the port is bound), so
  the socket's own name is it.
* `carried`: a relay took it and connected here; its end's name says where (model/caught.py). Who can connect here is
  the socket's matter, whose folder is private.
* a `Destination`: the listener stands for one place, whatever its own address is (HLD-10).

Nothing here judges. An address that cannot be found out is an OSError, and the connection is refused.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, IPPROTO_IP, IPPROTO_IPV6, inet_pton
from errno import EAFNOSUPPORT, EDESTADDRREQ

from tidegate.model.caught import place_of
from tidegate.model.destination import Destination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import TypeAlias

    Place: TypeAlias = tuple[bytes, int] | Destination
    Finder: TypeAlias = Callable[[socket], Place]

REDIRECTED = "redirected"
ADDRESSED = "addressed"
CARRIED = "carried"

_SO_ORIGINAL_DST = 80  # the same number in both families
_SOCKADDR_IN = 16
_SOCKADDR_IN6 = 28
_MAPPED = bytes(10) + b"\xff\xff"  # RFC 4291 section 2.5.5.2


def redirected(sock: socket) -> tuple[bytes, int]:
    """Return the packed address and the port that a redirected connection was made to.

    Raises:
        OSError: when the kernel does not know.
    """
    if sock.family == AF_INET:
        raw = sock.getsockopt(IPPROTO_IP, _SO_ORIGINAL_DST, _SOCKADDR_IN)
        return raw[4:8], raw[2] << 8 | raw[3]
    raw = sock.getsockopt(IPPROTO_IPV6, _SO_ORIGINAL_DST, _SOCKADDR_IN6)
    return raw[8:24], raw[2] << 8 | raw[3]


def addressed(sock: socket) -> tuple[bytes, int]:
    """Return the packed address and the port of this end of a connection.

    Raises:
        OSError: when the connection is gone.
    """
    name = sock.getsockname()
    if sock.family == AF_INET:
        return inet_pton(AF_INET, name[0]), name[1]
    if sock.family != AF_INET6:
        raise OSError(EAFNOSUPPORT, "neither IPv4 nor IPv6")
    packed = inet_pton(AF_INET6, name[0].partition("%")[0])
    return (packed[12:] if packed[:12] == _MAPPED else packed), name[1]


def carried(sock: socket) -> tuple[bytes, int]:
    """Return the packed address and the port that the other end's name says.

    Raises:
        OSError: when it says none.
    """
    try:
        return place_of(sock.getpeername())
    except ValueError as error:
        raise OSError(EDESTADDRREQ, str(error)) from None


def finder(way: str | Destination) -> Finder:
    """Return the function for REDIRECTED, ADDRESSED, CARRIED, or one fixed destination.

    Raises:
        ValueError: for another word.
    """
    if isinstance(way, Destination):
        return lambda _sock: way
    if way == REDIRECTED:
        return redirected
    if way == ADDRESSED:
        return addressed
    if way == CARRIED:
        return carried
    raise ValueError(f"no way to find a destination is called {way!r}")
