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
