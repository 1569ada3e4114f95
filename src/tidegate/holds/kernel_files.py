"""/proc and /sys as a task sees them: its own processes, and nothing of the machine that can be written.

A task run as root has user id 0 outside, too, and the files of /proc/sys and /sys ask for that id and not for a
capability. So they are read-only by mount. A namespace inside cannot undo it: these mounts are locked there, and a
fresh /proc or writable /sys is refused while they are in the way (mount_namespaces(7), "Restrictions").

Rules of the file: of the top of /proc, folders and writable files are read-only unless they are processes; what is
not listed anywhere and not writable stays. All other mounts of such kinds are found, wherever they are.
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import mounts
from tidegate.holds.mountinfo import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.masks import Masks
    from tidegate.holds.mountinfo import Mount

PROC_MASKED = frozenset(
    {
        "acpi",
        "asound",
        "kcore",
        "keys",
        "kmsg",
        "kpagecgroup",
        "kpagecount",
        "kpageflags",
        "latency_stats",
        "sched_debug",
        "scsi",
        "timer_list",
        "vmcore",
    }
)
"""What tells of the whole machine, and is of no use to a task."""

SYS_MASKED = (
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/fs/pstore",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
)

INTERFACES = frozenset(
    {
        "binder",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "nfsd",
        "pstore",
        "resctrl",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "smackfs",
        "sysfs",
        "tracefs",
        "xenfs",
    }
)
"""Kinds of file systems that are doors into the kernel: read-only wherever one is mounted."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EINVAL)


def make_proc(masks: Masks) -> None:
    """Mount a /proc for this PID namespace and close what is not the task's own."""
    mounts.attach(mounts.new_file_system("proc"), "/proc")
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.is_symlink() or entry.name.isdigit():
                continue
            folder = entry.is_dir(follow_symlinks=False)
            if entry.name in PROC_MASKED:
                masks.cover(entry.path, folder=folder)
            elif folder or entry.stat(follow_symlinks=False).st_mode & 0o222:
                mounts.bind_read_only(entry.path, recursive=False)


def close_sys(masks: Masks) -> None:
    """Make /sys and all that is mounted in it (cgroups too) read-only, and mask what is not for a task."""
    if not os.path.isdir("/sys"):
        return
    try:
        mounts.set_attributes("/sys", mounts.READ_ONLY | mounts.INERT, recursive=True)
    except OSError as error:
        if error.errno != errno.EINVAL:  # /sys is an empty folder of the root, nothing is mounted there
            raise
    for path in SYS_MASKED:
        try:
            masks.cover(path, folder=True)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise


def close_elsewhere(table: tuple[Mount, ...], masks: Masks) -> None:
    """Close doors into the kernel that are mounted elsewhere: in chroots, containers' roots, test trees.

    A mount that no path leads to any more (something lies over it, or this user may not go there) is left alone.
    """
    for mount in table:
        if any(is_within(mount.point, folder) for folder in ("/proc", "/sys", "/dev")):
            continue
        try:
            if mount.kind == "proc":
                masks.cover(mount.point, folder=mount.root == "/" or os.path.isdir(mount.point))
            elif mount.kind in INTERFACES:
                mounts.set_attributes(mount.point, mounts.READ_ONLY | mounts.INERT)
        except OSError as error:
            if error.errno not in _GONE:
                raise
