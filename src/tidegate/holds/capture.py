"""Transparent capture, the kernel's side: whatever address a task connects to, it arrives at the gate (HLD-6).

Two ways, and none is ever taken in place of the other (HLD-7):

* `on`: netfilter sends every TCP connection to one listener, look-ups to the resolver, and turns the rest away;
* `ports`: every address is local, and there are listeners on some ports; a connection to any other port, and UDP, is
  refused by the kernel as on a machine where nobody listens. Those ports are taken from the task's own servers, and
  what was refused is not recorded.

Everything is made here, inside, before the task has a process, and handed out as descriptors with their roles; none
stays inside. Look-ups of a C library that finds no resolv.conf go to 127.0.0.1 (resolver(5)): `loopback` is for that.
"""

from __future__ import annotations

import _socket
from _socket import AF_INET, AF_INET6, IPPROTO_IP, IPPROTO_IPV6, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_STREAM

from tidegate.holds import inside, netfilter, routes
from tidegate.holds.inside import ADDRESSED, DATAGRAMS, ON, PORTS, REDIRECTED, STREAMS, TURNED_AWAY
from tidegate.holds.network import BACKLOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Where programs that know no proxy go: ssh, HTTP, TLS, git, and databases.
COMMON_PORTS = (22, 80, 443, 9418, 3306, 5432, 5671, 5672, 6379, 27017)
MOST_PORTS = 200  # descriptors travel in one message, which takes 253

_IP_FREEBIND, _IPV6_FREEBIND = 15, 78  # linux/in.h, linux/in6.h
_IPV6_V6ONLY = 26

Made = list[tuple[str, int]]


def capture(mode: str, port: int, ports: Iterable[int] = (), *, loopback: bool = False, again: bool = False) -> Made:
    """Capture the connections of this network namespace; the roles and descriptors for the gate.

    `again`: addresses, routes and table were made before, and only who listened is gone.

    Raises:
        OSError: where the kernel cannot; `filename` says what. What was made ends with the namespace.
    """
    both = routes.have_ipv6() if again else routes.capture_everything()
    families = (AF_INET, AF_INET6) if both else (AF_INET,)
    made: Made = []
    if mode == ON:
        made += [(REDIRECTED, listen(family, _gate(family), port)) for family in families]
        for family in families:
            made += _resolver(family, _gate(family))
        made.append((TURNED_AWAY, netfilter.open_log().detach()))
        if not again:
            netfilter.install(port)
        if loopback:
            for family in families:
                made += _resolver(family, "127.0.0.1" if family == AF_INET else "::1")
    else:
        # A dual socket hears IPv4, too.
        family, everywhere = (AF_INET6, "::") if both else (AF_INET, "0.0.0.0")  # noqa: S104 (of the task's namespace)
        wanted = dict.fromkeys((*COMMON_PORTS, *ports))
        made += [
            (ADDRESSED, listen(family, everywhere, one, dual=True)) for one in wanted if one not in (inside.DNS, port)
        ]
        for family in families:
            made += _resolver(family, "0.0.0.0" if family == AF_INET else "::")  # noqa: S104 (likewise)
    return made


def listen(family: int, address: str, port: int, *, dual: bool = False) -> int:
    """A listening TCP socket, as a descriptor.

    Raises:
        OSError: when the address cannot be had.
    """
    wire = _bound(family, SOCK_STREAM, address, port, dual=dual)
    wire.listen(BACKLOG)
    return wire.detach()


def _gate(family: int) -> str:
    return inside.GATE4 if family == AF_INET else inside.GATE6


def datagrams(family: int, address: str, port: int) -> int:
    """A bound UDP socket, as a descriptor.

    Raises:
        OSError: when the address cannot be had.
    """
    return _bound(family, SOCK_DGRAM, address, port).detach()


def _resolver(family: int, address: str) -> Made:
    return [(DATAGRAMS, datagrams(family, address, inside.DNS)), (STREAMS, listen(family, address, inside.DNS))]


def _bound(family: int, kind: int, address: str, port: int, *, dual: bool = False) -> _socket.socket:
    wire = _socket.socket(family, kind | SOCK_CLOEXEC)
    try:
        if kind == SOCK_STREAM:
            wire.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)  # as in network.py
        if family == AF_INET6:
            wire.setsockopt(IPPROTO_IPV6, _IPV6_V6ONLY, 0 if dual else 1)
            wire.setsockopt(IPPROTO_IPV6, _IPV6_FREEBIND, 1)  # the address is a route's, not the interface's
        else:
            wire.setsockopt(IPPROTO_IP, _IP_FREEBIND, 1)
        wire.bind((address, port))
    except OSError as error:
        wire.close()
        error.filename = f"{address} port {port}"
        raise
    return wire


def taken(mode: str, port: int, ports: Iterable[int] = ()) -> set[int]:
    """The ports that the task's own servers cannot have on every address."""
    return {port, *COMMON_PORTS, *ports} if mode == PORTS else {port}


def too_many(ports: Iterable[int]) -> bool:
    """Whether `ports` mode cannot have a listener for each of these."""
    return len({*COMMON_PORTS, *ports}) > MOST_PORTS
