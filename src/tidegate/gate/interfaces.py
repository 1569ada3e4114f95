"""This machine's own addresses, kept fresh by the kernel's announcements (ADR-2).

Rules of the file:

* The kernel tells of each change over rtnetlink (rtnetlink(7), RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR); what is
  told is not read, only that something was: the table is dumped anew when it is asked for next.
* What the machine's host name resolves to is own too; it is read from /etc/hosts only, because a resolver may be
  slow, absent, or in somebody else's hands.
* The same object is returned while nothing changes, so that whoever depends on it compares identities.
* Where the kernel gives no netlink socket, the table is read again at most once a second.

Loopback ranges are own without being listed (addresses/). Sources: netlink(7), rtnetlink(7), RFC 3549.
"""

from __future__ import annotations

import _socket
import os
from _socket import SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_RAW
from struct import pack, unpack_from

from tidegate.addresses.surroundings import Surroundings
from tidegate.gate.hosts import hosts_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.reactor import Reactor
    from tidegate.model.reason import Reason

AF_NETLINK = 16
NETLINK_ROUTE = 0
RTM_NEWADDR, RTM_GETADDR = 20, 22  # linux/rtnetlink.h
NLMSG_ERROR, NLMSG_DONE = 2, 3  # linux/netlink.h
NLM_F_REQUEST_DUMP = 0x1 | 0x300
IFA_ADDRESS, IFA_LOCAL = 1, 2  # linux/if_addr.h
GROUPS = 0x10 | 0x100  # RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR
_HEADER, _IFADDR = 16, 8  # sizes of nlmsghdr and ifaddrmsg
_MOST = 1 << 20  # bytes of one dump; a machine with 10,000 addresses has 700 KiB


def own_addresses() -> frozenset[bytes]:
    """Return the addresses of all interfaces in this network namespace, packed.

    Raises:
        OSError: when the kernel does not tell.
    """
    sock = _socket.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)
    try:
        sock.settimeout(2.0)
        sock.send(pack("=IHHII", _HEADER + 4, RTM_GETADDR, NLM_F_REQUEST_DUMP, 1, 0) + b"\0\0\0\0")
        found: set[bytes] = set()
        taken = 0
        while taken < _MOST:
            data = sock.recv(1 << 16)
            taken += len(data)
            if not data or not _read_dump(data, found):
                break
        return frozenset(found)
    finally:
        sock.close()


def _read_dump(data: bytes, found: set[bytes]) -> bool:
    # Whether more is to come.
    at = 0
    while at + _HEADER <= len(data):
        length, kind = unpack_from("=IH", data, at)
        if kind == NLMSG_DONE or length < _HEADER:
            return False
        if kind == NLMSG_ERROR:
            raise OSError(-unpack_from("=i", data, at + _HEADER)[0], "netlink dump failed")
        if kind == RTM_NEWADDR:
            _read_attributes(data, at + _HEADER + _IFADDR, min(at + length, len(data)), found)
        at += (length + 3) & ~3
    return True


def _read_attributes(data: bytes, at: int, end: int, found: set[bytes]) -> None:
    # On a point-to-point link IFA_ADDRESS is the other end; where there is an IFA_LOCAL that one is ours.
    values: dict[int, bytes] = {}
    while at + 4 <= end:
        length, kind = unpack_from("=HH", data, at)
        if length < 4:
            return
        values[kind] = data[at + 4 : min(at + length, end)]
        at += (length + 3) & ~3
    address = values.get(IFA_LOCAL) or values.get(IFA_ADDRESS)
    if address is not None and len(address) in {4, 16}:
        found.add(address)


class Interfaces:
    """Watches the interfaces. `surroundings` is cheap to call for each connection."""

    __slots__ = ("_next_look", "_ports", "_reactor", "_sock", "_stale", "_value")

    def __init__(self, reactor: Reactor, protected_ports: frozenset[int] = frozenset()) -> None:
        self._reactor = reactor
        self._ports = protected_ports
        self._stale = True
        self._next_look = 0.0
        self._value = Surroundings(frozenset(), protected_ports, frozenset())
        self._sock: _socket.socket | None = None
        try:
            sock = _socket.socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE)
            sock.bind((0, GROUPS))
        except OSError:
            return
        self._sock = sock
        reactor.watch(sock.fileno(), self)

    def ready(self, _fd: int, _mask: int) -> None:
        """Addresses came or went; a full buffer (ENOBUFS) says so too."""
        self._stale = True
        for _ in range(64):
            try:
                if self._sock is None or not self._sock.recv(1 << 16):
                    return
            except BlockingIOError:
                return
            except OSError:
                continue

    def surroundings(self) -> Surroundings:
        """Return this machine as it is now.

        Raises:
            OSError: when the kernel does not tell: without it nothing may be admitted.
        """
        if self._stale or (self._sock is None and self._reactor.now >= self._next_look):
            self._next_look = self._reactor.now + 1.0
            name = os.uname().nodename
            own = own_addresses().union(hosts_addresses(name.lower()))
            names = frozenset(text.lower() for text in (name, name.partition(".")[0]) if text)
            self._stale = False
            if own != self._value.own or names != self._value.names or self._ports != self._value.protected_ports:
                self._value = Surroundings(own, self._ports, names)
        return self._value

    def protect(self, ports: frozenset[int]) -> None:
        """Protect these ports too, from the next look on."""
        self._ports |= ports
        self._stale = True

    def cut(self, _reason: Reason) -> None:
        """The gate is ending; `close` comes later."""

    def broken(self, _error: Exception) -> None:
        """Look again when asked next."""
        self._stale = True

    def close(self) -> None:
        """Stop watching."""
        if self._sock is not None:
            self._reactor.forget(self._sock.fileno())
            self._sock.close()
            self._sock = None
