"""What a connection was before netfilter rewrote it: the one question to connection tracking. Pure and strict.

The gate sees the connection as it arrived. Its client's own socket has the ends from before: another destination where
it was redirected, and another port of its own where two clients had the same (each to another destination) and would
look alike afterwards. Tracking knows both, and is asked by how the answers travel, of which there is one.

Invariant: any bytes give the client's Ends, None (the connection is not tracked, so nothing rewrote it), or WireError.

From linux/netfilter/nfnetlink_conntrack.h and nfnetlink.h.
"""

from __future__ import annotations

from struct import Struct

from tidegate.wire import netlink
from tidegate.wire.sock_diag import AF_INET, AF_INET6, IPPROTO_TCP, Ends

NETLINK_NETFILTER = 12
NFNL_SUBSYS_CTNETLINK = 1
IPCTNL_MSG_CT_NEW, IPCTNL_MSG_CT_GET = 0, 1
CTA_TUPLE_ORIG, CTA_TUPLE_REPLY = 1, 2
CTA_TUPLE_IP, CTA_TUPLE_PROTO = 1, 2
CTA_IP_V4_SRC, CTA_IP_V4_DST, CTA_IP_V6_SRC, CTA_IP_V6_DST = 1, 2, 3, 4
CTA_PROTO_NUM, CTA_PROTO_SRC_PORT, CTA_PROTO_DST_PORT = 1, 2, 3

_GET = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET
_ENTRY = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW
_HEAD = 4  # struct nfgenmsg
_NESTED = 0x8000  # NLA_F_NESTED


class _Layout:
    """How a direction of a connection of one family is written, always alike: reading it is one step, not forty."""

    def __init__(self, size: int, source: int, destination: int) -> None:
        self.pattern = Struct(f"=HHHHHH{size}sHH{size}sHHHHB3xHH2s2xHH2s2x")
        self.size = self.pattern.size
        address = 4 + size
        # All that is not an end: length and kind of each attribute, and the protocol.
        self.marks = (
            (self.size,), (4 + 2 * address, CTA_TUPLE_IP | _NESTED, address, source), (address, destination),
            (28, CTA_TUPLE_PROTO | _NESTED, 5, CTA_PROTO_NUM, IPPROTO_TCP, 6, CTA_PROTO_SRC_PORT),
            (6, CTA_PROTO_DST_PORT),
        )  # fmt: skip

    def written(self, kind: int, ends: Ends) -> bytes:
        """Return the attribute of a direction that begins at `ends.local`."""
        whole, before, between, middle, last = self.marks
        ports = ends.local_port.to_bytes(2, "big"), ends.remote_port.to_bytes(2, "big")
        return self.pattern.pack(
            *whole, kind | _NESTED, *before, ends.local, *between, ends.remote, *middle, ports[0], *last, ports[1]
        )

    def read(self, kind: int, data: bytes, at: int) -> Ends:
        """Return where a direction begins and leads.

        Raises:
            WireError: when it is written otherwise.
        """
        found = self.pattern.unpack_from(data, at)
        whole, before, between, middle, last = self.marks
        expected = (*whole, kind | _NESTED, *before, found[6], *between, found[9], *middle, found[17], *last, found[20])
        if found != expected:
            raise netlink.malformed("a direction of a connection is written in another way")
        return Ends(found[6], found[17][0] << 8 | found[17][1], found[9], found[20][0] << 8 | found[20][1])


_LAYOUTS = {
    4: _Layout(4, CTA_IP_V4_SRC, CTA_IP_V4_DST),
    16: _Layout(16, CTA_IP_V6_SRC, CTA_IP_V6_DST),
}


def question(arrived: Ends, sequence: int) -> bytes:
    """Return the request about the connection whose client has these ends as it arrived.

    Raises:
        ValueError: when the ends are of two families, or of none.
    """
    layout = _LAYOUTS.get(len(arrived.local))
    if layout is None or len(arrived.remote) != len(arrived.local):
        raise ValueError("both ends of a connection are of one family")
    head = bytes((AF_INET if len(arrived.local) == 4 else AF_INET6, 0, 0, 0))
    return netlink.request(_GET, sequence, head + layout.written(CTA_TUPLE_REPLY, _turned(arrived)))


def answer(data: bytes, sequence: int, arrived: Ends) -> Ends | None:
    """Return the ends that the client's own socket has; None where the connection is not tracked.

    Raises:
        WireError: when this is no answer to that question.
    """
    part = netlink.answer(data, sequence, "what a connection was")
    if part is None:
        return None
    kind, start, end = part
    layout = _LAYOUTS[len(arrived.local)]
    first = start + _HEAD
    if kind != _ENTRY or end < first + 2 * layout.size:
        raise netlink.malformed("not an answer about a connection of this family")
    original = layout.read(CTA_TUPLE_ORIG, data, first)
    if layout.read(CTA_TUPLE_REPLY, data, first + layout.size) != _turned(arrived):
        raise netlink.malformed("another connection than the one asked about")
    return original


def refusal(data: bytes, sequence: int, _arrived: Ends) -> int:
    """Return the errno by which the kernel refuses an answer: ENOENT where there is no such connection.

    Raises:
        WireError: when it does not refuse.
    """
    part = netlink.only(data, sequence)
    if part[0] != netlink.NLMSG_ERROR:
        raise netlink.malformed("an answer where there should be none")
    return netlink.error_number(data, part)


def _turned(ends: Ends) -> Ends:
    return Ends(ends.remote, ends.remote_port, ends.local, ends.local_port)
