"""Changes of names and files that a task of the hold `landlock` asks for, made for it where it may make them (HLD-15).

Landlock gives whole folders, so a folder in which something is protected (a workspace with its .git) cannot be given.
What is to change in such a one arrives here. The path is opened up to its last name, and the kernel says which folder
that is; where the levels (carve.py) let the task write there, the call is made *here*, on that folder and that name.
Nothing is looked up twice, a last symlink is never followed by the kernel, and no level ever rises: whatever the
caller changes meanwhile leads to another place where it may write, or nowhere (callers.py).

What is not to be written by the levels goes on to the kernel, which refuses it by Landlock. But modes, owners, times
and attributes are not Landlock's affair: those calls are made here or refused here.

Rules of the file: errors are the kernel's own, by OSError; GoesOnError where the kernel is to decide. openat(2).
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.holds import linux, unix_files
from tidegate.holds.callers import FOLDER, GoesOnError, Place, Umask, base_of, name_of, place_of
from tidegate.holds.carve import NOTHING, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.callers import Caller
    from tidegate.holds.carve import Levels

AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = 0x100, 0x200, 0x400, 0x1000
RENAME_EXCHANGE, RENAME_WHITEOUT = 2, 4
MOST_LINKS = 40
MOST_VALUE = 65536  # XATTR_SIZE_MAX


class FileCalls:
    """Makes the calls of one task, by its levels."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels

    def may(self, path: str) -> bool:
        """Whether the task may write at this place."""
        return self._levels.at(path) == WRITE

    def _may_move(self, path: str) -> bool:
        return self._levels.lowest(path) == WRITE

    def _writable(self, caller: Caller, dirfd: int, address: int, *, whole: bool = False) -> Place:
        place = place_of(caller, dirfd, caller.text(address))
        if not (self._may_move if whole else self.may)(place.path):
            place.close()
            raise GoesOnError
        return place

    # --- names

    def mkdir(self, caller: Caller, dirfd: int, path: int, mode: int) -> None:
        """As mkdirat(2)."""
        place = self._writable(caller, dirfd, path)
        try:
            with Umask(caller):
                os.mkdir(place.name, mode & 0o7777, dir_fd=place.folder)
        finally:
            place.close()

    def mknod(self, caller: Caller, dirfd: int, path: int, mode: int) -> None:
        """As mknodat(2), of files and pipes; what else there is goes on and is refused."""
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFIFO):
            raise GoesOnError
        place = self._writable(caller, dirfd, path)
        try:
            with Umask(caller):
                os.mknod(place.name, mode & 0o177777, 0, dir_fd=place.folder)
        finally:
            place.close()

    def unlink(self, caller: Caller, dirfd: int, path: int, flags: int) -> None:
        """As unlinkat(2)."""
        place = self._writable(caller, dirfd, path, whole=True)
        try:
            (os.rmdir if flags & AT_REMOVEDIR else os.unlink)(place.name, dir_fd=place.folder)
        finally:
            place.close()

    def rename(self, caller: Caller, old: tuple[int, int], new: tuple[int, int], flags: int) -> None:
        """As renameat2(2)."""
        if flags & RENAME_WHITEOUT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        one = self._writable(caller, *old, whole=True)
        try:
            other = self._writable(caller, *new, whole=True)
            try:
                words = one.folder, one.name + b"\0", other.folder, other.name + b"\0", flags
                linux.call("renameat2", *words)
            finally:
                other.close()
        finally:
            one.close()

    def link(self, caller: Caller, old: tuple[int, int], new: tuple[int, int], flags: int) -> None:
        """As linkat(2), of a name; what a descriptor alone leads to goes on."""
        if flags & AT_EMPTY_PATH:
            raise GoesOnError
        one = self._followed(caller, *old) if flags & AT_SYMLINK_FOLLOW else self._writable(caller, *old)
        try:
            other = self._writable(caller, *new)
            try:
                os.link(one.name, other.name, src_dir_fd=one.folder, dst_dir_fd=other.folder, follow_symlinks=False)
            finally:
                other.close()
        finally:
            one.close()

    def symlink(self, caller: Caller, target: int, dirfd: int, path: int) -> None:
        """As symlinkat(2)."""
        what = caller.text(target)
        place = self._writable(caller, dirfd, path)
        try:
            os.symlink(what, place.name, dir_fd=place.folder)
        finally:
            place.close()

    def bind(self, caller: Caller, path: bytes, wire: int) -> tuple[tuple[int, int], int]:
        """Give a unix socket of the caller's a path: which file came to be, and a descriptor of it.

        Raises:
            GoesOnError: where the task may not write, or the name is another's by now. Nothing goes on to the kernel
                here: it would look the path up again.
        """
        place = place_of(caller, linux.AT_FDCWD, path)
        try:
            if not self.may(place.path):
                raise GoesOnError
            if b"/" not in path:
                unix_files.bind_in(wire, path, place.folder, caller.umask())
            elif self._levels.lowest(os.path.dirname(place.path)) == NOTHING:
                raise GoesOnError  # led astray, the kernel could make it in what is hidden there
            else:
                start = os.open(f"/proc/{caller.thread}/cwd", FOLDER)
                try:
                    unix_files.bind_within(wire, path, place.folder, start, caller.umask())
                finally:
                    os.close(start)
            file = os.open(place.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
        finally:
            place.close()
        found = os.fstat(file)
        if not unix_files.is_file(found, unix_files.file_of(wire)):
            os.close(file)
            raise GoesOnError
        return (found.st_dev, found.st_ino), file

    # --- contents

    def open(self, caller: Caller, dirfd: int, path: int, flags: int, mode: int) -> int:
        """Open a file to be written as openat(2) does; our descriptor of it.

        What is no plain file goes on: opening it may wait, or mean something.
        """
        text = caller.text(path)
        if flags & os.O_PATH:
            raise GoesOnError  # it opens nothing
        if flags & 0o20000000:  # __O_TMPFILE: a file without a name, in this folder
            return self._open_nameless(caller, dirfd, text, flags, mode)
        for _ in range(MOST_LINKS):
            place = place_of(caller, dirfd, text)
            try:
                found = _lstat(place)
                if found is not None and stat.S_ISLNK(found.st_mode) and not flags & (os.O_NOFOLLOW | os.O_EXCL):
                    target = os.readlink(place.name, dir_fd=place.folder)
                    text = (
                        target if target.startswith(b"/") else os.fsencode(os.path.dirname(place.path)) + b"/" + target
                    )
                    continue
                if not self.may(place.path) or (found is not None and not _plain(found.st_mode)):
                    raise GoesOnError
                if text.endswith(b"/"):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                with Umask(caller):
                    made = os.open(
                        place.name,
                        flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
                        mode & 0o7777,
                        dir_fd=place.folder,
                    )
                if not stat.S_ISREG(os.fstat(made).st_mode):
                    os.close(made)
                    raise GoesOnError
                os.set_blocking(made, bool(not flags & os.O_NONBLOCK))
                return made
            finally:
                place.close()
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _open_nameless(self, caller: Caller, dirfd: int, text: bytes, flags: int, mode: int) -> int:
        folder = self._opened(caller, dirfd, text, follow=True)
        try:
            if not self.may(name_of(folder)):
                raise GoesOnError
            with Umask(caller):
                return os.open(f"/proc/self/fd/{folder}", flags | os.O_CLOEXEC, mode & 0o7777)
        finally:
            os.close(folder)

    def truncate(self, caller: Caller, path: int, size: int) -> None:
        """Give a file this size."""
        made = self.open(caller, linux.AT_FDCWD, path, os.O_WRONLY, 0)
        try:
            os.ftruncate(made, size)
        finally:
            os.close(made)

    # --- what Landlock does not judge: here or not at all

    def change(
        self, caller: Caller, dirfd: int, path: int, act: Callable[[bytes, bool], object], *, follow: bool
    ) -> None:
        """Act on the file that a path (or, where it is 0 or empty, the descriptor alone) means: modes, owners, times.

        Raises:
            OSError: EACCES where the task may not write there.
        """
        text = caller.text(path) if path else b""
        try:
            if text and not follow:
                self._change_name(caller, dirfd, text, act)
                return
            file = self._opened(caller, dirfd, text, follow=True)
        except GoesOnError:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
        try:
            self.change_file(file, act)
        finally:
            os.close(file)

    def change_file(self, file: int, act: Callable[[bytes, bool], object]) -> None:
        """Act on what a descriptor of ours leads to. What has no name is the task's: a pipe, memory, a removed file.

        Raises:
            OSError: EACCES where the task may not write there.
        """
        try:
            path = name_of(file)
        except GoesOnError:
            path = ""
        if path and not self.may(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        act(b"/proc/self/fd/%d" % file, True)

    def _change_name(self, caller: Caller, dirfd: int, text: bytes, act: Callable[[bytes, bool], object]) -> None:
        place = place_of(caller, dirfd, text)
        try:
            if not self.may(place.path):
                raise GoesOnError
            act(place.there, False)
        finally:
            place.close()

    def _opened(self, caller: Caller, dirfd: int, text: bytes, *, follow: bool) -> int:
        """A descriptor of what a path means, which gives no right but to know it."""
        if not text:
            return base_of(caller, dirfd)
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        try:
            place = place_of(caller, dirfd, text)
        except GoesOnError:  # `.`, `/`, `x/..`
            if text.startswith(b"/"):
                return os.open(text, flags)
            base = base_of(caller, dirfd)
            try:
                return os.open(text, flags, dir_fd=base)
            finally:
                os.close(base)
        try:
            return os.open(place.name, flags, dir_fd=place.folder)
        finally:
            place.close()

    def _followed(self, caller: Caller, dirfd: int, path: int) -> Place:
        """The place of what a path leads to in the end; what has no name goes on."""
        file = self._opened(caller, dirfd, caller.text(path), follow=True)
        try:
            real = name_of(file)
        finally:
            os.close(file)
        if not self.may(real):
            raise GoesOnError
        above, _, name = real.rpartition("/")
        folder = os.open(above or "/", FOLDER | os.O_NOFOLLOW)
        if os.readlink(f"/proc/self/fd/{folder}") != (above or "/"):
            os.close(folder)
            raise GoesOnError
        return Place(folder, os.fsencode(name), real)


def _lstat(place: Place) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _plain(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
