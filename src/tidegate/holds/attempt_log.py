"""Where the kernel tells of what was turned away on this machine's own network: nfnetlink_log, or its own log (JRN-3).

    NFLOG    a socket of netlink that a rule's group leads to: of this network namespace, with the user of each packet
    KERNEL   /dev/kmsg, where a rule without a group writes: only in the machine's first network namespace, and shared
             with everything that the kernel has to say

Rules of the file: found out by opening, in this order. Where there is neither, nothing is weaker but the record: what
goes around the gate is turned away and counted all the same, and whoever asks is told so. dev-kmsg in the kernel's
Documentation/ABI/testing; linux/netfilter/nfnetlink_log.h.
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import netfilter

NFLOG, KERNEL, NEITHER = "nflog", "kernel", ""
KMSG = "/dev/kmsg"
_OTHER_GROUPS = 1 << 15  # from here on; nobody is likely to have one of them
FIRST_NETWORK = "net:[4026531833]"
"""The machine's first network namespace, from Linux 6.18 on (NET_NS_INIT_INO of linux/nsfs.h); no other ever has it."""
FIRST_PIDS = "pid:[4026531836]"
"""The machine's first PID namespace (PID_NS_INIT_INO of linux/nsfs.h): what /proc/1 is there, is the machine's own."""


def kind(group: int) -> str:
    """Which of them there is here. Another that listens to this group now is as good as none: the kernel has nflog."""
    for one in (group, _OTHER_GROUPS + os.getpid() % _OTHER_GROUPS):
        try:
            netfilter.open_log(one).close()
        except OSError:
            continue  # the kernel says EPERM for a group that another has, and for who may have none
        return NFLOG
    return _kernels_or_neither()


def _kernels_or_neither() -> str:
    try:
        os.close(open_kernel_log())
    except OSError:
        return NEITHER
    return KERNEL


def open_attempts(group: int) -> tuple[str, int]:
    """Open the one that there is, for a group that the rules name: which, and its descriptor; -1 where there is none.

    The rules have to log to the same one.

    Raises:
        OSError: EBUSY where another reads the group; or the log was there a moment ago.
    """
    found = kind(group)
    if found == NFLOG:
        try:
            return found, netfilter.open_log(group).detach()
        except OSError as error:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), f"nflog group {group}") from error
    return found, open_kernel_log() if found == KERNEL else -1


def open_kernel_log() -> int:
    """Open the kernel's log behind its last line.

    Raises:
        OSError: where it cannot be read, or the rules of this network namespace do not write there.
    """
    if not _is_told_there():
        raise PermissionError(1, "rules of this network namespace do not write there", KMSG)
    fd = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.lseek(fd, 0, os.SEEK_END)
    except OSError:
        os.close(fd)
        raise
    return fd


def _is_told_there() -> bool:
    try:
        own = os.readlink("/proc/self/ns/net")
        first = os.readlink("/proc/self/ns/pid") == FIRST_PIDS
        return own == FIRST_NETWORK or (first and own == os.readlink("/proc/1/ns/net"))
    except OSError:
        return False
