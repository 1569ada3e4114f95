"""No way to a gate that does not answer: connections of a container's network are reset, and do not wait (HLD-7).

Where a server was stopped and not ended, its sockets are there and the kernel goes on taking connections for it, which
would hang. So one more table is made in that network, which resets what is sent to the gate, and what is open towards
it is ended (sock_diag(7), SOCK_DESTROY; a kernel without that resets it when something is sent). It only ever takes
away; with `admit` it is gone again.

Rules of the file: all of it in a child with one thread, which goes into the network and executes nothing (enter.py).
"""

from __future__ import annotations

import errno
import os
import struct
from _socket import AF_INET, AF_INET6, IPPROTO_TCP

from tidegate.holds import control, inside, netlink, nft
from tidegate.holds.container.enter import go_into
from tidegate.holds.netlink import NLM_F_ACK, Message
from tidegate.holds.nft import IPV4, IPV6

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Iterator

    from tidegate.holds.container.enter import Namespaces

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


def refuse(namespaces: Namespaces, port: int) -> None:
    """Reset what the network sends to its gate, at `port` of loopback or captured, from now on. Never raises."""
    _there(namespaces, lambda: _refuse(port))


def admit(namespaces: Namespaces) -> None:
    """Let it pass again. Never raises."""
    _there(namespaces, _admit)


def _there(namespaces: Namespaces, act: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        try:
            from tidegate.holds.init import fresh_signals

            fresh_signals()
            control.close_all_but([descriptor for descriptor, _ in namespaces])
            go_into(namespaces)
            act()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _refuse(port: int) -> None:
    made = [nft.table(TABLE), nft.chain(TABLE, "pause", "filter", _BEFORE_NAT, nft.ACCEPT)]
    made.append(nft.rule(TABLE, "pause", nft.protocol(IPPROTO_TCP), nft.port(port), nft.reject_reset()))
    for family, own in _OWN:
        within = (nft.family(family), nft.destination(family, own), nft.verdict(nft.ACCEPT))
        made.append(nft.rule(TABLE, "pause", *within))
    made.append(nft.rule(TABLE, "pause", nft.protocol(IPPROTO_TCP), nft.reject_reset()))
    made.append(nft.rule(TABLE, "pause", nft.reject_port()))
    try:
        _change(made)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    for family in (AF_INET, AF_INET6):
        _end_open(family, port)


def _admit() -> None:
    _change([nft.delete_table(TABLE)])


def _change(messages: list[Message]) -> None:
    wire = netlink.connect(netlink.NETLINK_NETFILTER)
    try:
        netlink.transact(wire, nft.transaction(messages))
    finally:
        wire.close()


def _end_open(family: int, port: int) -> None:
    """End the task's sockets that are connected to the gate, or to what is captured."""
    wire = netlink.connect(_SOCK_DIAG)
    try:
        for identity in list(_sockets(wire, family)):
            remote = int.from_bytes(identity[2:4], "big")
            there = identity[20:36] if family == AF_INET6 else identity[20:24]
            mapped = there[:12] == bytes(10) + b"\xff\xff"
            own = [one for kind, one in _OWN if kind == (IPV6 if family == AF_INET6 and not mapped else IPV4)]
            where = there[12:] if mapped else there
            if remote != port and any(where.startswith(one) for one in own):
                continue  # its own servers, and the gate's ends
            # struct inet_diag_req_v2: family, protocol, extensions, padding, states, the socket's identity
            body = struct.pack("=BBBBI", family, IPPROTO_TCP, 0, 0, _OPEN) + identity
            try:
                netlink.transact(wire, [Message("a connection", _DESTROY, NLM_F_ACK, body)])
            except OSError:
                continue  # it has ended, or the kernel has no such call: then it is reset when something is sent
    finally:
        wire.close()


def _sockets(wire: socket, family: int) -> Iterator[bytes]:
    body = struct.pack("=BBBBI", family, IPPROTO_TCP, 0, 0, _OPEN) + bytes(48)
    wire.send(Message("the connections", _BY_FAMILY, _DUMP, body).packed(1))
    while True:
        data = wire.recv(_LARGEST)
        for kind, _sequence, start, end in netlink.split(data):
            if kind in (_DONE, netlink.NLMSG_ERROR):
                return
            if end - start >= 52:
                yield data[start + 4 : start + 52]  # struct inet_diag_sockid, behind family, state, timer, retransmits
