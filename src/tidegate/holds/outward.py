"""Socket options by which a task on this machine's own network sends something that its fence does not see.

* A route, or an interface: a packet to the gate's 127.0.0.1 takes that way and leaves the machine, to whoever is there.
* A source that is another machine's: the gate's answer leaves for that one.
* A group or anycast address that is joined: the *kernel* tells the network of it, in nobody's name, and the address may
  be any that the task thinks of.

In a network namespace of its own all of this stays there; `uid` and `landlock` refuse it (HLD-2, HLD-3, HLD-13).
asm-generic/socket.h, linux/in.h, linux/in6.h, the same on both machines. Joining by a message's ancillary data does
not exist; an interface can be named in that (IP_PKTINFO), for datagrams: uid_table.py has a rule for it.
"""

from __future__ import annotations

from tidegate.holds.bpf import ALLOW, argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.bpf import Program

SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6 = 1, 0, 41
OPTIONS = {
    SOL_SOCKET: (25, 62),  # SO_BINDTODEVICE, SO_BINDTOIFINDEX
    # IP_OPTIONS, FREEBIND, TRANSPARENT, ADD_MEMBERSHIP, ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_GROUP,
    # MCAST_JOIN_SOURCE_GROUP, UNICAST_IF
    IPPROTO_IP: (4, 15, 19, 35, 39, 42, 46, 50),
    # IPV6_2292PKTOPTIONS, ADD_MEMBERSHIP, JOIN_ANYCAST, MCAST_JOIN_GROUP, MCAST_JOIN_SOURCE_GROUP, PKTINFO,
    # RTHDRDSTOPTS, RTHDR, DSTOPTS, TRANSPARENT, UNICAST_IF, FREEBIND
    IPPROTO_IPV6: (6, 20, 27, 42, 46, 50, 55, 57, 59, 75, 76, 78),
}
"""By level."""


def tell_levels(p: Program) -> None:
    """With the level of setsockopt(2) loaded, go to where `refuse` looks at its options."""
    for level in OPTIONS:
        p.if_equal(level, f"options of {level}")


def refuse(p: Program, refused: str) -> None:
    """Go to `refused` for the options, and let the others of their levels pass."""
    for level, options in OPTIONS.items():
        p.label(f"options of {level}")
        p.load(argument(2))
        for option in options:
            p.if_equal(option, refused)
        p.give(ALLOW)
