"""System calls that no filter would see the arguments of, other system call tables, and terminals."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.table import escape, named
from tidegate.doctor.escapes.tools import X86, mount, number, syscall, unshare

if TYPE_CHECKING:
    from collections.abc import Callable


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
    named(_attempt, _name, f"{_name} is not for a task.")
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
