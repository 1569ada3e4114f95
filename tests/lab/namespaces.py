"""Namespaces for the lab: the calls of unshare(2), mount(2), capabilities(7) that Python 3.11 lacks.

Rules of the file: nothing here outlives the process, because every namespace dies with its last member. Mounts are
made in a private mount namespace only, never in the machine's.
What it does not do: lay out the lab's links and addresses (links.py) or decide when to isolate (plugin.py).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAP_NET_BIND_SERVICE = 10
CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
_CAPABILITY_VERSION_3 = 0x20080522  # linux/capability.h

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move the calling thread into new namespaces."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str = "none", flags: int = 0, options: str = "") -> None:
    """Attach a filesystem to a folder or file, once."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _check(result, f"mount {target}")


def private_mounts() -> None:
    """Cut the propagation of mounts between this mount namespace and the machine's."""
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


def die_with_parent() -> None:
    """Ask the kernel to end this process when the thread that started it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)


def thread_count() -> int:
    """Return how many threads this process has; a user namespace can be entered by a lone thread only."""
    return len(os.listdir("/proc/self/task"))


def effective_capabilities() -> int:
    """Return the effective capability set as a bit mask."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    return 0


def may_administer() -> bool:
    """Whether this process may make network and mount namespaces without a user namespace."""
    return bool(effective_capabilities() >> CAP_SYS_ADMIN & 1)


def enter_user_namespace() -> None:
    """Enter a user namespace in which this user keeps its id and holds every capability.

    The capabilities are made ambient so that the processes of pytest-xdist, which are started by exec, have them too.
    """
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    _make_ambient()


def try_user_namespace() -> None:
    """Try in a child whether we could enter a user namespace and make the others inside it.

    Half-way in is worse than out: where AppArmor grants the namespace and no capability in it, this process would stay
    there without an id.

    Raises:
        OSError: it does not work here; the text says what is in the way.
    """
    child = os.fork()
    if child == 0:
        number = 255
        try:
            enter_user_namespace()
            unshare(CLONE_NEWNET | CLONE_NEWNS)
            private_mounts()
            number = 0
        except OSError as error:
            number = error.errno or 255
        finally:
            os._exit(number)
    number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if number == errno.ENOSPC:
        raise OSError(number, "the limit of user namespaces (user.max_user_namespaces) is reached")
    if number:
        raise OSError(number, f"user namespaces are restricted ({os.strerror(number)}): AppArmor, seccomp or a sysctl")


def _make_ambient() -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    _check(_libc.capget(header, data), "capget")
    low_effective, low_permitted, _, high_effective, high_permitted, _ = struct.unpack("=6I", data.raw)
    packed = struct.pack(
        "=6I", low_effective, low_permitted, low_permitted, high_effective, high_permitted, high_permitted
    )
    _check(_libc.capset(header, packed), "capset")
    permitted = low_permitted | high_permitted << 32
    for number in range(64):
        if permitted >> number & 1:
            _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0)


def drop_ambient() -> None:
    """Be a plain user again, but for what the lab needs; capabilities no longer pass through exec.

    With CAP_DAC_OVERRIDE, say, a test could not tell that a file is unreadable.
    """
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    kept = 1 << CAP_SYS_ADMIN | 1 << CAP_NET_ADMIN | 1 << CAP_NET_BIND_SERVICE
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)), "capset")


def set_own_address(address: str, number: int, *, present: bool) -> None:
    """Give `lo` one more address, or take it away, by ioctl (netdevice(7)): `ip` would need capabilities through exec.

    An IPv4 address is an alias `lo:NUMBER`, which goes when it is brought down.
    """
    set_address, set_flags, delete_address6 = 0x8916, 0x8914, 0x8936  # SIOCSIFADDR, SIOCSIFFLAGS, SIOCDIFADDR
    if ":" in address:
        packed = socket.inet_pton(socket.AF_INET6, address)
        request = struct.pack("=16sIi", packed, 128, socket.if_nametoindex("lo"))
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            fcntl.ioctl(probe, set_address if present else delete_address6, request)
        return
    name = f"lo:{number}".encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if present:
            packed = socket.inet_aton(address)
            fcntl.ioctl(probe, set_address, struct.pack("=16sHH4s8x", name, socket.AF_INET, 0, packed))
            netmask = struct.pack("=16sHH4s8x", name, socket.AF_INET, 0, b"\xff\xff\xff\xff")
            fcntl.ioctl(probe, 0x891C, netmask)  # SIOCSIFNETMASK
        else:
            fcntl.ioctl(probe, set_flags, struct.pack("=16sH14x", name, 0))


def loopback_up() -> None:
    """Bring up `lo` of the current network namespace (SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP; netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack("16xH14x", fcntl.ioctl(probe, 0x8913, request))
        fcntl.ioctl(probe, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))
