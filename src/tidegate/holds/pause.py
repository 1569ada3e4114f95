"""No way to a gate that does not answer: connections of a task's network are reset, and do not wait (HLD-7).

Where a server was stopped and not ended, its sockets are there and the kernel goes on taking connections for it, which
would hang. So one more table is made in that network, which resets what is sent to the gate, and what is open towards
it is ended (sock_diag(7), SOCK_DESTROY; a kernel without that resets it when something is sent). It only ever takes
away; with `admit` it is gone again. It is used by the holds that have a network of their own; uid_pause.py does the
same in this machine's.

Rules of the file: all of it in a child with one thread, which goes into the network and executes nothing.
"""

from __future__ import annotations

import errno
import os
import struct
from _socket import AF_INET, AF_INET6, IPPROTO_TCP

from tidegate.holds import control, inside, netlink, nft
from tidegate.holds.namespaces import go_into
from tidegate.holds.netlink import NLM_F_ACK, Message
from tidegate.holds.nft import IPV4, IPV6

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Iterator, Sequence

    from tidegate.holds.namespaces import Namespaces

TABLE = "tidegate-pause"
_BEFORE_NAT = -200  # where a connection still has the address that the task gave
_SOCK_DIAG, _BY_FAMILY, _DESTROY = 4, 20, 21  # NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, SOCK_DESTROY
_DUMP = 0x300
_DONE = 3
_OPEN = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8  # ESTABLISHED, SYN_SENT, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT
_LARGEST = 1 << 17
_OWN = (
    (IPV4, b"\x7f"),
    (IPV4, inside.packed(inside.OWN4)),
    (IPV6, inside.packed("::1")),
    (IPV6, inside.packed(inside.OWN6)),
)


def refuse(namespaces: Namespaces, ports: Sequence[int]) -> bool:
    """Reset what the network sends to its gate, at these ports of its own addresses or captured, from now on.

    Return whether that is so now. Never raises.
    """
    return _there(namespaces, lambda: _refuse(ports))


def admit(namespaces: Namespaces) -> bool:
    """Let it pass again; whether that is so. Never raises."""
    return _there(namespaces, _admit)


def _there(namespaces: Namespaces, act: Callable[[], None]) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            from tidegate.holds.init import fresh_signals

            fresh_signals()
            control.close_all_but([descriptor for descriptor, _ in namespaces])
            go_into(namespaces)
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _refuse(ports: Sequence[int]) -> None:
    made = [nft.table(TABLE), nft.chain(TABLE, "pause", "filter", _BEFORE_NAT, nft.ACCEPT)]
    at_gate = (nft.port(port) for port in ports)
    made += [nft.rule(TABLE, "pause", nft.protocol(IPPROTO_TCP), one, nft.reject_reset()) for one in at_gate]
    for family, own in _OWN:
        within = (nft.family(family), nft.destination(family, own), nft.verdict(nft.ACCEPT))
        made.append(nft.rule(TABLE, "pause", *within))
    made.append(nft.rule(TABLE, "pause", nft.protocol(IPPROTO_TCP), nft.reject_reset()))
    made.append(nft.rule(TABLE, "pause", nft.reject_port()))
    try:
        change(made)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    end_open(lambda where: where.port in ports or not where.is_own)


def _admit() -> None:
    try:
        change([nft.delete_table(TABLE)])
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def change(messages: list[Message]) -> None:
    """Have nftables do all of this or none of it, in the network that we are in.

    Raises:
        OSError: naming what could not be done.
    """
    wire = netlink.connect(netlink.NETLINK_NETFILTER)
    try:
        netlink.transact(wire, nft.transaction(messages))
    finally:
        wire.close()


class Connection:
    """One open connection of a program: where it leads, and whose it is. `identity` is what the kernel calls it."""

    def __init__(self, family: int, identity: bytes, uid: int) -> None:
        self.family = family
        self.identity = identity
        self.uid = uid
        self.port = int.from_bytes(identity[2:4], "big")
        there = identity[20:36] if family == AF_INET6 else identity[20:24]
        mapped = there[:12] == bytes(10) + b"\xff\xff"
        self.address = there[12:] if mapped else there
        kinds = [one for kind, one in _OWN if kind == (IPV6 if len(self.address) == 16 else IPV4)]
        self.is_own = any(self.address.startswith(one) for one in kinds)  # leads to this very network


def end_open(wanted: Callable[[Connection], bool]) -> None:
    """End those connections that are wanted, for both ends, in the network that we are in."""
    for family in (AF_INET, AF_INET6):
        _end_open(family, wanted)


def _end_open(family: int, wanted: Callable[[Connection], bool]) -> None:
    wire = netlink.connect(_SOCK_DIAG)
    try:
        for found in list(_connections(wire, family)):
            if not wanted(found):
                continue
            # struct inet_diag_req_v2: family, protocol, extensions, padding, states, the socket's identity
            body = struct.pack("=BBBBI", family, IPPROTO_TCP, 0, 0, _OPEN) + found.identity
            try:
                netlink.transact(wire, [Message("a connection", _DESTROY, NLM_F_ACK, body)])
            except OSError:
                continue  # it has ended, or the kernel has no such call: then it is reset when something is sent
    finally:
        wire.close()


def _connections(wire: socket, family: int) -> Iterator[Connection]:
    body = struct.pack("=BBBBI", family, IPPROTO_TCP, 0, 0, _OPEN) + bytes(48)
    wire.send(Message("the connections", _BY_FAMILY, _DUMP, body).packed(1))
    while True:
        data = wire.recv(_LARGEST)
        for kind, _sequence, start, end in netlink.split(data):
            if kind in (_DONE, netlink.NLMSG_ERROR):
                return
            if end - start >= 72:
                # struct inet_diag_msg: family, state, timer, retransmits; struct inet_diag_sockid; expires, both
                # queues, uid, inode
                (uid,) = struct.unpack_from("=I", data, start + 64)
                yield Connection(family, data[start + 4 : start + 52], uid)
