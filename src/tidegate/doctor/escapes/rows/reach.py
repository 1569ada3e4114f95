"""Straight to an address, past the gate: TCP and datagrams to this machine, private and public ones, metadata."""

from __future__ import annotations

import errno
import socket

from tidegate.doctor.escapes import needs
from tidegate.doctor.escapes.table import CAPTURING, FENCED, HELD, NO_FAMILY, escape
from tidegate.doctor.escapes.tools import tcp, udp, word, wrong


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def tcp_to_the_machines_loopback() -> None:
    """TCP to a listener on the machine's 127.0.0.1."""
    tcp(socket.AF_INET, "127.0.0.1", HELD["tcp4"])


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def tcp_to_the_unspecified_address() -> None:
    """TCP to 0.0.0.0, which the kernel takes for loopback."""
    tcp(socket.AF_INET, "0.0.0.0", HELD["tcp4"])


@escape("ECONNREFUSED", "EADDRNOTAVAIL", holds=FENCED, offline=NO_FAMILY, needs=needs.ipv6)
def tcp_to_the_machines_loopback_by_ipv6() -> None:
    """TCP to a listener on the machine's ::1."""
    tcp(socket.AF_INET6, "::1", HELD["tcp6"])


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def tcp_to_a_mapped_address() -> None:
    """TCP to the machine's loopback, written as IPv4 in IPv6."""
    tcp(socket.AF_INET6, "::ffff:127.0.0.1", HELD["tcp4"])


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_a_public_address() -> None:
    """TCP straight to a public address, past the proxy settings (B71)."""
    tcp(socket.AF_INET, "1.2.3.4", 80)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET", needs=needs.ipv6)
def tcp_to_a_public_address_by_ipv6() -> None:
    """The same over IPv6."""
    tcp(socket.AF_INET6, "2600:beef::1", 443)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_cloud_metadata() -> None:
    """TCP to the metadata address of clouds."""
    tcp(socket.AF_INET, "169.254.169.254", 80)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_other_ports() -> None:
    """TCP to ports that nobody thinks of, on the machine's own address and a private one (B77)."""
    expected = errno.ECONNRESET if HELD["hold"] in CAPTURING else errno.ENETUNREACH
    for address in (HELD["own4"] or "10.0.0.1", "10.0.0.1", "192.168.1.1"):
        for port in (22, 53, 2375, 5432, 6379, 8080, 65535):
            try:
                tcp(socket.AF_INET, address, port)
            except OSError as error:
                if error.errno != expected:
                    raise
                continue
            if HELD["hold"] not in CAPTURING or port not in (22, 53):  # refused in words; the resolver
                wrong(f"{address}:{port} answered")
    raise OSError(expected, "each of them")


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_the_machines_own_address() -> None:
    """TCP to a listener on the machine's own address."""
    tcp(socket.AF_INET, HELD["own4"] or "10.0.0.1", HELD["own4_tcp"] or 80)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_a_private_address() -> None:
    """TCP to an address of a private network."""
    tcp(socket.AF_INET, "10.1.2.3", 5432)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET", needs=needs.ipv6)
def tcp_to_a_private_address_by_ipv6() -> None:
    """The same over IPv6."""
    tcp(socket.AF_INET6, "fd00:1:2::3", 5432)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_the_gateway() -> None:
    """TCP to where this machine's gateway would be, in its own network."""
    tcp(socket.AF_INET, (HELD["own4"] or "192.168.0.2").rpartition(".")[0] + ".1", 80)


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY, uid=("EPERM",))
def udp_to_the_machines_loopback() -> None:
    """A datagram to the machine's 127.0.0.1 (B83)."""
    udp(socket.AF_INET, "127.0.0.1", HELD["udp4"])


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="passed")
def udp_to_a_resolver() -> None:
    """A datagram to port 53 of a public address: the DNS tunnel. Captured, it is the gate's own resolver."""
    udp(socket.AF_INET, "1.2.3.4", 53)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="EPERM", needs=needs.ipv6)
def udp_to_a_resolver_by_ipv6() -> None:
    """The same over IPv6, port 443: QUIC."""
    udp(socket.AF_INET6, "2600:beef::1", 443)


@escape("ENETUNREACH", "EPERM", "EACCES", "ENODEV", holds=FENCED, offline=NO_FAMILY)
def udp_multicast() -> None:
    """A datagram to a multicast group."""
    udp(socket.AF_INET, "224.0.0.251", 5353)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="EPERM")
def udp_to_any_port() -> None:
    """Datagrams to ports of QUIC, NTP, STUN, WireGuard, traceroute and nobody: each fails at once."""
    for port in (443, 123, 3478, 51820, 33434, 80, 853, 5353, 65535):
        try:
            udp(socket.AF_INET, "1.2.3.4", port)
        except OSError as error:
            last = error
            continue
        wrong(f"port {port} takes one")
    raise last


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="EPERM")
def udp_by_sendto() -> None:
    """A datagram that names its receiver itself, to this machine's own address and to a private one."""
    for address in (HELD["own4"] or "10.0.0.1", "10.1.2.3", "255.255.255.255"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            try:
                wire.sendto(word().encode(), (address, 80))
            except OSError as error:
                if address != "255.255.255.255":
                    last = error
                continue
        wrong(f"{address} takes one")
    raise last
