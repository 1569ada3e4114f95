"""The rules that capture a task's connections, and the log of what they turn away (HLD-6, JRN-3).

    raw      traffic of the task with itself is left alone: no connection tracking, no NAT
    capture  TCP to any other address goes to the gate's listener, and port 53 to its resolver
    fence    what is left is turned away at once: UDP is told so and logged, the rest too

Rules of the file: one table `tidegate`, made in one transaction in a namespace that nobody has entered yet; a task has
no right to change it. The last chain's policy is `drop`, so that what nobody thought of goes nowhere. Why UDP is
turned away while it is sent and not on arrival: the sender gets an error for this very packet (EPERM), and a
connected socket the answer of a closed port as well (ECONNREFUSED), so that QUIC falls back at once.

By raw netlink: no `nft` is needed, and it is faster (docs/decisions/0005-capture-by-raw-netlink.md).
"""

from __future__ import annotations

import os
import struct
from _socket import SO_RCVBUF, SOL_SOCKET

from tidegate.holds import inside, netlink, nft
from tidegate.holds.netlink import NLM_F_ACK, Message, attribute
from tidegate.holds.nft import IPV4, IPV6

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

TABLE = "tidegate"
TCP, UDP = 6, 17
LOG_GROUP = 1
LOGGED = 200  # lines a second; more is turned away just the same
COPIED = 64  # bytes of a packet: its addresses and ports

# linux/netfilter/nfnetlink_log.h
_LOG = 4  # NFNL_SUBSYS_ULOG
_CONFIG = 1
_BIND, _COPY_PACKET = 1, 2
_LOG_BUFFER = 1 << 18
_LOG_MESSAGE = 512  # bytes the kernel sets aside for each; without a word it is a page

# The addresses by which a task reaches itself.
_OWN = (
    (IPV4, b"\x7f"),  # 127.0.0.0/8
    (IPV4, inside.packed(inside.OWN4)),
    (IPV6, inside.packed("::1")),
    (IPV6, inside.packed(inside.OWN6)),
)
_GATE = ((IPV4, inside.packed(inside.GATE4)), (IPV6, inside.packed(inside.GATE6)))

# Seconds. The defaults keep what has ended for up to two minutes, too long for a loop of short connections; on a
# loopback nothing arrives late. And they forget a connection that one side has closed after one silent minute, the
# other side's answer with it: that is kept like any open one (GAT-5), since on a loopback every end is told of.
TIMEOUTS = (
    ("nf_conntrack_tcp_timeout_syn_sent", b"10"),
    ("nf_conntrack_tcp_timeout_syn_recv", b"10"),
    ("nf_conntrack_tcp_timeout_fin_wait", b"432000"),
    ("nf_conntrack_tcp_timeout_close_wait", b"432000"),
    ("nf_conntrack_tcp_timeout_time_wait", b"1"),
    ("nf_conntrack_tcp_timeout_close", b"1"),
    ("nf_conntrack_udp_timeout", b"5"),
)
_SETTINGS = "/proc/sys/net/netfilter/"


def messages(port: int) -> list[Message]:
    """The whole table: connections go to `port` of the gate's addresses inside."""
    made = [
        nft.table(TABLE),
        nft.chain(TABLE, "raw", "filter", nft.RAW, nft.ACCEPT),
        nft.chain(TABLE, "capture", "nat", nft.DESTINATION_NAT, nft.ACCEPT),
        nft.chain(TABLE, "fence", "filter", nft.FILTER, nft.DROP),
    ]

    def rule(chain: str, *expressions: bytes) -> None:
        made.append(nft.rule(TABLE, chain, *expressions))

    for family, own in _OWN:
        rule("raw", nft.family(family), nft.source(family, own), nft.destination(family, own), nft.no_track())
    for family, own in _OWN:
        rule("capture", nft.family(family), nft.destination(family, own), nft.verdict(nft.ACCEPT))
    for family, gate in _GATE:
        for protocol in (UDP, TCP):
            look_up = (nft.family(family), nft.protocol(protocol), nft.port(inside.DNS))
            rule("capture", *look_up, nft.dnat(family, gate))
        rule("capture", nft.family(family), nft.protocol(TCP), nft.dnat(family, gate, port))
    for family, within in (*_OWN, *_GATE):
        rule("fence", nft.family(family), nft.destination(family, within), nft.verdict(nft.ACCEPT))
    # What the gate answers goes back to whatever address the task bound: every address can be, inside. A task has no
    # right to port 53 (but in docker), and both of the gate's ports are taken.
    for family, gate in _GATE:
        for protocol, number in ((TCP, port), (TCP, inside.DNS), (UDP, inside.DNS)):
            answer = (nft.family(family), nft.source(family, gate), nft.protocol(protocol), nft.source_port(number))
            rule("fence", *answer, nft.verdict(nft.ACCEPT))
    rule("fence", nft.protocol(TCP), nft.reject_reset())
    rule("fence", nft.protocol(UDP), nft.limit(LOGGED), nft.log(LOG_GROUP))
    rule("fence", nft.protocol(UDP), nft.reject_port())
    return made


def install(port: int) -> None:
    """Make the table in this network namespace.

    Raises:
        OSError: where the kernel does not know tables, NAT or one of the expressions; nothing is made then.
    """
    wire = netlink.connect(netlink.NETLINK_NETFILTER)
    try:
        netlink.transact(wire, nft.transaction(messages(port)))
    finally:
        wire.close()
    _forget_soon()


def open_log(group: int = LOG_GROUP) -> socket:
    """A socket that hears of what the fence turns away, whoever holds it. One may listen to a group.

    Raises:
        OSError: where the kernel has no nfnetlink_log.
    """
    wire = netlink.connect(netlink.NETLINK_NETFILTER)
    try:
        wire.setsockopt(SOL_SOCKET, SO_RCVBUF, _LOG_BUFFER)
        head = nft.netfilter_header(0, group)
        kind = _LOG << 8 | _CONFIG
        mode = attribute(2, struct.pack(">IBB", COPIED, _COPY_PACKET, 0))  # NFULA_CFG_MODE
        room = netlink.big(3, _LOG_MESSAGE)  # NFULA_CFG_NLBUFSIZ
        at_once = netlink.big(5, 1)  # NFULA_CFG_QTHRESH: no waiting for a batch
        bind = attribute(1, bytes((_BIND,)))  # NFULA_CFG_CMD
        # Each alone: what configures a group wants it bound before.
        for part in (bind, mode, room, at_once):
            netlink.transact(wire, [Message("the log of what is turned away", kind, NLM_F_ACK, head + part)])
    except OSError:
        wire.close()
        raise
    return wire


def _forget_soon() -> None:
    for name, seconds in TIMEOUTS:
        try:
            setting = os.open(_SETTINGS + name, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(setting, seconds)
            finally:
                os.close(setting)
        except OSError:
            return  # /proc/sys is read-only in some containers; the kernel's own bound on their number stays
