"""The table of escapes: what a task could try in order to get around its hold, and what it could not live without.

This file runs in two places. Outside, a test reads TABLE and makes one case of each row. Inside a hold it is the
program (passed as text, so it needs no file there): each row runs in a process of its own and reports the errno it
ended with, `passed`, `false` where it saw something wrong, or the signal that killed it.

An escape must end with one of its errnos, at once. A neighbour is the same thing done within the rules, and must pass.
Standard library only. What the machine outside has set up comes in as JSON in `HELD`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Columns of the table: the holds, and `netns` with its connections captured as a column of its own.
NETNS, CAPTURED, OFFLINE, OPEN = "netns", "captured", "offline", "open"
ALL = (NETNS, CAPTURED, OFFLINE, OPEN)
HELD: dict[str, Any] = json.loads(os.environ.get("HELD", "{}"))
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
PATIENCE = 5  # seconds; what takes longer is not "at once"


class Row:
    """One row: what is tried, in which holds, and what may come of it there."""

    def __init__(
        self, run: Callable[[], object], holds: tuple[str, ...], expected: dict[str, tuple[str, ...]], who: str
    ) -> None:
        self.name = run.__name__
        self.run = run
        self.holds = holds
        self.expected = expected
        self.who = who
        self.proves = (run.__doc__ or "").strip()


TABLE: dict[str, Row] = {}


def escape(
    *expected: str,
    holds: tuple[str, ...] = ALL,
    offline: str = "",
    captured: str = "",
    only: bool = True,
    who: str = "both",
) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Add an attempt that must end with one of these errnos; `offline` and `captured` are what those give instead."""

    def add(run: Callable[[], object]) -> Callable[[], object]:
        if only:
            answers = dict.fromkeys(holds, expected)
            if offline and OFFLINE in holds:
                answers[OFFLINE] = (offline,)
            if captured and CAPTURED in holds:
                answers[CAPTURED] = (captured,)
            TABLE[run.__name__] = Row(run, holds, answers, who)
        return run

    return add


def neighbour(
    *, holds: tuple[str, ...] = ALL, only: bool = True, who: str = "both"
) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Add something a task needs: it must pass."""
    return escape("passed", holds=holds, only=only, who=who)


FENCED = (NETNS, CAPTURED, OFFLINE)
NO_FAMILY = "EAFNOSUPPORT"


def syscall(number: int, *arguments: Any) -> int:
    """Make a raw system call."""
    words = [argument if isinstance(argument, bytes) else ctypes.c_long(argument) for argument in arguments]
    result: int = LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return result


def number(x86: int, arm: int) -> int:
    """The number of a system call on this machine."""
    return x86 if X86 else arm


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    syscall(number(272, 97), flags)


def nested(*, mounts: bool = True, network: bool = False) -> None:
    """Get every capability in a user namespace of our own, as any program may.

    A task run as root cannot be mapped there, for want of CAP_SETFCAP here; the capabilities it has all the same.
    """
    uid, gid = os.getuid(), os.getgid()
    unshare(0x10000000 | (0x20000 if mounts else 0) | (0x40000000 if network else 0))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except PermissionError:
            if uid != 0:
                raise


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    """Mount something."""
    words = [os.fsencode(word) + b"\0" if word else 0 for word in (source, target, kind)]
    syscall(number(165, 40), *words, flags, 0)


def umount(target: str, flags: int = 0) -> None:
    """Unmount something."""
    syscall(number(166, 39), os.fsencode(target) + b"\0", flags)


def wrong(what: str) -> None:
    """Say that something was seen that must not be."""
    raise AssertionError(what)


def tcp(family: int, address: str, port: int) -> None:
    """Connect by TCP. A connection that is captured is made, and must be ended by the gate without a byte."""
    with socket.socket(family, socket.SOCK_STREAM) as wire:
        wire.settimeout(PATIENCE)
        wire.connect((address, port))
        wire.sendall(b"escaped\n")
        if HELD["hold"] == CAPTURED:
            wire.recv(1)


def udp(family: int, address: str, port: int) -> None:
    """Send a datagram twice: the second reports that nobody took the first."""
    with socket.socket(family, socket.SOCK_DGRAM) as wire:
        wire.settimeout(PATIENCE)
        wire.connect((address, port))
        for _ in range(2):
            wire.send(b"escaped")
            time.sleep(0.02)


def unix(address: str) -> None:
    """Connect to a unix socket; an abstract name begins with @."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.connect("\0" + address[1:] if address.startswith("@") else address)
        wire.sendall(b"escaped")


# --- the network -----------------------------------------------------------------------------------------------


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def tcp_to_the_machines_loopback() -> None:
    """TCP to a listener on the machine's 127.0.0.1."""
    tcp(socket.AF_INET, "127.0.0.1", HELD["tcp4"])


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def tcp_to_the_unspecified_address() -> None:
    """TCP to 0.0.0.0, which the kernel takes for loopback."""
    tcp(socket.AF_INET, "0.0.0.0", HELD["tcp4"])


@escape("ECONNREFUSED", "EADDRNOTAVAIL", holds=FENCED, offline=NO_FAMILY)
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


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
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
    expected = errno.ECONNRESET if HELD["hold"] == CAPTURED else errno.ENETUNREACH
    for address in (HELD["own4"] or "10.0.0.1", "10.0.0.1", "192.168.1.1"):
        for port in (22, 53, 2375, 5432, 6379, 8080, 65535):
            try:
                tcp(socket.AF_INET, address, port)
            except OSError as error:
                if error.errno != expected:
                    raise
                continue
            if (port, HELD["hold"]) not in ((22, CAPTURED), (53, CAPTURED)):  # refused in words; the resolver
                wrong(f"{address}:{port} answered")
    raise OSError(expected, "each of them")


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="ECONNRESET")
def tcp_to_the_machines_own_address() -> None:
    """TCP to a listener on the machine's own address."""
    tcp(socket.AF_INET, HELD["own4"] or "10.0.0.1", HELD["own4_tcp"] or 80)


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def udp_to_the_machines_loopback() -> None:
    """A datagram to the machine's 127.0.0.1 (B83)."""
    udp(socket.AF_INET, "127.0.0.1", HELD["udp4"])


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="passed")
def udp_to_a_resolver() -> None:
    """A datagram to port 53 of a public address: the DNS tunnel. Captured, it is the gate's own resolver."""
    udp(socket.AF_INET, "1.2.3.4", 53)


@escape("ENETUNREACH", holds=FENCED, offline=NO_FAMILY, captured="EPERM")
def udp_to_a_resolver_by_ipv6() -> None:
    """The same over IPv6, port 443: QUIC."""
    udp(socket.AF_INET6, "2600:beef::1", 443)


@escape("ENETUNREACH", "EPERM", "EACCES", "ENODEV", holds=FENCED, offline=NO_FAMILY)
def udp_multicast() -> None:
    """A datagram to a multicast group."""
    udp(socket.AF_INET, "224.0.0.251", 5353)


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
    _attempt.__name__, _attempt.__doc__ = _name, f"socket({_family}, {_kind}, {_protocol}) (B83)."
    escape(_answer, holds=FENCED, offline=NO_FAMILY)(_attempt)


@escape("EAFNOSUPPORT", holds=FENCED)
def socketpair_of_another_family() -> None:
    """A pair of TIPC sockets."""
    socket.socketpair(30, socket.SOCK_STREAM)


@escape("EPERM", holds=FENCED, offline=NO_FAMILY)
def raw_socket_in_a_namespace_of_our_own() -> None:
    """Being root of a network namespace inside does not bring raw sockets back."""
    nested(network=True)
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)


@escape("EOPNOTSUPP", holds=(NETNS, CAPTURED, OPEN))
def fast_open_by_connect() -> None:
    """TCP_FASTOPEN_CONNECT: connect() that sends data."""
    with socket.socket() as wire:
        wire.setsockopt(socket.IPPROTO_TCP, 30, 1)


@escape("EOPNOTSUPP", holds=(NETNS, CAPTURED, OPEN))
def fast_open_as_server() -> None:
    """TCP_FASTOPEN."""
    with socket.socket() as wire:
        wire.setsockopt(socket.IPPROTO_TCP, 23, 5)


@escape("EOPNOTSUPP", holds=(NETNS, CAPTURED, OPEN))
def fast_open_by_sendto() -> None:
    """Sendto with MSG_FASTOPEN connects without connect()."""
    with socket.socket() as wire:
        wire.sendto(b"escaped", 0x20000000, ("127.0.0.1", HELD["tcp4"]))


@escape("EOPNOTSUPP", holds=(NETNS, CAPTURED, OPEN))
def fast_open_by_sendmsg() -> None:
    """Sendmsg with MSG_FASTOPEN likewise."""
    with socket.socket() as wire:
        wire.sendmsg([b"escaped"], [], 0x20000000, ("127.0.0.1", HELD["tcp4"]))


@escape("EOPNOTSUPP", holds=(NETNS, CAPTURED, OPEN))
def fast_open_by_sendmmsg() -> None:
    """Sendmmsg with MSG_FASTOPEN likewise."""
    with socket.socket() as wire:
        syscall(number(307, 269), wire.fileno(), 0, 0, 0x20000000)


@escape("EPERM", holds=(NETNS, CAPTURED))
def a_route_of_our_own() -> None:
    """Netlink is there to look, not to change: adding an interface needs a capability."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as wire:
        body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH4s", 8, 3, b"esc\0")
        wire.sendto(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body, (0, 0))
        (code,) = struct.unpack_from("i", wire.recv(4096), 16)
        if code:
            raise OSError(-code, "netlink")


# --- capture -----------------------------------------------------------------------------------------------------


@escape("EPROTONOSUPPORT", holds=(CAPTURED,))
def rules_of_netfilter() -> None:
    """Rules are changed by netlink of a kind that no task may open."""
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close()


@escape("EPROTONOSUPPORT", holds=(CAPTURED,))
def rules_of_netfilter_with_every_capability() -> None:
    """Nor root of a namespace inside, who would have the right to his own."""
    nested(mounts=False)
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close()


@escape("EPERM", holds=(CAPTURED,))
def taking_the_default_route_away() -> None:
    """Routes can be read and not changed."""
    _route_netlink(25, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 255, 4, 254, 2, 0))  # RTM_DELROUTE


@escape("EPERM", holds=(CAPTURED,))
def taking_the_own_address_away() -> None:
    """Addresses likewise."""
    body = struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH4B", 8, 2, 198, 18, 0, 1)
    _route_netlink(21, body)  # RTM_DELADDR


@escape("EPERM", "EACCES", holds=(CAPTURED,))
def old_tables() -> None:
    """The interface of iptables, which is older than nftables: raw sockets carry it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.setsockopt(0, 64, bytes(96))  # IPT_SO_SET_REPLACE


@escape("EPERM", holds=(CAPTURED,))
def a_transparent_socket() -> None:
    """IP_TRANSPARENT would let a task take what goes to any address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.setsockopt(0, 19, 1)


@escape("EPERM", holds=(CAPTURED,))
def a_mark_on_the_packets() -> None:
    """SO_MARK would choose among routes and rules."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.setsockopt(socket.SOL_SOCKET, 36, 1)


@escape("EACCES", holds=(CAPTURED,))
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


@escape("ECONNRESET", holds=(CAPTURED,))
def a_source_address_of_loopback() -> None:
    """A connection out that claims to come from loopback is captured like any other."""
    with socket.create_connection(("1.2.3.4", 80), PATIENCE, source_address=("127.0.0.1", 0)) as wire:
        wire.sendall(b"escaped\n")
        wire.recv(1)


@escape("timed out", "ECONNRESET", holds=(CAPTURED,))
def a_foreign_source_address() -> None:
    """Every address is local here, so one may be bound; nothing comes of it but an end, late or at once."""
    with socket.create_connection(("1.2.3.4", 80), PATIENCE, source_address=("1.2.3.4", 0)) as wire:
        wire.sendall(b"escaped\n")
        wire.recv(1)


@escape("EROFS", holds=(CAPTURED,))
def writing_resolv_conf() -> None:
    """The file that names the resolver is read-only, for root as well."""
    with open(os.path.realpath("/etc/resolv.conf"), "r+", encoding="ascii") as file:
        file.write("nameserver 8.8.8.8\n")


@escape("EROFS", holds=(CAPTURED,), who="root")
def writing_hosts() -> None:
    """And the one that gives names addresses."""
    with open("/etc/hosts", "r+", encoding="ascii") as file:
        file.write("1.2.3.4 a.test\n")


@escape("EBUSY", holds=(CAPTURED,), who="root")
def putting_another_resolv_conf_in_its_place() -> None:
    """Nor can it be replaced."""
    name = os.path.realpath("/etc/resolv.conf")
    with open(name + ".mine", "w", encoding="ascii"):
        pass
    try:
        os.rename(name + ".mine", name)
    finally:
        os.unlink(name + ".mine")


@escape("EINVAL", holds=(CAPTURED,))
def uncovering_resolv_conf() -> None:
    """A namespace inside cannot take ours off the machine's."""
    nested()
    umount(os.path.realpath("/etc/resolv.conf"))


@escape("EROFS", "EACCES", holds=(CAPTURED,))
def settings_of_the_network() -> None:
    """Settings of the task's own network are read-only: forwarding, timeouts, which ports need a right."""
    for name in ("ipv4/ip_unprivileged_port_start", "netfilter/nf_conntrack_tcp_timeout_close"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write("0")
    wrong("written")


@neighbour(holds=(CAPTURED,))
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


# --- sockets of the machine --------------------------------------------------------------------------------------


@escape("ENOENT", "ECONNREFUSED")
def unix_socket_in_tmp() -> None:
    """A listener in the machine's /tmp (B85)."""
    unix(HELD["unix_tmp"])


@escape("ENOENT", "ECONNREFUSED")
def unix_socket_in_run() -> None:
    """A listener in the machine's /run, as docker's (B79)."""
    unix(HELD["unix_run"])


@escape("ECONNREFUSED")
def unix_socket_at_home() -> None:
    """A listener in the home folder, as ssh's control sockets."""
    unix(HELD["unix_home"])


@escape("ECONNREFUSED")
def unix_socket_in_the_workspace() -> None:
    """A listener in the workspace itself."""
    unix(HELD["unix_work"])


@escape("ECONNREFUSED", "EPERM")
def abstract_unix_socket() -> None:
    """A listener with an abstract name."""
    unix(HELD["unix_abstract"])


@escape("EXDEV", "ENOENT", "EPERM")
def another_name_for_a_socket() -> None:
    """A hard link to a covered socket is a link to the cover."""
    os.link(HELD["unix_home"], HELD["workspace"] + "/link.sock")
    unix(HELD["workspace"] + "/link.sock")


@escape("EINVAL", "EPERM")
def uncovering_a_socket() -> None:
    """A namespace inside cannot take the cover off."""
    nested()
    umount(HELD["unix_home"])


# Sockets made when the task's view had been built. `open` shares the machine's sockets; the rest do not.


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_at_home() -> None:
    """A listener that was made at home after the start."""
    unix(HELD["late_home"])


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_in_the_workspace() -> None:
    """A listener that was made in the workspace after the start."""
    unix(HELD["late_work"])


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_of_another_network() -> None:
    """A listener of another network namespace, as a container's in a shared folder."""
    unix(HELD["late_elsewhere"])


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_relative_path() -> None:
    """The same by a path from the folder it is in, short enough for any length of address."""
    os.chdir(HELD["home"])
    unix("late.sock")


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_our_own_process_files() -> None:
    """The same through /proc/self."""
    os.chdir(HELD["home"])
    unix("/proc/self/cwd/late.sock")


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_descriptor() -> None:
    """The same through a descriptor of the file."""
    unix(f"/proc/self/fd/{os.open(HELD['late_home'], os.O_PATH)}")


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_symlink() -> None:
    """The same through a symlink of the task's, where a socket of its own was before."""
    _in_place_of_our_own(os.symlink)


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_hard_link() -> None:
    """The same by a hard link of the task's, where a socket of its own was before."""
    _in_place_of_our_own(os.link)


def _in_place_of_our_own(put: Callable[[str, str], None]) -> None:
    own = HELD["home"] + "/replaced.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(own)
        server.listen()
        unix(own)
        os.unlink(own)
        put(HELD["late_home"], own)
        try:
            unix(own)
        finally:
            os.unlink(own)


@escape("ECONNREFUSED", holds=FENCED, who="ordinary")
def late_unix_socket_from_a_namespace_inside() -> None:
    """The same with other mounts, below another name, in a root of our own."""
    nested()
    mount(HELD["home"], "/tmp", flags=0x5000)  # MS_BIND | MS_REC
    os.chroot("/tmp")
    unix("/late.sock")


@escape("ECONNREFUSED", holds=FENCED)
def exchanging_the_address_while_it_is_judged() -> None:
    """A thread changes the path while the call is on its way: what was judged is what is called."""
    own, late = (b"\1\0" + os.fsencode(path).ljust(100, b"\0") for path in ("own.sock", "late.sock"))
    os.chdir(HELD["home"])
    address = ctypes.create_string_buffer(own, len(own))
    _race(lambda: _copy(address, late), lambda: _copy(address, own), address)


@escape("ECONNREFUSED", holds=FENCED)
def exchanging_the_file_while_it_is_judged() -> None:
    """A thread exchanges the files behind two names while the call is on its way."""
    os.chdir(HELD["home"])
    for name in ("flip", "flop"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    os.link("late.sock", "flop")
    address = ctypes.create_string_buffer(b"\1\0flip\0")
    exchange = number(316, 276), -100, b"flip\0", -100, b"flop\0", 2  # renameat2, RENAME_EXCHANGE
    _race(lambda: syscall(*exchange), lambda: None, address, name="flip")


@escape("ECONNREFUSED", holds=FENCED)
def exchanging_the_descriptor_while_it_is_judged() -> None:
    """A thread puts a unix socket where a TCP socket was while the call is on its way."""
    os.chdir(HELD["home"])
    address = ctypes.create_string_buffer(b"\1\0late.sock\0")
    fd = socket.socket(socket.AF_UNIX).detach()
    own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).detach()
    other = socket.socket(socket.AF_UNIX).detach()
    _race(lambda: os.dup2(own, fd), lambda: os.dup2(other, fd), address, fd=fd)


def _copy(address: ctypes.Array[ctypes.c_char], text: bytes) -> None:
    ctypes.memmove(address, text, len(text))


def _race(
    one: Callable[[], object],
    other: Callable[[], object],
    address: ctypes.Array[ctypes.c_char],
    name: str = "own.sock",
    fd: int = -1,
) -> None:
    """Connect many times while a thread does the one and the other. Who is reached must be our own server."""
    import threading

    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen(1024)
    over = threading.Event()

    def turn() -> None:
        while not over.is_set():
            one()
            other()

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(100):
            client = socket.socket(socket.AF_UNIX)
            wire = fd if fd >= 0 else client.fileno()
            if LIBC.connect(wire, address, len(address)) == 0:
                if fd >= 0:
                    wrong("reached")
                server.accept()[0].close()  # hangs, and the alarm ends it, where it was another's
            client.close()
    finally:
        over.set()
        thread.join()
    unix("late.sock")


@escape("ESOCKTNOSUPPORT", holds=FENCED)
def unix_datagram_socket() -> None:
    """A datagram socket could name a receiver behind a pointer."""
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


@escape("ESOCKTNOSUPPORT", holds=FENCED)
def unix_raw_socket() -> None:
    """The kernel makes a datagram socket of it."""
    socket.socket(socket.AF_UNIX, socket.SOCK_RAW)


@escape("ESOCKTNOSUPPORT", holds=FENCED)
def unix_datagram_pair() -> None:
    """One of a pair can name a receiver, too."""
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)


@escape("EBUSY")
def a_listener_of_our_own_for_calls() -> None:
    """A filter inside cannot answer for calls in place of the watcher."""
    program = struct.pack("HBBI", 0x06, 0, 0, 0x7FC00000)  # RET USER_NOTIF
    kept = ctypes.create_string_buffer(program)
    fprog = struct.pack("HxxxxxxQ", 1, ctypes.addressof(kept))
    syscall(number(317, 277), 1, 8, fprog)


@escape("EINVAL", "EPERM", "ESRCH", "ENOPROTOOPT", holds=FENCED)
def ending_who_answers_for_sockets() -> None:
    """A peer's process can be asked for, but nothing can be done to the watcher by it."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("\0peer")
        server.listen()
        client.connect("\0peer")
        peer = server.accept()[0]
        process = peer.getsockopt(socket.SOL_SOCKET, 77)  # SO_PEERPIDFD
        for taken in range(8):
            with contextlib.suppress(PermissionError):
                syscall(number(438, 438), process, taken, 0)
                wrong("a descriptor of the watcher")
        syscall(number(424, 424), process, signal.SIGKILL, 0, 0)


@escape("EBUSY")
def moving_the_cover_of_a_socket() -> None:
    """Nor rename what is covered."""
    os.rename(HELD["unix_home"], HELD["unix_home"] + ".2")


@escape("ECONNREFUSED")
def moving_the_folder_of_a_socket() -> None:
    """Renaming the folder takes the cover along."""
    folder = os.path.dirname(HELD["unix_folder"])
    os.rename(folder, folder + "2")
    try:
        unix(folder + "2/s")
    finally:
        os.rename(folder + "2", folder)


@neighbour()
def no_descriptor_of_the_machine() -> None:
    """Nothing but the three standard descriptors is inherited (B85)."""
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the one that listed them
        if int(name) > 2 and not target.startswith("pipe:"):  # a row reports through a pipe
            wrong(f"{name} is {target}")


# --- system calls ------------------------------------------------------------------------------------------------


@escape("ENOSYS")
def io_uring() -> None:
    """io_uring makes system calls that no filter sees (B86)."""
    syscall(425, 8, bytes(120))


@escape("SIGSYS", only=X86)
def a_32_bit_call() -> None:
    """Int 0x80: the other architecture's numbers."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@escape("ENOSYS", only=X86)
def an_x32_call() -> None:
    """The x32 bit: getpid by another number."""
    syscall(0x40000000 | 39)


@escape("ENOSYS")
def clone3() -> None:
    """Its flags are behind a pointer, so the whole call is refused; C libraries use clone."""
    syscall(435, bytes(88), 88)


_CALLS = (
    ("bpf", 321, 280, "EPERM"),
    ("perf_event_open", 298, 241, "EPERM"),
    ("userfaultfd", 323, 282, "EPERM"),
    ("keyctl", 250, 219, "EPERM"),
    ("add_key", 248, 217, "EPERM"),
    ("request_key", 249, 218, "EPERM"),
    ("kexec_load", 246, 104, "EPERM"),
    ("init_module", 175, 105, "EPERM"),
    ("finit_module", 313, 273, "EPERM"),
    ("open_by_handle_at", 304, 265, "EPERM"),
    ("kernel_log", 103, 116, "EPERM"),
    ("pivot_root", 155, 41, "EPERM"),
    ("settime", 164, 170, "EPERM"),
    ("reboot", 169, 142, "EPERM"),
    ("swapon", 167, 224, "EPERM"),
    ("sethostname", 170, 161, "EPERM"),
    ("chroot", 161, 51, "EPERM"),
)


def _call_of(x86: int, arm: int) -> Callable[[], object]:
    def attempt() -> None:
        syscall(number(x86, arm), b"/\0", 0, b"\0", 0, 0)

    return attempt


for _name, _x86, _arm, _answer in _CALLS:
    _attempt = _call_of(_x86, _arm)
    _attempt.__name__, _attempt.__doc__ = _name, f"{_name} is not for a task."
    escape(_answer)(_attempt)


@escape("EPERM")
def mounting_at_all() -> None:
    """In the task's own namespaces there is no right to mount."""
    mount("tmpfs", "/tmp", "tmpfs")


@escape("EPERM")
def control_group_namespace() -> None:
    """A namespace for control groups would bring writable ones."""
    unshare(0x02000000 | 0x10000000)


@escape("EINVAL")
def unknown_namespace_flag() -> None:
    """A flag that a newer kernel may know, such as an empty mount namespace."""
    unshare(0x00100000)


@escape("EINVAL")
def mount_namespace_of_a_part() -> None:
    """open_tree with a flag that is not known yet."""
    syscall(428, -100, b"/\0", 2)


@escape("EPERM", "EACCES")
def entering_inits_namespaces() -> None:
    """Setns to the namespaces of PID 1."""
    descriptor = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    syscall(number(308, 268), descriptor, 0)


@escape("EPERM")
def tracing_init() -> None:
    """Ptrace of PID 1, which was made of the front's memory."""
    syscall(number(101, 117), 16, 1, 0, 0)


@escape("EPERM", "EACCES")
def reading_init() -> None:
    """PID 1's memory, environment, root, descriptors: none may be looked into."""
    for name in ("mem", "environ", "maps", "auxv", "root/etc/passwd", "fd/0", "cwd/x"):
        try:
            with open(f"/proc/1/{name}", "rb") as file:
                file.read(1)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES):
                raise
            continue
        wrong(f"/proc/1/{name} can be read")
    raise OSError(errno.EACCES, "each of them")


@escape("EPERM")
def taking_inits_descriptors() -> None:
    """pidfd_getfd of PID 1: its control socket."""
    syscall(438, syscall(434, 1, 0), 3, 0)


@neighbour()
def init_cannot_be_killed() -> None:
    """A signal from inside does not end PID 1."""
    for one in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        os.kill(1, one)
    time.sleep(0.05)
    with open("/proc/1/stat", encoding="ascii") as file:
        if file.read().split()[2] in "ZTX":
            wrong("init is not running")


@escape("EPERM")
def becoming_somebody_else() -> None:
    """Setuid to another user: no capability for that is left."""
    os.setgroups([])
    os.setuid(54321)


@escape("EPERM")
def a_device_of_our_own() -> None:
    """Mknod of a disk."""
    os.mknod(HELD["workspace"] + "/disk", 0o60600, os.makedev(254, 0))


# --- terminals ---------------------------------------------------------------------------------------------------


@escape("EPERM")
def typing_into_the_terminal() -> None:
    """TIOCSTI puts characters into a terminal's input."""
    _master, slave = os.openpty()
    fcntl.ioctl(slave, 0x5412, b"x")


@escape("EPERM")
def typing_with_the_upper_half_set() -> None:
    """TIOCSTI again, with bits that the kernel does not look at."""
    _master, slave = os.openpty()
    syscall(number(16, 29), slave, 0x100005412, b"x")


@escape("EPERM")
def pasting_on_the_console() -> None:
    """TIOCLINUX pastes a selection on a console."""
    _master, slave = os.openpty()
    fcntl.ioctl(slave, 0x541C, b"\2")


# --- the kernel's files ------------------------------------------------------------------------------------------


def _write_of(path: str) -> Callable[[], object]:
    def attempt() -> None:
        os.close(os.open(path, os.O_WRONLY))

    return attempt


_FILES = (
    ("core_pattern", "/proc/sys/kernel/core_pattern"),
    ("modprobe_path", "/proc/sys/kernel/modprobe"),
    ("ip_forward", "/proc/sys/net/ipv4/ip_forward"),
    ("sysrq", "/proc/sysrq-trigger"),
    ("mtrr", "/proc/mtrr"),
    ("uevent_helper", "/sys/kernel/uevent_helper"),
    ("hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("loopback_uevent", "/sys/class/net/lo/uevent"),
    ("control_group", "/sys/fs/cgroup/cgroup.procs"),
)
for _name, _path in _FILES:
    _attempt = _write_of(_path)
    _attempt.__name__, _attempt.__doc__ = f"writing_{_name}", f"Open {_path} for writing."
    escape("EROFS", "EACCES", "ENOENT")(_attempt)

for _name in (
    "kmsg",
    "mem",
    "kvm",
    "fuse",
    "vsock",
    "console",
    "tty1",
    "loop0",
    "vda",
    "sda",
    "net/tun",
    "userfaultfd",
):
    _attempt = _write_of(f"/dev/{_name}")
    _attempt.__name__, _attempt.__doc__ = f"device_{_name.replace('/', '_')}", f"/dev/{_name} is not there."
    escape("ENOENT")(_attempt)


@escape("EPERM")
def remounting_proc_sys() -> None:
    """Root of a namespace inside cannot make /proc/sys writable again."""
    nested()
    mount("", "/proc/sys", flags=0x20 | 0x1000)


@escape("EINVAL")
def unmounting_proc_sys() -> None:
    """Nor take the read-only mount away."""
    nested()
    umount("/proc/sys")


@escape("EPERM")
def a_fresh_proc() -> None:
    """Nor mount a /proc without masks, in PID and user namespaces of its own."""
    nested()
    unshare(0x20000000)
    child = os.fork()
    if child == 0:
        try:
            mount("proc", "/tmp", "proc")
            os.close(os.open("/tmp/sys/kernel/core_pattern", os.O_WRONLY))
        except OSError as error:
            os._exit(error.errno or 0)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "mount")


@escape("EPERM")
def a_fresh_sysfs() -> None:
    """Nor a writable /sys, in a network namespace of its own."""
    nested(network=True)
    mount("sysfs", "/tmp", "sysfs")


@escape("EPERM", "ENODEV", "EBUSY")
def a_fresh_control_group_tree() -> None:
    """Nor control groups, of the new kind or the old."""
    nested()
    try:
        mount("cgroup2", "/tmp", "cgroup2")
    except OSError:
        mount("cgroup", "/tmp", "cgroup")


@escape("EINVAL")
def looking_below_a_mask() -> None:
    """A bind of the folder above a mask, without what is mounted below it."""
    nested()
    mount(os.path.dirname(HELD["hidden"]), "/tmp", flags=0x1000)
    os.listdir("/tmp/" + os.path.basename(HELD["hidden"]))


@escape("EINVAL", "EPERM")
def looking_below_the_masks_by_overlay() -> None:
    """An overlay whose lower layer is the folder above a mask."""
    nested()
    above = os.path.dirname(HELD["hidden"])
    words = (b"overlay\0", b"/tmp\0", b"overlay\0", 0, b"lowerdir=" + os.fsencode(above) + b":/usr\0")
    syscall(number(165, 40), *words)
    with open("/tmp/" + os.path.basename(HELD["hidden"]) + "/secret", encoding="ascii") as file:
        wrong(file.read())


@escape("EINVAL", "EPERM")
def looking_below_our_tmp() -> None:
    """The machine's /tmp lies under ours, and stays there."""
    nested()
    umount("/tmp")


# --- protected files ---------------------------------------------------------------------------------------------


@escape("ENOENT")
def reading_what_is_hidden() -> None:
    """Tidegate's own files are not there."""
    with open(HELD["hidden"] + "/secret", encoding="ascii") as file:
        wrong(file.read())


@escape("EROFS")
def writing_what_is_hidden() -> None:
    """Nor can a task put its own in their place."""
    with open(HELD["hidden"] + "/secret", "w", encoding="ascii") as file:
        file.write("mine")


@escape("EROFS", "EBUSY", "ENOENT")
def making_a_hidden_folder_that_was_not_there() -> None:
    """Nor make a hidden folder that did not exist before."""
    os.makedirs(HELD["absent"], exist_ok=True)
    with open(HELD["absent"] + "/config.yaml", "w", encoding="ascii") as file:
        file.write("mine")


@escape("EBUSY")
def renaming_what_is_hidden() -> None:
    """The hidden folder itself cannot be renamed."""
    os.rename(HELD["hidden"], HELD["hidden"] + "2")


@escape("EBUSY")
def renaming_above_what_is_hidden() -> None:
    """Nor the folder above it."""
    above = os.path.dirname(HELD["hidden"])
    os.rename(above, above + "2")


@escape("EBUSY")
def renaming_home() -> None:
    """Nor the one above that."""
    os.rename(HELD["home"], HELD["home"] + "2")


@escape("EBUSY")
def replacing_a_symlink_to_what_is_hidden() -> None:
    """A symlink that leads there cannot be replaced."""
    os.unlink(HELD["hidden_link"])


@escape("EBUSY")
def exchanging_the_folder_above() -> None:
    """RENAME_EXCHANGE with a folder of the task's own."""
    above = os.path.dirname(HELD["hidden"])
    mine = HELD["home"] + "/mine"
    os.makedirs(mine, exist_ok=True)
    syscall(number(316, 276), -100, os.fsencode(mine) + b"\0", -100, os.fsencode(above) + b"\0", 2)


@escape("EPERM")
def copying_what_is_hidden() -> None:
    """A snapshot of a file system would show what lies under the masks (btrfs)."""
    fcntl.ioctl(os.open(HELD["home"], os.O_RDONLY), 0x50009417, bytes(1024))


@escape("EROFS")
def writing_the_installation() -> None:
    """What runs outside later is read-only."""
    with open(HELD["readonly"] + "/code.py", "a", encoding="ascii") as file:
        file.write("mine")


@escape("EROFS")
def adding_to_the_installation() -> None:
    """And nothing is added to it."""
    with open(HELD["readonly"] + "/new.py", "w", encoding="ascii") as file:
        file.write("mine")


@escape("EROFS")
def writing_the_installation_by_descriptor() -> None:
    """Opening it read-only first and again through /proc does not help."""
    descriptor = os.open(HELD["readonly"] + "/code.py", os.O_RDONLY)
    os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY))


@escape("EBUSY")
def renaming_the_installation() -> None:
    """It cannot be renamed."""
    os.rename(HELD["readonly"], HELD["readonly"] + "2")


@escape("EROFS")
def changing_modes_of_the_installation() -> None:
    """Nor get other modes."""
    os.chmod(HELD["readonly"] + "/code.py", 0o777)


@escape("EBUSY")
def removing_a_read_only_file() -> None:
    """A read-only file in the workspace cannot be removed."""
    os.unlink(HELD["readonly_file"])


@escape("EBUSY")
def replacing_a_read_only_file() -> None:
    """Nor replaced, as editors and git do."""
    mine = HELD["workspace"] + "/mine.toml"
    with open(mine, "w", encoding="ascii") as file:
        file.write("mine")
    os.rename(mine, HELD["readonly_file"])


@escape("EXDEV", "EPERM")
def linking_a_read_only_file() -> None:
    """Nor linked to where it could be written."""
    os.link(HELD["readonly_file"], HELD["workspace"] + "/link.toml")


@escape("EBUSY")
def removing_from_a_namespace_inside() -> None:
    """Root of a namespace inside finds the same mounts."""
    nested()
    os.unlink(HELD["readonly_file"])


@escape("EPERM", "EINVAL")
def leaving_the_mounts_behind() -> None:
    """A lazy unmount of everything would free the names that mounts hold in place."""
    nested()
    folder = os.open(HELD["workspace"], os.O_RDONLY)
    mount("tmpfs", "/tmp", "tmpfs")
    try:
        syscall(number(155, 41), b"/tmp\0", b"/tmp\0")
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    umount("/", 2)
    os.unlink(os.path.basename(HELD["readonly_file"]), dir_fd=folder)


# --- what a task needs -------------------------------------------------------------------------------------------


@neighbour(holds=(NETNS, CAPTURED, OPEN))
def servers_on_loopback() -> None:
    """A server of the task's own, TCP and UDP, IPv4."""
    _serve(socket.AF_INET, "127.0.0.1")


@neighbour(holds=(NETNS, CAPTURED, OPEN))
def servers_on_loopback_by_ipv6() -> None:
    """The same over IPv6, where the machine has it."""
    if os.path.exists("/proc/net/if_inet6"):
        _serve(socket.AF_INET6, "::1")


@neighbour(holds=(NETNS, CAPTURED))
def servers_on_every_address() -> None:
    """A server on 0.0.0.0 is reached by loopback and by another loopback address (B80)."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        for address in ("127.0.0.1", "127.1.2.3"):
            socket.create_connection((address, server.getsockname()[1]), PATIENCE).close()


def _serve(family: int, address: str) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as server, socket.socket(family, socket.SOCK_STREAM) as client:
        server.bind((address, 0))
        server.listen()
        client.settimeout(PATIENCE)
        client.connect(server.getsockname())
        server.accept()[0].sendall(b"hello")
        if client.recv(5) != b"hello":
            wrong("nothing came through")
    with socket.socket(family, socket.SOCK_DGRAM) as one, socket.socket(family, socket.SOCK_DGRAM) as other:
        one.bind((address, 0))
        one.settimeout(PATIENCE)
        other.sendto(b"hello", one.getsockname())
        if one.recv(5) != b"hello":
            wrong("no datagram came through")


@neighbour(holds=(NETNS, CAPTURED))
def the_gate() -> None:
    """The gate is where the proxy settings say."""
    with socket.create_connection(("127.0.0.1", HELD["port"]), PATIENCE) as wire:
        wire.sendall(b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n")
        if not wire.recv(99).startswith(b"HTTP/1.1 403"):
            wrong("no gate")


@neighbour(holds=(OPEN,))
def the_machines_network() -> None:
    """The hold `open` reaches the machine's listeners: its network is the machine's."""
    tcp(socket.AF_INET, "127.0.0.1", HELD["open_tcp4"])


@neighbour()
def unix_sockets_of_our_own() -> None:
    """Unix sockets by path, by abstract name and in pairs."""
    for address in (HELD["workspace"] + "/own.sock", "/tmp/own.sock", f"\0own-{os.getpid()}"):
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(address)
            server.listen()
            client.connect(address)
        if not address.startswith("\0"):
            os.unlink(address)
    for one in socket.socketpair():
        one.close()


@neighbour()
def unix_sockets_in_every_manner() -> None:
    """By relative path, symlink, descriptor and /proc; streams and packets; without waiting; refused as ever."""
    os.chdir(HELD["workspace"])
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as server:
            server.bind("own")
            server.listen()
            os.symlink("own", "way")
            held = os.open("own", os.O_PATH)
            for address in ("own", "./way", "/proc/self/cwd/own", f"/proc/self/fd/{held}"):
                with socket.socket(socket.AF_UNIX, kind) as client:
                    client.setblocking(False)
                    client.connect(address)
                    client.send(b"hello")
                    if server.accept()[0].recv(9) != b"hello":
                        wrong(address)
            os.unlink("way")
        for address, refusal in (("own", errno.ECONNREFUSED), ("none", errno.ENOENT), ("own/x", errno.ENOTDIR)):
            with socket.socket(socket.AF_UNIX, kind) as client:
                if client.connect_ex(address) != refusal:
                    wrong(f"{address} is not refused")
        os.close(held)
        os.unlink("own")


@neighbour()
def a_full_backlog_is_waited_for() -> None:
    """A call that must wait waits, holds up no other, and is served when there is room."""
    import threading

    server = socket.socket(socket.AF_UNIX)
    server.bind("\0full")
    server.listen(0)
    clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    threads = [threading.Thread(target=client.connect, args=("\0full",)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    hasty = socket.socket(socket.AF_UNIX)
    hasty.setblocking(False)
    if HELD["hold"] != OPEN and hasty.connect_ex("\0full") != errno.EAGAIN:
        wrong("there was room")
    hasty.settimeout(None)
    hasty.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50_000))
    if hasty.connect_ex("\0full") != errno.EAGAIN:
        wrong("it waited for ever")
    for _ in threads:
        server.accept()
    for thread in threads:
        thread.join()


@neighbour(who="ordinary")
def unix_sockets_in_namespaces_of_our_own() -> None:
    """A server and its client in other mounts, another root and another network."""
    nested(network=True)
    mount("tmpfs", "/tmp", "tmpfs")
    os.chroot("/tmp")
    os.chdir("/")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("/own")
        server.listen()
        unix("/own")
        unix("own")


@neighbour(holds=(NETNS, CAPTURED, OPEN))
def interfaces() -> None:
    """Programs may look at interfaces and routes."""
    if "lo" not in [name for _number, name in socket.if_nameindex()]:
        wrong("no loopback interface")
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


@neighbour(who="ordinary")
def namespaces_of_our_own() -> None:
    """User, mount, PID, network and IPC namespaces inside, and a mount in them: browsers need that."""
    nested(network=True)
    unshare(0x20000000 | 0x08000000)
    mount("tmpfs", "/tmp", "tmpfs")
    with open("/tmp/file", "w", encoding="ascii") as file:
        file.write("mine")
    umount("/tmp")
    os.chroot("/usr")


@neighbour()
def own_folders() -> None:
    """The workspace, home, /tmp, /dev/shm, the runtime folder and TMPDIR can be written."""
    for folder in (
        HELD["workspace"],
        HELD["home"],
        "/tmp",
        "/dev/shm",
        os.environ["XDG_RUNTIME_DIR"],
        os.environ["TMPDIR"],
    ):
        with open(folder + "/probe", "w", encoding="ascii") as file:
            file.write("mine")
        os.unlink(folder + "/probe")
    if os.stat(os.environ["XDG_RUNTIME_DIR"]).st_mode & 0o777 != 0o700:
        wrong("the runtime folder is open to others")


@neighbour()
def nothing_of_the_machines_tmp() -> None:
    """Nothing of the machine's /tmp and /run is in sight."""
    if os.path.exists(HELD["unix_tmp"]) or "lock" not in os.listdir("/run"):
        wrong("the machine's")


@neighbour()
def renaming_beside_what_is_protected() -> None:
    """Names beside protected ones are the task's: renamed across folders, linked, removed."""
    above = os.path.dirname(HELD["hidden"])
    os.makedirs(above + "/other/deep", exist_ok=True)
    os.rename(above + "/other", HELD["home"] + "/other2")
    os.rename(HELD["home"] + "/other2", HELD["workspace"] + "/other3")
    os.rmdir(HELD["workspace"] + "/other3/deep")
    os.rmdir(HELD["workspace"] + "/other3")


@neighbour()
def reading_the_installation() -> None:
    """What is read-only can be read and run."""
    with open(HELD["readonly"] + "/code.py", encoding="ascii") as file:
        exec(file.read(), {})


@neighbour()
def devices() -> None:
    """The devices that programs expect, and a pty."""
    with open("/dev/null", "wb") as null:
        null.write(b"x")
    for name in ("zero", "urandom", "random"):
        with open("/dev/" + name, "rb") as device:
            device.read(4)
    master, slave = os.openpty()
    if not os.ttyname(slave).startswith("/dev/pts/"):
        wrong("the pty has no name")
    os.close(master)
    for name in ("fd", "stdin", "stdout", "stderr", "ptmx"):
        os.stat(f"/dev/{name}") if name in ("fd", "ptmx") else os.lstat(f"/dev/{name}")


@neighbour()
def processes() -> None:
    """Threads, children, signals, tracing a child of our own, an executable page, shared memory."""
    import subprocess
    import threading

    thread = threading.Thread(target=time.sleep, args=(0,))
    thread.start()
    thread.join()
    if subprocess.run(["/bin/sh", "-c", "exit 7"], check=False).returncode != 7:
        wrong("exit status")
    child = os.fork()
    if child == 0:
        time.sleep(60)
    syscall(number(101, 117), 16, child, 0, 0)  # PTRACE_ATTACH
    os.waitpid(child, 0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


@neighbour()
def own_process_files() -> None:
    """/proc/self can be written where a process may."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("other")
    if any(name.isdigit() and int(name) > 1 << 21 for name in os.listdir("/proc")):
        wrong("foreign processes")


@neighbour()
def no_rights() -> None:
    """No capability in any set, no_new_privs, one filter."""
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(fields[name], 16):
            wrong(f"{name} {fields[name]}")
    if (fields["NoNewPrivs"], fields["Seccomp"]) != ("1", "2"):
        wrong(f"{fields['NoNewPrivs']} {fields['Seccomp']}")


@neighbour()
def look_ups_fail_fast() -> None:
    """A name look-up does not hang where there is no resolver (B88)."""
    started = time.monotonic()
    with contextlib.suppress(OSError):
        socket.gethostbyname("name.test")
    if HELD["hold"] != OPEN and time.monotonic() - started > PATIENCE:
        wrong("too slow")


# --- inside ------------------------------------------------------------------------------------------------------


def _report(row: Row) -> str:
    """Run one row in a process of its own and name what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(4 * PATIENCE)
        try:
            row.run()
            answer = "passed"
        except OSError as error:
            answer = errno.errorcode.get(error.errno or 0, str(error))
            answer = {"ENOTSUP": "EOPNOTSUPP"}.get(answer, answer)
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is the row's answer)
            answer = f"false: {error!r}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return answer or (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "nothing")


def main() -> None:
    """Run every row for this hold and print the answers as JSON."""
    answers = {name: _report(row) for name, row in TABLE.items() if HELD["hold"] in row.holds}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
