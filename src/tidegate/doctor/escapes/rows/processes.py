"""Processes that are not the task's: its init, the watcher; other users and devices."""

from __future__ import annotations

import errno
import os
import signal
import struct
import time

from tidegate.doctor.escapes.table import HELD, escape, neighbour
from tidegate.doctor.escapes.tools import number, syscall, wrong


@escape("EPERM", "EACCES")
def entering_inits_namespaces() -> None:
    """Setns to the namespaces of PID 1."""
    descriptor = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    syscall(number(308, 268), descriptor, 0)


@escape("EPERM")
def tracing_init() -> None:
    """Ptrace of PID 1, which was made of the front's memory."""
    syscall(number(101, 117), 0x4206, 1, 0, 0)  # PTRACE_SEIZE


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


@escape("EPERM")
def limiting_init() -> None:
    """Prlimit of PID 1: without processor time or memory it would end, and the task with it."""
    soft_and_hard = struct.pack("QQ", 1 << 40, 1 << 40)
    syscall(number(302, 261), 1, 2, soft_and_hard, 0)  # RLIMIT_DATA, high enough to do no harm


@neighbour()
def limits_of_our_own() -> None:
    """A process may look at any limit, and lower its own."""
    import resource

    resource.prlimit(1, resource.RLIMIT_NOFILE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))


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
