"""The system calls a task may make: everything but what would lead around the hold (HLD-13).

Four filters, one text: `netns` knows the families UNIX, INET and INET6 with TCP and UDP, and NETLINK_ROUTE;
`offline` only UNIX; `open` any family, and the rest just the same. `landlock` has no network, files, processes or
shared memory of its own: it knows no datagrams, no namespaces and no System V IPC, and hands on more (below).

Rules of the file: a family or protocol is refused unless it is listed (allow-list); only words that the kernel itself
compares as 32 bits are compared; a call whose rights hide behind a pointer is refused whole (io_uring, clone3).
Refusals are the errno a kernel without the feature gives, so that programs fall back.

Why mounts are in it: a user namespace inside gives a task mounts of its own, but never the right to *lose* the ones it
found. What protects a file from being renamed or removed is that it is a mount point in the namespace of who
tries (Linux 3.18, "detach mounts"). So nobody may leave those behind: no pivot_root, no lazy unmount, no flag of a
newer kernel that makes a mount namespace from a part. An engine for containers does not run inside; browsers do. For
the same reason no snapshots of file systems: in a copy nothing is covered.

It does not look at paths or addresses: mounts and the network namespace are what they are for. But a unix socket with
a path is found wherever its file is in sight, so connect() and listen() are handed to the watcher (watcher.py), and
there are no unix *datagram* sockets: sendmsg() names their receiver behind a pointer, and handing every sendmsg() to
another process would cost each program that uses it dearly. `open` shares the machine's sockets anyway. seccomp(2).
"""

from __future__ import annotations

import errno

from tidegate.holds import linux, outward
from tidegate.holds.bpf import ALLOW, ARCHITECTURE, ERRNO, KILL_PROCESS, NOTIFY, NUMBER, Program, argument
from tidegate.holds.syscalls import AUDIT_ARCH_X86_64, TABLES, X32_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NETNS = "netns"
OFFLINE = "offline"
OPEN = "open"
LANDLOCK = "landlock"

# sys/socket.h, netinet/in.h, linux/net.h: the same on both machines
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_PACKET = 1, 2, 3, 5, 10
SOCK_TYPE_MASK = 0xF
IPPROTO_TCP, IPPROTO_UDP = 6, 17
NETLINK_ROUTE = 0
MSG_FASTOPEN = 0x20000000
TCP_FASTOPEN, TCP_FASTOPEN_CONNECT = 23, 30  # linux/tcp.h
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # asm-generic/ioctls.h
# linux/btrfs.h BTRFS_IOC_SNAP_CREATE, _V2, _DESTROY, _DESTROY_V2; bcachefs BCH_IOCTL_SUBVOLUME_CREATE, _DESTROY
SNAPSHOTS = (0x50009401, 0x50009417, 0x5000940F, 0x5000943F, 0x4020BC10, 0x4020BC11)
CLONE_NEWCGROUP = 0x02000000
# Every flag of unshare(2) up to Linux 6.18: namespaces, and what threads share.
UNSHARE_KNOWN = 0x7E020000 | 0x00000F00 | 0x00010000 | 0x00040000 | 0x00000080
OPEN_TREE_KNOWN = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | 0x100 | 0x800 | 0x1000 | 0x8000  # AT_*
FSMOUNT_KNOWN = linux.FSMOUNT_CLOEXEC

REFUSED: tuple[tuple[str, str], ...] = (
    ("io_uring_setup", "ENOSYS"),
    ("io_uring_enter", "ENOSYS"),
    ("io_uring_register", "ENOSYS"),
    ("clone3", "ENOSYS"),  # its flags are behind a pointer; C libraries fall back to clone
    ("open_tree_attr", "ENOSYS"),  # open_tree with more; nothing needs it
    ("pivot_root", "EPERM"),
    ("keyctl", "EPERM"),  # keyrings have no namespace
    ("add_key", "EPERM"),
    ("request_key", "EPERM"),
    ("bpf", "EPERM"),
    ("perf_event_open", "EPERM"),
    ("userfaultfd", "EPERM"),
    ("kexec_load", "EPERM"),
    ("kexec_file_load", "EPERM"),
    ("init_module", "EPERM"),
    ("finit_module", "EPERM"),
    ("delete_module", "EPERM"),
    ("open_by_handle_at", "EPERM"),  # reaches files below a mask
    ("syslog", "EPERM"),
)
"""Calls that are refused whatever their arguments."""

# In `landlock`: what the machine's other processes would share with a task, or could be changed of them.
REFUSED_WITHOUT_NAMESPACES: tuple[tuple[str, str], ...] = (
    *((name, "ENOSYS") for name in ("openat2", "setxattrat", "removexattrat", "file_setattr")),  # behind a pointer
    *((name, "ENOSYS") for name in ("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop")),
    *((name, "ENOSYS") for name in ("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink")),
    ("setns", "EPERM"),
    ("fanotify_init", "EPERM"),
)
HANDED = (
    *("bind", "creat", "truncate", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "unlink"),
    *("unlinkat", "link", "linkat", "symlink", "symlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat"),
    *("fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr"),
    *("lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
)
"""Calls that change names and files, which `landlock` hands to its watcher; opening, too, where it is to write."""
OPENS_TO_WRITE = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, __O_TMPFILE
NEW_NAMESPACES = 0x7E020000 | 0x00000080  # CLONE_NEW*: all of clone(2), CLONE_NEWTIME
TIOCGPTPEER = 0x5441  # asm-generic/ioctls.h
# linux/fs.h FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY: need no descriptor that can write
FILE_FLAGS = (0x40086602, 0x401C5820, 0x40806685)
_OF_OTHERS = (("sched_setaffinity", 0), ("sched_setparam", 0), ("sched_setscheduler", 0), ("sched_setattr", 0))

_GIVEN = "EPERM ENOSYS EINVAL EBUSY EAFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP"
ERRNOS = {name: getattr(errno, name) for name in _GIVEN.split()}


def program(kind: str, machine: str = linux.MACHINE) -> bytes:
    """The filter of this kind for this machine, as `struct sock_filter[]`.

    Raises:
        KeyError: for a machine whose numbers are not known.
    """
    p, numbers = _begun(machine)
    if kind != OPEN:
        p.if_equal(numbers["socket"], "socket")
        p.if_equal(numbers["socketpair"], "socketpair")
        p.if_equal(numbers["connect"], "watcher")
        p.if_equal(numbers["listen"], "watcher")
    for name in ("setsockopt", "sendto", "sendmsg", "sendmmsg", "ioctl", "umount2", "open_tree", "fsmount", "seccomp"):
        p.if_equal(numbers[name], name)
    for name in ("unshare", "clone", "prlimit64"):
        p.if_equal(numbers[name], name)
    if kind == LANDLOCK:
        _numbers_without_namespaces(p, numbers)
    for name, answer in REFUSED:
        p.if_equal(numbers[name], answer)
    p.give(ALLOW)
    if kind != OPEN:
        _families(p, internet=kind in (NETNS, LANDLOCK), datagrams=kind != LANDLOCK)
    if kind == LANDLOCK:
        _arguments_without_namespaces(p)
    _arguments(p, kind)
    p.label("allow")
    return _ended(p, ERRNOS)


def watched(machine: str = linux.MACHINE) -> bytes:
    """A filter for beside a whole one that cannot hand on (an engine's): it does that, and lets nobody else answer.

    Raises:
        KeyError: for a machine whose numbers are not known.
    """
    p, numbers = _begun(machine)
    p.if_equal(numbers["connect"], "watcher")
    p.if_equal(numbers["listen"], "watcher")
    p.if_equal(numbers["seccomp"], None, "allow")
    p.load(argument(1))
    p.if_any_bit(linux.SECCOMP_FILTER_FLAG_NEW_LISTENER, "EBUSY")
    p.label("allow")
    return _ended(p, ("ENOSYS", "EBUSY"))


def _begun(machine: str) -> tuple[Program, Mapping[str, int]]:
    """A filter that has looked at the architecture and loaded the call's number, and the numbers of its calls."""
    architecture, numbers = TABLES[machine]
    p = Program()
    p.load(ARCHITECTURE)
    p.if_equal(architecture, None, "kill")
    p.load(NUMBER)
    if architecture == AUDIT_ARCH_X86_64:
        p.if_at_least(X32_BIT, "ENOSYS")
    return p, numbers


def _ended(p: Program, errors: Iterable[str]) -> bytes:
    """The whole filter: what stands at "allow", which was just labelled, and at the labels that it jumped to."""
    p.give(ALLOW)
    p.label("watcher")
    p.give(NOTIFY)
    p.label("kill")
    p.give(KILL_PROCESS)
    for name in errors:
        p.label(name)
        p.give(ERRNO | ERRNOS[name])
    return p.assemble()


def _numbers_without_namespaces(p: Program, numbers: Mapping[str, int]) -> None:
    for name in HANDED:
        if name in numbers:
            p.if_equal(numbers[name], "watcher")
    for name in ("open", "openat", "setpriority", "ioprio_set"):
        if name in numbers:
            p.if_equal(numbers[name], name)
    for name, _at in _OF_OTHERS:
        p.if_equal(numbers[name], "of others")
    for name, answer in REFUSED_WITHOUT_NAMESPACES:
        p.if_equal(numbers[name], answer)


def _arguments_without_namespaces(p: Program) -> None:
    for name, at in (("open", 1), ("openat", 2)):
        p.label(name)
        p.load(argument(at))
        p.if_any_bit(OPENS_TO_WRITE, "watcher", "allow")
    p.label("of others")  # of a process: its own, which is 0, and no other's
    p.load(argument(0))
    p.if_equal(0, "allow", "EPERM")
    for name, mine in (("setpriority", 0), ("ioprio_set", 1)):  # PRIO_PROCESS, IOPRIO_WHO_PROCESS
        p.label(name)
        p.load(argument(0))
        p.if_equal(mine, None, "EPERM")
        p.load(argument(1))
        p.if_equal(0, "allow", "EPERM")


def _families(p: Program, *, internet: bool, datagrams: bool = True) -> None:
    """socket(family, type, protocol) and socketpair: the allow-list."""
    p.label("socketpair")
    p.load(argument(0))
    p.if_equal(AF_UNIX, "unix", "EAFNOSUPPORT")
    p.label("socket")
    p.load(argument(0))
    p.if_equal(AF_UNIX, "unix")
    if internet:
        _internet(p, datagrams=datagrams)
    else:
        p.give(ERRNO | ERRNOS["EAFNOSUPPORT"])
    p.label("unix")
    p.load(argument(1))
    p.mask(SOCK_TYPE_MASK)
    p.if_equal(SOCK_STREAM, "allow")
    p.if_equal(SOCK_SEQPACKET, "allow", "ESOCKTNOSUPPORT")


def _internet(p: Program, *, datagrams: bool) -> None:
    p.if_equal(AF_INET, "internet")
    p.if_equal(AF_INET6, "internet")
    p.if_equal(AF_NETLINK, None, "EAFNOSUPPORT")
    p.load(argument(2))
    p.if_equal(NETLINK_ROUTE, "allow", "EPROTONOSUPPORT")
    p.label("internet")
    p.load(argument(1))
    p.mask(SOCK_TYPE_MASK)
    p.if_equal(SOCK_STREAM, "stream")
    p.if_equal(SOCK_DGRAM, "datagram" if datagrams else "EPERM")
    p.if_equal(SOCK_RAW, "EPERM")
    p.if_equal(SOCK_PACKET, "EPERM", "EPROTONOSUPPORT")
    p.label("stream")
    p.load(argument(2))
    p.if_equal(0, "allow")
    p.if_equal(IPPROTO_TCP, "allow", "EPROTONOSUPPORT")
    if datagrams:
        p.label("datagram")
        p.load(argument(2))
        p.if_equal(0, "allow")
        p.if_equal(IPPROTO_UDP, "allow", "EPROTONOSUPPORT")


def _arguments(p: Program, kind: str) -> None:
    """Calls that are fine but for some values of one argument."""
    p.label("setsockopt")
    p.load(argument(1))
    if kind == LANDLOCK:
        outward.tell_levels(p)
    p.if_equal(IPPROTO_TCP, None, "allow")
    p.load(argument(2))
    p.if_equal(TCP_FASTOPEN, "EOPNOTSUPP")
    p.if_equal(TCP_FASTOPEN_CONNECT, "EOPNOTSUPP", "allow")
    if kind == LANDLOCK:
        outward.refuse(p, "EPERM")
    p.label("sendto")
    p.label("sendmmsg")
    p.load(argument(3))
    p.if_any_bit(MSG_FASTOPEN, "EOPNOTSUPP", "allow")
    p.label("sendmsg")
    p.load(argument(2))
    p.if_any_bit(MSG_FASTOPEN, "EOPNOTSUPP", "allow")
    p.label("seccomp")  # a second listener would be asked before the watcher (the kernel refuses it, too, so far)
    p.load(argument(1))
    p.if_any_bit(linux.SECCOMP_FILTER_FLAG_NEW_LISTENER, "EBUSY", "allow")
    p.label("ioctl")
    p.load(argument(1))
    for request in (TIOCSTI, TIOCLINUX, *SNAPSHOTS, *(FILE_FLAGS if kind == LANDLOCK else ())):
        p.if_equal(request, "EPERM")
    if kind == LANDLOCK:
        p.if_equal(TIOCGPTPEER, "watcher")
    p.give(ALLOW)
    p.label("umount2")
    p.load(argument(1))
    p.if_any_bit(linux.MNT_DETACH, "EPERM", "allow")
    p.label("open_tree")
    p.load(argument(2))
    p.if_any_bit(~OPEN_TREE_KNOWN & 0xFFFFFFFF, "EINVAL", "allow")
    p.label("fsmount")
    p.load(argument(1))
    p.if_any_bit(~FSMOUNT_KNOWN & 0xFFFFFFFF, "EINVAL", "allow")
    if kind == LANDLOCK:
        p.label("unshare")
        p.load(argument(0) + 4)
        p.if_equal(0, None, "EINVAL")
        p.load(argument(0))
        p.if_any_bit(~UNSHARE_KNOWN & 0xFFFFFFFF, "EINVAL")
        p.if_any_bit(NEW_NAMESPACES, "EPERM", "allow")
        p.label("clone")
        p.load(argument(0))
        p.if_any_bit(NEW_NAMESPACES & ~0x80, "EPERM", "allow")  # there it is of the signal at the end
        p.label("prlimit64")  # of others: the watcher knows which are the task's
        p.load(argument(0))
        p.if_equal(0, "allow")
        p.load(argument(2))
        p.if_equal(0, None, "watcher")
        p.load(argument(2) + 4)
        p.if_equal(0, "allow", "watcher")
        return
    p.label("unshare")
    p.load(argument(0) + 4)  # an unsigned long: nothing in its upper half means anything yet
    p.if_equal(0, None, "EINVAL")
    p.load(argument(0))
    p.if_any_bit(~UNSHARE_KNOWN & 0xFFFFFFFF, "EINVAL")
    p.if_any_bit(CLONE_NEWCGROUP, "EPERM", "allow")
    p.label("prlimit64")  # of init: a process that it runs as the same user could end it, and the task with it
    p.load(argument(0))
    p.if_equal(1, None, "allow")
    p.load(argument(2))
    p.if_equal(0, None, "EPERM")  # to look is fine
    p.load(argument(2) + 4)
    p.if_equal(0, "allow", "EPERM")
    p.label("clone")
    p.load(argument(0))
    p.if_any_bit(CLONE_NEWCGROUP, "EPERM", "allow")


def install(filter_bytes: bytes, *, listener: bool = False) -> int:
    """Put the filter on this process and all it starts; no_new_privs must be set. There is no way back.

    With `listener`, what it hands on is to be answered at the descriptor that is returned; 0 otherwise. When the last
    copy of that descriptor is closed, the calls fail with ENOSYS.

    Raises:
        OSError: when the kernel refuses it.
    """
    address, kept = linux.address_of(filter_bytes)
    # struct sock_fprog: unsigned short len, padding, pointer
    fprog = (len(filter_bytes) // 8).to_bytes(8, "little") + address.to_bytes(8, "little")
    wanted = linux.SECCOMP_FILTER_FLAG_NEW_LISTENER if listener else 0
    try:
        # A call that has been taken up is not begun again because of a signal: it may have been made already.
        killable = linux.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV if listener else 0
        return linux.call("seccomp", linux.SECCOMP_SET_MODE_FILTER, wanted | killable, fprog)
    except OSError as error:
        if not listener or error.errno != errno.EINVAL:
            raise
        return linux.call("seccomp", linux.SECCOMP_SET_MODE_FILTER, wanted, fprog)
    finally:
        del kept
