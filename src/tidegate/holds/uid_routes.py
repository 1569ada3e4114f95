"""The second fence of the hold `uid`: whatever a user of the range sends stays on this machine (HLD-3, HLD-6).

A routing rule for the range's uids says that every address is local. So a connection has a route where the machine has
none, for the table to lead to the gate; and where somebody removes that table, what a task sends is delivered to this
machine itself until the task has been ended, and never leaves it. By rtnetlink, so that no `ip` is needed
(`ip rule`, `ip route show table 3128` show it). It stays, like the table. ip-rule(8), linux/fib_rules.h.

The source of such connections is an address that `lo` is given, and not 127.0.0.1: the last packet of a connection that
its client has closed is sent by the kernel itself, which is nobody of the range. It looks for a route as for anybody's,
and finds none for what comes from 127.0.0.1; the gate's end would wait for that packet for minutes, one for each
connection that was ever captured.
"""

from __future__ import annotations

import errno
import struct
from _socket import AF_INET, AF_INET6

from tidegate.holds import inside, netlink
from tidegate.holds.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, Message, attribute
from tidegate.holds.routes import (
    LOOPBACK,
    RT_SCOPE_HOST,
    RTA_OIF,
    RTA_PREFSRC,
    RTM_NEWROUTE,
    RTN_LOCAL,
    RTPROT_STATIC,
    WITHOUT_IPV6,
    address_of_lo,
)
from tidegate.holds.uid_table import FIRST, LAST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

ROUTES = 3128
"""The number of the routing table."""
PRIORITY = 3128  # after `local` (0), before `main` (32766)

_RTM_NEWRULE = 32  # linux/rtnetlink.h
_RTM_GETADDR, _RTM_GETROUTE, _RTM_GETRULE = 22, 26, 34
_RTM_DELADDR, _RTM_DELROUTE, _RTM_DELRULE = 21, 25, 33
GROUPS = 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 18
"""Whom to listen to: RTNLGRP_IPV4_IFADDR, _IPV4_ROUTE, _IPV4_RULE, _IPV6_ROUTE, _IPV6_RULE (bit number less one)."""
_DUMP = 0x300  # NLM_F_DUMP
_DONE = 3
_SOL_NETLINK, _STRICT = 270, 12  # NETLINK_GET_STRICT_CHK: the kernel itself looks in one table only
_LARGEST = 1 << 17
_RTA_TABLE = 15
_FRA_PRIORITY, _FRA_TABLE, _FRA_UID_RANGE = 6, 15, 20
_FR_ACT_TO_TBL = 1


def keep_at_home(first: int = FIRST, last: int = LAST) -> None:
    """Make the rule and its routes; that they are there is fine. Without IPv6 there is nothing to route by it.

    Raises:
        OSError: where the kernel refuses.
    """
    wire = netlink.connect(netlink.NETLINK_ROUTE)
    try:
        for family, source in ((AF_INET, inside.OWN4), (AF_INET6, "::1")):
            try:
                for message in _messages(family, source, first, last):
                    _make(wire, message)
            except OSError as error:
                if family == AF_INET or error.errno not in WITHOUT_IPV6:
                    raise
    finally:
        wire.close()


def _make(wire: socket, message: Message) -> None:
    try:
        netlink.transact(wire, [message])
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def is_about(kind: int, body: bytes) -> bool:
    """Whether a message of the kernel may tell that something of it is gone."""
    if kind == _RTM_DELRULE:
        return True
    if kind == _RTM_DELADDR:
        return inside.packed(inside.OWN4) in body
    return kind in (RTM_NEWROUTE, _RTM_DELROUTE) and attribute(_RTA_TABLE, struct.pack("=I", ROUTES)) in body


def look(first: int = FIRST, last: int = LAST) -> frozenset[str]:
    """What of it is there now, by name; less than there is where the kernel cannot be asked."""
    found = set()
    table = attribute(_RTA_TABLE, struct.pack("=I", ROUTES))
    rule = attribute(_FRA_UID_RANGE, struct.pack("=II", first, last))
    default = struct.pack("=B", 0)  # the length of the prefix
    try:
        for family in (AF_INET, AF_INET6):
            head = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 0, 0)
            for body in _list(_RTM_GETRULE, head):
                if rule in body and table in body and attribute(_FRA_PRIORITY, struct.pack("=I", PRIORITY)) in body:
                    found.add(f"rule {int(family)}")
            for body in _list(_RTM_GETROUTE, head + table):
                if body[0] == family and body[1:2] == default and body[7] == RTN_LOCAL and table in body:
                    found.add(f"route {int(family)}")
        for body in _list(_RTM_GETADDR, struct.pack("=BBBBI", AF_INET, 0, 0, 0, 0)):
            if inside.packed(inside.OWN4) in body and struct.unpack_from("=I", body, 4)[0] == LOOPBACK:
                found.add("address")
    except OSError:
        return frozenset()
    return frozenset(found)


NEEDED = frozenset((f"rule {int(AF_INET)}", f"route {int(AF_INET)}", "address"))
"""What has to be there; IPv6's is where this machine has that."""


def _list(kind: int, body: bytes) -> list[bytes]:
    wire = netlink.connect(netlink.NETLINK_ROUTE)
    found: list[bytes] = []
    try:
        try:
            wire.setsockopt(_SOL_NETLINK, _STRICT, 1)
        except OSError:
            body = body[:12]  # an older kernel lists all tables
        wire.send(Message("a list", kind, _DUMP, body).packed(1))
        while True:
            data = wire.recv(_LARGEST)
            for what, _sequence, start, end in netlink.split(data):
                if what == _DONE:
                    return found
                if what == netlink.NLMSG_ERROR:
                    (code,) = struct.unpack_from("=i", data, start)
                    if -code in (errno.ENOENT, *WITHOUT_IPV6):
                        return found  # no such table yet, or no such family
                    raise OSError(-code, "a list of routes")
                found.append(data[start:end])
    finally:
        wire.close()


def _messages(family: int, source: str, first: int, last: int) -> list[Message]:
    flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    # struct rtmsg, struct fib_rule_hdr: family, prefix lengths, tos, table, protocol, scope, type or action, flags
    route = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, 0)
    route += attribute(RTA_OIF, struct.pack("=I", LOOPBACK)) + attribute(RTA_PREFSRC, inside.packed(source))
    route += attribute(_RTA_TABLE, struct.pack("=I", ROUTES))
    rule = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, _FR_ACT_TO_TBL, 0)
    rule += attribute(_FRA_PRIORITY, struct.pack("=I", PRIORITY)) + attribute(_FRA_TABLE, struct.pack("=I", ROUTES))
    rule += attribute(_FRA_UID_RANGE, struct.pack("=II", first, last))
    made = [address_of_lo(family, source, flags)] if family == AF_INET else []
    return [
        *made,
        Message("the route of tasks to this machine", RTM_NEWROUTE, flags, route),
        Message("the routing rule of tasks", _RTM_NEWRULE, flags, rule),
    ]
