"""The kernel's files: /proc, /sys, /dev and ways to mount them anew."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from tidegate.doctor.escapes import needs
from tidegate.doctor.escapes.table import HELD, escape, named
from tidegate.doctor.escapes.tools import mount, nested, number, syscall, umount, unshare, wrong

if TYPE_CHECKING:
    from collections.abc import Callable


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
    named(_attempt, f"writing_{_name}", f"Open {_path} for writing.")
    escape("EROFS", "EACCES", "ENOENT", needs=needs.paths(_path))(_attempt)

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
    named(_attempt, f"device_{_name.replace('/', '_')}", f"/dev/{_name} is not there.")
    escape("ENOENT", needs=needs.paths(f"/dev/{_name}"))(_attempt)


@escape("EPERM")
def remounting_proc_sys() -> None:
    """Root of a namespace inside cannot make /proc/sys writable again."""
    nested()
    mount("", "/proc/sys", flags=0x20 | 0x1000)


@escape("EINVAL")
def unmounting_proc_sys() -> None:
    """Nor take the read-only mount away, here or in a namespace inside."""
    with contextlib.suppress(PermissionError):
        umount("/proc/sys")
        wrong("unmounted")
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
    """Nor control groups, of the new kind or the old, here or in a namespace inside."""
    with contextlib.suppress(PermissionError):
        mount("cgroup2", "/tmp", "cgroup2")
        wrong("mounted")
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
    """The machine's /tmp lies under ours, and stays there, here and in a namespace inside."""
    with contextlib.suppress(PermissionError):
        umount("/tmp")
        wrong("unmounted")
    nested()
    umount("/tmp")


def _first_writable(top: str) -> str:
    """The first file below that opens for writing. Nothing is written."""
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in ("self", "thread-self") and not name.isdigit()]
        for name in files:
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
            except OSError:
                continue
            return os.path.join(folder, name)
    return ""


@escape("EROFS")
def every_setting_of_the_kernel() -> None:
    """Not one file below /proc/sys can be opened for writing."""
    _none("/proc/sys")


@escape("EROFS")
def every_file_of_sysfs() -> None:
    """Nor one below /sys."""
    _none("/sys")


@escape("EROFS")
def every_other_file_of_proc() -> None:
    """Nor one of /proc beside the task's own processes."""
    _none("/proc")


def _none(top: str) -> None:
    found = _first_writable(top)
    if found:
        wrong(f"{found} can be written")
    raise OSError(errno.EROFS, "none")
