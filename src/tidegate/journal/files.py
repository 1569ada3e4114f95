"""A file of the journal opened to be read: a file, and nothing that stands in its place.

A pipe would hold up whoever reads it for ever, a device could be anything, and a link leads to what someone else chose.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NoFileError(OSError):
    """What stands there is no regular file; `strerror` says what it is."""

    def __init__(self, path: str, mode: int) -> None:
        what = _KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EINVAL, f"{what} stands in the place of a file", path)


def open_regular(path: str) -> BufferedReader:
    """Open a regular file to be read. Never waits.

    Raises:
        NoFileError: when it is none, a symbolic link included.
        OSError: when it cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        mode = os.lstat(path).st_mode
        if error.errno == errno.ENOENT or stat.S_ISREG(mode):
            raise
        raise NoFileError(path, mode) from None  # a link, or a socket, which cannot be opened at all
    try:
        require_regular(fd, path)
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def require_regular(fd: int, path: str) -> None:
    """Check what was opened.

    Raises:
        NoFileError: when it is no regular file.
    """
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        raise NoFileError(path, mode)
