"""Who asks for a change of a file, and which folder and name it means (of the hold `landlock`, whose calls these are).

A path is opened up to its last name, once, as the caller would: from its folder or its descriptor, with its own
/proc/self. What the kernel calls the folder that was found is what is judged; everything after that happens in it.
path_resolution(7).
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import linux
from tidegate.holds.on_behalf import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATH_MAX, PAGE = 4096, 4096
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_OWN_PROC = (b"/proc/self", b"/proc/thread-self", b"/dev/fd", b"/dev/std")


class GoesOnError(Exception):
    """It is the kernel's to decide, which knows the task's own rules."""


class Caller:
    """Who asks: what it means by a path, and what is in its memory. Everything is read once."""

    def __init__(self, thread: int, take: Callable[[int], int], read: Callable[[int, int], bytes]) -> None:
        self.thread = thread
        self.take = take  # a copy of one of its descriptors
        self._read = read

    def text(self, address: int) -> bytes:
        """The path at this address.

        Raises:
            OSError: EFAULT or ENAMETOOLONG.
        """
        found = b""
        while len(found) < PATH_MAX:
            part = self._read(address + len(found), PAGE - (address + len(found)) % PAGE)
            head, end, _ = part.partition(b"\0")
            found += head
            if end:
                return found
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    def bytes(self, address: int, size: int) -> bytes:
        """So many bytes at this address."""
        found = b""
        while len(found) < size:
            room = PAGE - (address + len(found)) % PAGE
            found += self._read(address + len(found), min(room, size - len(found)))
        return found

    def umask(self) -> int:
        """The bits that new names do not get."""
        with open(f"/proc/{self.thread}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
        return 0o077


class Place:
    """A name in a folder that is held open. `path` is what the kernel calls it."""

    def __init__(self, folder: int, name: bytes, path: str) -> None:
        self.folder = folder
        self.name = name
        self.path = path

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self.folder)

    @property
    def there(self) -> bytes:
        """A path by which this process finds it."""
        return b"/proc/self/fd/%d/%b" % (self.folder, self.name)


def place_of(caller: Caller, dirfd: int, path: bytes) -> Place:
    """Where a path leads up to its last name.

    Raises:
        GoesOnError: where there is no such name (the path ends in `.`, or is empty), or the kernel has none for it.
        OSError: as the kernel says of the way.
    """
    trimmed = path.rstrip(b"/")
    above, _, name = trimmed.rpartition(b"/")
    if not name or name in (b".", b".."):
        raise GoesOnError
    if not above:
        above = b"/" if trimmed.startswith(b"/") else b"."
    elif trimmed.startswith(_OWN_PROC):
        own = b"/proc/%d" % field(caller.thread, "Tgid")[0]
        above = above.replace(b"/dev/fd", own + b"/fd", 1) if above.startswith(b"/dev/fd") else above
        above = above.replace(b"/proc/self", own, 1).replace(b"/proc/thread-self", own, 1)
    if above.startswith(b"/"):
        folder = os.open(above, FOLDER)
    else:
        base = base_of(caller, dirfd)
        try:
            folder = os.open(above, FOLDER, dir_fd=base)
        finally:
            os.close(base)
    try:
        where = name_of(folder)
    except BaseException:
        os.close(folder)
        raise
    return Place(folder, name, os.path.join(where, os.fsdecode(name)))


def base_of(caller: Caller, dirfd: int) -> int:
    """A descriptor of the folder that a call names (AT_FDCWD: the caller's own), from which its path is looked up."""
    number = dirfd & 0xFFFFFFFF
    if number == linux.AT_FDCWD & 0xFFFFFFFF:
        return os.open(f"/proc/{caller.thread}/cwd", FOLDER)
    return caller.take(number)


def name_of(descriptor: int) -> str:
    """What the kernel calls what this descriptor leads to.

    Raises:
        GoesOnError: where it has no name, any more or at all.
    """
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if not path.startswith("/") or os.fstat(descriptor).st_nlink == 0:
        raise GoesOnError
    return path


class Umask:
    """While a name is made, this process has the caller's umask."""

    def __init__(self, caller: Caller) -> None:
        self._before = os.umask(caller.umask())

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        os.umask(self._before)
