"""Where a path really leads, as the kernel says: three system calls in place of one for each part of it.

A start asks this of some two hundred paths. What is not there, and what has no name (a pipe behind /dev/stdin, a file
that was removed), is left to os.path.realpath, which follows links itself and answers in any case.
"""

from __future__ import annotations

import os

_REMOVED = " (deleted)"  # proc_pid_fd(5)
_LOOK = os.O_PATH | os.O_CLOEXEC


def real_path(path: str) -> str:
    """Return what os.path.realpath returns."""
    return found_path(path) or os.path.realpath(path)


def found_path(path: str) -> str:
    """Return the real path of what is there, '' where nothing is that this user can find."""
    try:
        fd = os.open(path, _LOOK)
    except OSError:
        return os.path.realpath(path) if os.path.exists(path) else ""
    try:
        found = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # no /proc here
        found = ""
    finally:
        os.close(fd)
    return found if found[:1] == "/" and not found.endswith(_REMOVED) else os.path.realpath(path)
