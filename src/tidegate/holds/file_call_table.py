"""The calls that change names and files, by name: how their arguments are laid out (file_calls.py makes them).

man pages: mkdirat(2), renameat2(2), fchmodat(2), utimensat(2), setxattr(2). A flag or a structure that is not known is
the kernel's to refuse; numbers are what the filter hands on, whole words of 64 bits.
"""

from __future__ import annotations

import errno
import os
import struct

from tidegate.holds import linux
from tidegate.holds.file_calls import AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, MOST_VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.callers import Caller
    from tidegate.holds.file_calls import FileCalls

    Act = Callable[[bytes, bool], None]

AT_FDCWD = linux.AT_FDCWD & 0xFFFFFFFF


def _chmod(mode: int) -> Act:
    def act(path: bytes, follow: bool) -> None:
        os.chmod(path, mode & 0o7777, follow_symlinks=follow)

    return act


def _chown(user: int, group: int) -> Act:
    def act(path: bytes, follow: bool) -> None:
        os.chown(path, _signed(user), _signed(group), follow_symlinks=follow)

    return act


def _signed(word: int) -> int:
    number: int = struct.unpack("i", struct.pack("I", word & 0xFFFFFFFF))[0]
    return number


def _times(wanted: bytes | None) -> Act:
    def act(path: bytes, follow: bool) -> None:
        linux.call("utimensat", linux.AT_FDCWD, path + b"\0", wanted, 0 if follow else AT_SYMLINK_NOFOLLOW)

    return act


def _utimens(caller: Caller, times: int) -> Act:
    """From struct timespec[2]."""
    return _times(caller.bytes(times, 32) if times else None)


def _utimes(caller: Caller, times: int) -> Act:
    """From struct timeval[2]."""
    if not times:
        return _times(None)
    seconds, more, seconds2, more2 = struct.unpack("=4q", caller.bytes(times, 32))
    return _times(struct.pack("=4q", seconds, more * 1000, seconds2, more2 * 1000))


def _utime(caller: Caller, times: int) -> Act:
    """From struct utimbuf."""
    if not times:
        return _times(None)
    access, change = struct.unpack("=2q", caller.bytes(times, 16))
    return _times(struct.pack("=4q", access, 0, change, 0))


def _setxattr(caller: Caller, name: int, value: int, size: int, flags: int) -> Act:
    if size > MOST_VALUE:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    key, data = caller.text(name), caller.bytes(value, size)

    def act(path: bytes, follow: bool) -> None:
        os.setxattr(path, key, data, flags & 0xFFFFFFFF, follow_symlinks=follow)

    return act


def _removexattr(caller: Caller, name: int) -> Act:
    key = caller.text(name)

    def act(path: bytes, follow: bool) -> None:
        os.removexattr(path, key, follow_symlinks=follow)

    return act


def _by_descriptor(files: FileCalls, caller: Caller, descriptor: int, act: Act) -> None:
    file = caller.take(descriptor & 0xFFFFFFFF)
    try:
        files.change_file(file, act)
    finally:
        os.close(file)


def _followed(flags: int) -> bool:
    return not flags & AT_SYMLINK_NOFOLLOW


FILE_CALLS: dict[str, Callable[..., object]] = {
    "mkdir": lambda f, c, path, mode, *_: f.mkdir(c, AT_FDCWD, path, mode),
    "mkdirat": lambda f, c, at, path, mode, *_: f.mkdir(c, at, path, mode),
    "mknod": lambda f, c, path, mode, *_: f.mknod(c, AT_FDCWD, path, mode),
    "mknodat": lambda f, c, at, path, mode, *_: f.mknod(c, at, path, mode),
    "unlink": lambda f, c, path, *_: f.unlink(c, AT_FDCWD, path, 0),
    "rmdir": lambda f, c, path, *_: f.unlink(c, AT_FDCWD, path, AT_REMOVEDIR),
    "unlinkat": lambda f, c, at, path, flags, *_: f.unlink(c, at, path, flags),
    "rename": lambda f, c, old, new, *_: f.rename(c, (AT_FDCWD, old), (AT_FDCWD, new), 0),
    "renameat": lambda f, c, at, old, to, new, *_: f.rename(c, (at, old), (to, new), 0),
    "renameat2": lambda f, c, at, old, to, new, flags, *_: f.rename(c, (at, old), (to, new), flags & 0xFFFFFFFF),
    "link": lambda f, c, old, new, *_: f.link(c, (AT_FDCWD, old), (AT_FDCWD, new), 0),
    "linkat": lambda f, c, at, old, to, new, flags, *_: f.link(c, (at, old), (to, new), flags),
    "symlink": lambda f, c, target, new, *_: f.symlink(c, target, AT_FDCWD, new),
    "symlinkat": lambda f, c, target, to, new, *_: f.symlink(c, target, to, new),
    "truncate": lambda f, c, path, size, *_: f.truncate(c, path, size),
    "chmod": lambda f, c, path, mode, *_: f.change(c, AT_FDCWD, path, _chmod(mode), follow=True),
    "fchmodat": lambda f, c, at, path, mode, *_: f.change(c, at, path, _chmod(mode), follow=True),
    "fchmodat2": lambda f, c, at, path, mode, flags, *_: f.change(c, at, path, _chmod(mode), follow=_followed(flags)),
    "fchmod": lambda f, c, file, mode, *_: _by_descriptor(f, c, file, _chmod(mode)),
    "chown": lambda f, c, path, user, group, *_: f.change(c, AT_FDCWD, path, _chown(user, group), follow=True),
    "lchown": lambda f, c, path, user, group, *_: f.change(c, AT_FDCWD, path, _chown(user, group), follow=False),
    "fchownat": lambda f, c, at, path, user, group, flags, *_: f.change(
        c, at, path, _chown(user, group), follow=_followed(flags)
    ),
    "fchown": lambda f, c, file, user, group, *_: _by_descriptor(f, c, file, _chown(user, group)),
    "utimensat": lambda f, c, at, path, times, flags, *_: f.change(
        c, at, path, _utimens(c, times), follow=_followed(flags)
    ),
    "futimesat": lambda f, c, at, path, times, *_: f.change(c, at, path, _utimes(c, times), follow=True),
    "utimes": lambda f, c, path, times, *_: f.change(c, AT_FDCWD, path, _utimes(c, times), follow=True),
    "utime": lambda f, c, path, times, *_: f.change(c, AT_FDCWD, path, _utime(c, times), follow=True),
    "setxattr": lambda f, c, path, *a: f.change(c, AT_FDCWD, path, _setxattr(c, *a[:4]), follow=True),
    "lsetxattr": lambda f, c, path, *a: f.change(c, AT_FDCWD, path, _setxattr(c, *a[:4]), follow=False),
    "fsetxattr": lambda f, c, file, *a: _by_descriptor(f, c, file, _setxattr(c, *a[:4])),
    "removexattr": lambda f, c, path, name, *_: f.change(c, AT_FDCWD, path, _removexattr(c, name), follow=True),
    "lremovexattr": lambda f, c, path, name, *_: f.change(c, AT_FDCWD, path, _removexattr(c, name), follow=False),
    "fremovexattr": lambda f, c, file, name, *_: _by_descriptor(f, c, file, _removexattr(c, name)),
}
