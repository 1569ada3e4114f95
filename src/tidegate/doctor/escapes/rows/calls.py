"""System calls that no filter would see the arguments of, other system call tables, and terminals."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes import needs
from tidegate.doctor.escapes.table import escape, named
from tidegate.doctor.escapes.tools import X86, mount, number, syscall, unshare

if TYPE_CHECKING:
    from collections.abc import Callable


def _int_80() -> None:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@escape("SIGSYS", only=X86, needs=needs.in_a_child(_int_80, "this kernel has no 32-bit calls"))
def a_32_bit_call() -> None:
    """Int 0x80: the other architecture's numbers."""
    _int_80()


@escape("ENOSYS", only=X86, needs=needs.calls(0x40000000 | 39))
def an_x32_call() -> None:
    """The x32 bit: getpid by another number."""
    syscall(0x40000000 | 39)


@escape("ENOSYS", only=X86, needs=needs.calls(0x40000000 | 39))
def an_x32_socket() -> None:
    """The same for a socket of a family that is refused."""
    os.close(syscall(0x40000000 | 41, 40, 1, 0))


@escape("ENOSYS", needs=needs.calls(435, bytes(88), 0))
def clone3() -> None:
    """Its flags are behind a pointer, so the whole call is refused; C libraries use clone."""
    syscall(435, bytes(88), 0)


# Arguments that do no harm where the call is let through: the kernel looks at the right to it first, and then at these.
_ANY = (b"/\0", 0, b"\0", 0, 0)
_CALLS: tuple[tuple[str, int, int, tuple[Any, ...]], ...] = (
    ("bpf", 321, 280, _ANY),
    ("perf_event_open", 298, 241, _ANY),
    ("userfaultfd", 323, 282, (1,)),  # UFFD_USER_MODE_ONLY
    ("keyctl", 250, 219, (0, -3, 0)),
    ("add_key", 248, 217, _ANY),
    ("request_key", 249, 218, _ANY),
    ("kexec_load", 246, 104, (0, 0, 0, 0x8000)),  # no such flag
    ("init_module", 175, 105, (0, 0, b"\0")),
    ("finit_module", 313, 273, (-1, b"\0", 0)),
    ("delete_module", 176, 106, (b"tidegate-none\0", 0)),
    ("open_by_handle_at", 304, 265, (-100, struct.pack("II", 8, 1) + bytes(8), 0)),
    ("kernel_log", 103, 116, (10, 0, 0)),  # SYSLOG_ACTION_SIZE_BUFFER
    ("pivot_root", 155, 41, _ANY),
    ("settime", 164, 170, (0, struct.pack("ii", 99999, 0))),  # no such time zone
    ("reboot", 169, 142, (0, 0, 0, 0)),  # not the magic numbers
    ("swapon", 167, 224, (b"/\0", 0)),
    ("sethostname", 170, 161, (os.uname().nodename.encode(), len(os.uname().nodename))),
    ("chroot", 161, 51, (b"/\0",)),
)


_MAY_LACK = {"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "kexec_load", "init_module"}


def _call_of(x86: int, arm: int, arguments: tuple[Any, ...]) -> Callable[[], object]:
    def attempt() -> None:
        syscall(number(x86, arm), *arguments)

    return attempt


for _name, _x86, _arm, _arguments in _CALLS:
    _attempt = _call_of(_x86, _arm, _arguments)
    named(_attempt, _name, f"{_name} is not for a task.")
    escape("EPERM", needs=needs.calls(number(_x86, _arm), *_arguments) if _name in _MAY_LACK else None)(_attempt)


@escape("EPERM")
def mounting_at_all() -> None:
    """In the task's own namespaces there is no right to mount."""
    mount("tmpfs", "/tmp", "tmpfs")


@escape("EPERM")
def control_group_namespace() -> None:
    """A namespace for control groups would bring writable ones."""
    unshare(0x02000000 | 0x10000000)


def _a_flag_of_namespaces() -> None:
    unshare(0x00100000)


def _a_flag_of_trees() -> None:
    syscall(428, -100, b"/\0", 2)


_NEWER = "this kernel knows no such flag itself"


@escape("EINVAL", needs=needs.in_a_child(_a_flag_of_namespaces, _NEWER))
def unknown_namespace_flag() -> None:
    """A flag that a newer kernel may know, such as an empty mount namespace."""
    _a_flag_of_namespaces()


@escape("EINVAL", needs=needs.in_a_child(_a_flag_of_trees, _NEWER))
def mount_namespace_of_a_part() -> None:
    """open_tree with a flag that is not known yet."""
    _a_flag_of_trees()


def _terminal() -> int:
    """A terminal that is this process's own: the kernel lets nobody type into another."""
    os.setsid()
    _master, slave = os.openpty()
    fcntl.ioctl(slave, 0x540E, 0)  # TIOCSCTTY
    return slave


@escape("EPERM")
def typing_into_the_terminal() -> None:
    """TIOCSTI puts characters into a terminal's input."""
    fcntl.ioctl(_terminal(), 0x5412, b"x")


@escape("EPERM")
def typing_with_the_upper_half_set() -> None:
    """TIOCSTI again, with bits that the kernel does not look at."""
    syscall(number(16, 29), _terminal(), 0x100005412, b"x")


@escape("EPERM")
def pasting_on_the_console() -> None:
    """TIOCLINUX pastes a selection on a console."""
    _master, slave = os.openpty()
    fcntl.ioctl(slave, 0x541C, b"\2")
