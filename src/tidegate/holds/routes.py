"""Addresses and routes of a task's `lo` when its connections are captured: every address is a place inside.

All of IPv4 and IPv6 is `local` here: a program that connects to an address finds a route, and what it sends stays in
this namespace whatever else is wrong. Its source is the task's own address, a global one, so that AI_ADDRCONFIG and
the sorting of addresses work as on any machine (RFC 6724). By rtnetlink in one datagram, so that no `ip` is needed
(CASES B91). Man page: rtnetlink(7).
"""

from __future__ import annotations

import errno
import struct
from _socket import AF_INET, AF_INET6, SOCK_CLOEXEC, SOCK_DGRAM, socket

from tidegate.holds import inside, netlink
from tidegate.holds.netlink import NLM_F_ACK, NLM_F_CREATE, Message, attribute

LOOPBACK = 1  # LOOPBACK_IFINDEX, net/flow.h: `lo` is the first interface of every namespace

# linux/rtnetlink.h, linux/if_addr.h
RTM_NEWADDR, RTM_NEWROUTE = 20, 24
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFA_F_NODAD = 2
RTA_OIF, RTA_PREFSRC = 4, 7
RT_TABLE_LOCAL = 255
RTPROT_STATIC = 4
RT_SCOPE_UNIVERSE, RT_SCOPE_HOST = 0, 254
RTN_LOCAL = 2

# What the kernel says where it was told to have no IPv6 (ipv6.disable, disable_ipv6).
WITHOUT_IPV6 = (errno.EACCES, errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.EADDRNOTAVAIL)


def capture_everything(own4: str = inside.OWN4, own6: str = inside.OWN6) -> bool:
    """Make every address lead to this namespace, which has these of its own; whether that holds for IPv6, too.

    Without IPv6 there is no way to reach anything by it: nothing is weaker then.

    Raises:
        OSError: when the kernel refuses.
    """
    wire = netlink.connect(netlink.NETLINK_ROUTE)
    try:
        netlink.transact(wire, _messages(AF_INET, own4))
        try:
            netlink.transact(wire, _messages(AF_INET6, own6))
        except OSError as error:
            if error.errno in WITHOUT_IPV6:
                return False
            raise
    finally:
        wire.close()
    return True


def have_ipv6(own6: str = inside.OWN6) -> bool:
    """Whether this namespace has that address of its own, as `capture_everything` gave it one."""
    try:
        wire = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC)
    except OSError:
        return False
    try:
        wire.bind((own6, 0))
    except OSError:
        return False
    finally:
        wire.close()
    return True


def address_of_lo(family: int, own: str, flags: int = NLM_F_ACK | NLM_F_CREATE) -> Message:
    """The request that gives `lo` one more address."""
    address = inside.packed(own)
    # struct ifaddrmsg: family, prefix length, flags, scope, index
    head = struct.pack("=BBBBI", family, len(address) * 8, IFA_F_NODAD, RT_SCOPE_UNIVERSE, LOOPBACK)
    body = head + attribute(IFA_LOCAL, address) + attribute(IFA_ADDRESS, address)
    return Message(f"the address {own}", RTM_NEWADDR, flags, body)


def _messages(family: int, own: str) -> list[Message]:
    route = _route(family, inside.packed(own))
    return [
        address_of_lo(family, own),
        Message("the route to everywhere", RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, route),
    ]


def _route(family: int, source: bytes) -> bytes:
    # struct rtmsg: family, prefix lengths of destination and source, tos, table, protocol, scope, type, flags
    head = struct.pack("=BBBBBBBBI", family, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, 0)
    return head + attribute(RTA_OIF, struct.pack("=I", LOOPBACK)) + attribute(RTA_PREFSRC, source)
