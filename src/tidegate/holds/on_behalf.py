"""What the watcher does with the kernel for a caller: connect without waiting, read its numbers, be woken at once.

Small and without state; who may do what is judged in watcher.py. connect(2), proc_pid_status(5), seccomp_unotify(2).
"""

from __future__ import annotations

import errno
import fcntl
import os

from tidegate.holds import linux

NOTIF_SET_FLAGS, SYNC_WAKE_UP = 0x40082104, 1  # linux/seccomp.h
NOT_YET = (errno.EINPROGRESS, errno.EALREADY)


class RefusedError(Exception):
    """The call fails with this errno."""

    def __init__(self, code: int) -> None:
        self.code = code


def attempt(wire: int, address: bytes, *, unix: bool) -> int:
    """Connect without waiting, whatever the socket says; 0 or the errno."""
    flags = fcntl.fcntl(wire, fcntl.F_GETFL)
    waits = not flags & os.O_NONBLOCK
    if waits:
        fcntl.fcntl(wire, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        code = _connect(wire, address)
        if waits and not unix and code in NOT_YET:
            code = _connect(wire, address)  # on loopback it is settled by now
        return code
    finally:
        if waits:
            fcntl.fcntl(wire, fcntl.F_SETFL, flags)


def _connect(wire: int, address: bytes) -> int:
    try:
        linux.call("connect", wire, address, len(address))
    except OSError as error:
        return error.errno or errno.EPERM
    return 0


def field(thread: int, name: str) -> list[int]:
    """The numbers of one line of a process's status."""
    with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name + ":"):
                return [int(word) for word in line.split()[1:]]
    raise RefusedError(errno.ESRCH)


def answer_at_once(listener: int) -> None:
    """Who asks waits for us and we for who asks: let both run on one processor, where the kernel can (Linux 6.6)."""
    try:
        fcntl.ioctl(listener, NOTIF_SET_FLAGS, SYNC_WAKE_UP)
    except OSError:
        return


def raise_descriptor_limit() -> None:
    """Let this process hold as many descriptors as it may."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
