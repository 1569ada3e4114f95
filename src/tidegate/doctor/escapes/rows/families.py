"""Sockets of kinds that could lead around a network namespace or its rules: raw, packet, vsock, MPTCP, fast open."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

from tidegate.doctor.escapes import needs
from tidegate.doctor.escapes.table import FENCED, GATED, HELD, NETWORKED, NO_FAMILY, escape, named
from tidegate.doctor.escapes.tools import nested, number, syscall, word

if TYPE_CHECKING:
    from collections.abc import Callable


def _socket_of(family: int, kind: int, protocol: int) -> Callable[[], object]:
    def attempt() -> None:
        socket.socket(family, kind, protocol).close()

    return attempt


_SOCKETS = (
    ("raw_ipv4_socket", socket.AF_INET, socket.SOCK_RAW, 1, "EPERM"),
    ("raw_ipv6_socket", socket.AF_INET6, socket.SOCK_RAW, 58, "EPERM"),
    ("old_packet_socket", socket.AF_INET, 10, 0x0300, "EPERM"),
    ("ping_socket", socket.AF_INET, socket.SOCK_DGRAM, 1, "EPROTONOSUPPORT"),
    ("ping6_socket", socket.AF_INET6, socket.SOCK_DGRAM, 58, "EPROTONOSUPPORT"),
    ("mptcp_socket", socket.AF_INET, socket.SOCK_STREAM, 262, "EPROTONOSUPPORT"),
    ("mptcp_socket_by_ipv6", socket.AF_INET6, socket.SOCK_STREAM, 262, "EPROTONOSUPPORT"),
    ("sctp_socket", socket.AF_INET, socket.SOCK_STREAM, 132, "EPROTONOSUPPORT"),
    ("sctp_packets", socket.AF_INET, socket.SOCK_SEQPACKET, 132, "EPROTONOSUPPORT"),
    ("dccp_socket", socket.AF_INET, 6, 33, "EPROTONOSUPPORT"),
    ("udplite_socket", socket.AF_INET, socket.SOCK_DGRAM, 136, "EPROTONOSUPPORT"),
    ("smc_over_ip", socket.AF_INET, socket.SOCK_STREAM, 256, "EPROTONOSUPPORT"),
    ("packet_socket", 17, socket.SOCK_RAW, 0x0300, "EAFNOSUPPORT"),
    ("vsock_socket", 40, socket.SOCK_STREAM, 0, "EAFNOSUPPORT"),
    ("alg_socket", 38, socket.SOCK_SEQPACKET, 0, "EAFNOSUPPORT"),
    ("bluetooth_socket", 31, socket.SOCK_STREAM, 3, "EAFNOSUPPORT"),
    ("can_socket", 29, socket.SOCK_RAW, 1, "EAFNOSUPPORT"),
    ("rds_socket", 21, socket.SOCK_SEQPACKET, 0, "EAFNOSUPPORT"),
    ("tipc_socket", 30, socket.SOCK_RDM, 0, "EAFNOSUPPORT"),
    ("smc_socket", 43, socket.SOCK_STREAM, 0, "EAFNOSUPPORT"),
    ("xdp_socket", 44, socket.SOCK_RAW, 0, "EAFNOSUPPORT"),
    ("key_socket", 15, socket.SOCK_RAW, 2, "EAFNOSUPPORT"),
    ("netlink_audit_socket", 16, socket.SOCK_RAW, 9, "EPROTONOSUPPORT"),
    ("netlink_netfilter_socket", 16, socket.SOCK_RAW, 12, "EPROTONOSUPPORT"),
    ("netlink_uevent_socket", 16, socket.SOCK_DGRAM, 15, "EPROTONOSUPPORT"),
    ("netlink_generic_socket", 16, socket.SOCK_RAW, 16, "EPROTONOSUPPORT"),
)
for _name, _family, _kind, _protocol, _answer in _SOCKETS:
    _attempt = _socket_of(_family, _kind, _protocol)
    named(_attempt, _name, f"socket({_family}, {_kind}, {_protocol}) (B83).")
    escape(_answer, holds=FENCED, offline=NO_FAMILY, needs=needs.sockets(_family, _kind, _protocol))(_attempt)


@escape("EAFNOSUPPORT", holds=FENCED, needs=needs.sockets(30, socket.SOCK_STREAM, 0))
def socketpair_of_another_family() -> None:
    """A pair of TIPC sockets."""
    socket.socketpair(30, socket.SOCK_STREAM)


@escape("EPERM", holds=FENCED, offline=NO_FAMILY)
def raw_socket_in_a_namespace_of_our_own() -> None:
    """Being root of a network namespace inside does not bring raw sockets back."""
    nested(network=True)
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)


@escape("EOPNOTSUPP", holds=NETWORKED)
def fast_open_by_connect() -> None:
    """TCP_FASTOPEN_CONNECT: connect() that sends data."""
    with socket.socket() as wire:
        wire.setsockopt(socket.IPPROTO_TCP, 30, 1)


@escape("EOPNOTSUPP", holds=NETWORKED)
def fast_open_as_server() -> None:
    """TCP_FASTOPEN."""
    with socket.socket() as wire:
        wire.setsockopt(socket.IPPROTO_TCP, 23, 5)


@escape("EOPNOTSUPP", holds=NETWORKED)
def fast_open_by_sendto() -> None:
    """Sendto with MSG_FASTOPEN connects without connect()."""
    with socket.socket() as wire:
        wire.sendto(word().encode(), 0x20000000, ("127.0.0.1", HELD["tcp4"]))


@escape("EOPNOTSUPP", holds=NETWORKED)
def fast_open_by_sendmsg() -> None:
    """Sendmsg with MSG_FASTOPEN likewise."""
    with socket.socket() as wire:
        wire.sendmsg([word().encode()], [], 0x20000000, ("127.0.0.1", HELD["tcp4"]))


@escape("EOPNOTSUPP", holds=NETWORKED)
def fast_open_by_sendmmsg() -> None:
    """Sendmmsg with MSG_FASTOPEN likewise."""
    with socket.socket() as wire:
        syscall(number(307, 269), wire.fileno(), 0, 0, 0x20000000)


@escape("EPERM", holds=GATED)
def a_route_of_our_own() -> None:
    """Netlink is there to look, not to change: adding an interface needs a capability."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as wire:
        body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH4s", 8, 3, b"esc\0")
        wire.sendto(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body, (0, 0))
        (code,) = struct.unpack_from("i", wire.recv(4096), 16)
        if code:
            raise OSError(-code, "netlink")
