"""What only a hold that captures connections has: its rules, routes, resolver and name files."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time

from tidegate.doctor.escapes.table import CAPTURED, CAPTURING, escape, neighbour
from tidegate.doctor.escapes.tools import PATIENCE, nested, umount, word, wrong


@escape("EPROTONOSUPPORT", holds=CAPTURING)
def rules_of_netfilter() -> None:
    """Rules are changed by netlink of a kind that no task may open."""
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close()


@escape("EPROTONOSUPPORT", holds=CAPTURING)
def rules_of_netfilter_with_every_capability() -> None:
    """Nor root of a namespace inside, who would have the right to his own."""
    nested(mounts=False)
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close()


@escape("EPERM", holds=CAPTURING)
def taking_the_default_route_away() -> None:
    """Routes can be read and not changed."""
    _route_netlink(25, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 255, 4, 254, 2, 0))  # RTM_DELROUTE


@escape("EPERM", holds=CAPTURING)
def taking_the_own_address_away() -> None:
    """Addresses likewise."""
    body = struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH4B", 8, 2, 198, 18, 0, 1)
    _route_netlink(21, body)  # RTM_DELADDR


@escape("EPERM", "EACCES", holds=CAPTURING)
def old_tables() -> None:
    """The interface of iptables, which is older than nftables: raw sockets carry it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.setsockopt(0, 64, bytes(96))  # IPT_SO_SET_REPLACE


@escape("EPERM", holds=CAPTURING)
def a_transparent_socket() -> None:
    """IP_TRANSPARENT would let a task take what goes to any address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.setsockopt(0, 19, 1)


@escape("EPERM", holds=CAPTURING)
def a_mark_on_the_packets() -> None:
    """SO_MARK would choose among routes and rules."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.setsockopt(socket.SOL_SOCKET, 36, 1)


@escape("EACCES", holds=CAPTURING)
def standing_in_for_the_resolver() -> None:
    """Ports below 1024 are not a task's: nothing inside takes the resolver's place."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.bind(("198.18.0.2", 53))


@escape("EADDRINUSE", holds=(CAPTURED,))
def standing_in_for_the_gate() -> None:
    """The address that connections are sent to is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        wire.bind(("198.18.0.2", 3128))
        wire.listen()


@escape("ECONNRESET", holds=CAPTURING)
def a_source_address_of_loopback() -> None:
    """A connection out that claims to come from loopback is captured like any other."""
    with socket.create_connection(("1.2.3.4", 80), PATIENCE, source_address=("127.0.0.1", 0)) as wire:
        wire.sendall(word().encode() + b"\r\n\r\n")
        wire.recv(1)


@escape("timed out", "ECONNRESET", holds=CAPTURING)
def a_foreign_source_address() -> None:
    """Every address is local here, so one may be bound; nothing comes of it but an end, late or at once."""
    with socket.create_connection(("1.2.3.4", 80), PATIENCE, source_address=("1.2.3.4", 0)) as wire:
        wire.sendall(word().encode() + b"\r\n\r\n")
        wire.recv(1)


@escape("EROFS", holds=CAPTURING)
def writing_resolv_conf() -> None:
    """The file that names the resolver is read-only, for root as well."""
    with open(os.path.realpath("/etc/resolv.conf"), "r+", encoding="ascii") as file:
        file.write("nameserver 8.8.8.8\n")


@escape("EROFS", holds=CAPTURING, who="root")
def writing_hosts() -> None:
    """And the one that gives names addresses."""
    with open("/etc/hosts", "r+", encoding="ascii") as file:
        file.write("1.2.3.4 a.test\n")


@escape("EBUSY", holds=CAPTURING, who="root")
def putting_another_resolv_conf_in_its_place() -> None:
    """Nor can it be replaced."""
    name = os.path.realpath("/etc/resolv.conf")
    with open(name + ".mine", "w", encoding="ascii"):
        pass
    try:
        os.rename(name + ".mine", name)
    finally:
        os.unlink(name + ".mine")


@escape("EINVAL", holds=CAPTURING)
def uncovering_resolv_conf() -> None:
    """Nobody inside can take ours off the machine's."""
    with contextlib.suppress(PermissionError):
        umount(os.path.realpath("/etc/resolv.conf"))
        wrong("uncovered")
    nested()
    umount(os.path.realpath("/etc/resolv.conf"))


@escape("EROFS", "EACCES", holds=CAPTURING)
def settings_of_the_network() -> None:
    """Settings of the task's own network are read-only: forwarding, timeouts, which ports need a right."""
    for name in ("ipv4/ip_unprivileged_port_start", "netfilter/nf_conntrack_tcp_timeout_close"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write("0")
    wrong("written")


@neighbour(holds=CAPTURING)
def a_denied_name_does_not_exist() -> None:
    """A look-up of a name that no rule lets through is answered at once: there is no such name (B88)."""
    started = time.monotonic()
    try:
        socket.create_connection(("denied.test", 443), PATIENCE).close()
    except socket.gaierror as error:
        if error.errno not in (socket.EAI_NONAME, -5):  # EAI_NODATA
            raise AssertionError(error) from None
    else:
        wrong("it has an address")
    if time.monotonic() - started > 1:
        wrong("too slow")


@neighbour(holds=(CAPTURED,))
def its_own_address_and_names() -> None:
    """A server on every address is reached by the task's own address and by its host name (B80)."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        for host in ("198.18.0.1", "localhost", socket.gethostname()):
            with socket.create_connection((host, port), PATIENCE), server.accept()[0] as wire:
                wire.sendall(b"x")


def _route_netlink(kind: int, body: bytes) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as wire:
        wire.sendto(struct.pack("IHHII", 16 + len(body), kind, 5, 1, 0) + body, (0, 0))
        (code,) = struct.unpack_from("i", wire.recv(4096), 16)
        if code:
            raise OSError(-code, "netlink")
