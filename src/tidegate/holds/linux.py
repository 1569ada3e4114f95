"""The one door to the kernel for calls that Python does not offer.

Rules of the file: every call goes through `call`, which turns a failure into OSError with the name of the
operation. Only raw system calls, no libc wrappers, so that the C library's age does not matter. The private module
`_ctypes` is used as it is: `ctypes` itself costs 3-5 ms at start and none of what it adds is needed.

Man pages: syscall(2), mount_setattr(2), prctl(2). Constants are from the kernel's uapi headers, named beside them;
tests/unit/holds/test_linux.py compares them where headers are installed.
"""

from __future__ import annotations

import _ctypes
import os

from tidegate.holds.syscalls import TABLES

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

# linux/mount.h
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x04
MOVE_MOUNT_T_EMPTY_PATH = 0x40
FSOPEN_CLOEXEC = 1
FSMOUNT_CLOEXEC = 1
FSCONFIG_SET_STRING = 1
FSCONFIG_CMD_CREATE = 6
MOUNT_ATTR_RDONLY = 0x01
MOUNT_ATTR_NOSUID = 0x02
MOUNT_ATTR_NODEV = 0x04
MOUNT_ATTR_NOEXEC = 0x08
MS_PRIVATE = 0x40000
MNT_DETACH = 2

# linux/fcntl.h
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000

# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

# linux/seccomp.h
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 0x20  # Linux 5.19

ARGUMENTS = 6


class _Word(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 (see the head comment)
    """An argument: a number of the size of a pointer, or the address of some bytes."""

    _type_ = "P"


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
    """What syscall(2) returns."""

    _type_ = "l"


class _Syscall(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long
    _argtypes_ = (_Word,) * (ARGUMENTS + 1)


_process = _ctypes.dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]  # None: what is loaded already
_syscall = _Syscall(_ctypes.dlsym(_process, "syscall"))

MACHINE = os.uname().machine
ARCHITECTURE, NUMBERS = TABLES.get(MACHINE, (0, {}))


def supported() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return bool(NUMBERS)


def call(name: str, *arguments: int | bytes | None) -> int:
    """Make one system call and return what it returns.

    Bytes are passed by address and must end in a zero byte where the kernel reads a string (`path` adds it).

    Raises:
        OSError: with the errno and the name of the call.
    """
    number = NUMBERS.get(name)
    if number is None:
        raise OSError(38, os.strerror(38), name)  # ENOSYS
    result: int = _syscall(number, *arguments, *(0,) * (ARGUMENTS - len(arguments)))
    if result == -1:
        code = _ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def outcome(name: str, *arguments: int | bytes | None) -> int:
    """Make one system call, as `call`; 0 or the errno, where that is an answer like any other."""
    number = NUMBERS.get(name)
    if number is None:
        return 38  # ENOSYS
    return _ctypes.get_errno() if _syscall(number, *arguments, *(0,) * (ARGUMENTS - len(arguments))) == -1 else 0


def path(text: str) -> bytes:
    """The bytes of a path as the kernel takes them."""
    return os.fsencode(text) + b"\0"


def address_of(data: bytes) -> tuple[int, object]:
    """Copy some bytes to memory that stays; the address, and what must be kept alive as long as it is used."""

    class Memory(_ctypes.Array):  # type: ignore[type-arg]
        _type_ = _Byte
        _length_ = len(data)

    kept = Memory.from_buffer_copy(data)
    return _ctypes.addressof(kept), kept


class _Byte(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
    _type_ = "B"


def unshare(flags: int) -> None:
    """Leave the namespaces that `flags` names for new ones (unshare(2))."""
    call("unshare", flags)


def prctl(option: int, *arguments: int | bytes) -> int:
    """Set or read something of this process (prctl(2)); all unused arguments are 0, as it wants them."""
    return call("prctl", option, *arguments)
