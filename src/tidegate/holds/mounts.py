"""Mounts, by the new mount API (kernel 5.12): trees are cloned, changed while nobody sees them, then moved in.

Rules of the file: no policy here, only primitives; a path is never followed twice between look and use, because a
tree stays in the hands of a descriptor. Man pages: open_tree(2), move_mount(2), mount_setattr(2), fsopen(2).
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.holds import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

READ_ONLY = linux.MOUNT_ATTR_RDONLY
SAFE = linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV
INERT = SAFE | linux.MOUNT_ATTR_NOEXEC
_REAL = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_RESOLVE_NO_SYMLINKS = 4  # linux/openat2.h
# struct open_how: flags, mode, resolve, each 64 bits
_HOW = b"".join(value.to_bytes(8, "little") for value in (_REAL, 0, _RESOLVE_NO_SYMLINKS))
_NO_OPENAT2 = frozenset((errno.ENOSYS, errno.EPERM))  # some container engines' filters do not know it


def clone(path: str, *, recursive: bool = True) -> int:
    """A detached copy of the tree at `path`, as a descriptor. What is mounted below comes along if `recursive`."""
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC
    if recursive:
        flags |= linux.AT_RECURSIVE
    return linux.call("open_tree", linux.AT_FDCWD, linux.path(path), flags)


def open_real(path: str) -> int:
    """A descriptor (O_PATH) of what is at `path`, which leads through no symlink; it may be one itself.

    Another task could have put a symlink on the way since it was looked at.

    Raises:
        OSError: ENOTDIR where one was.
    """
    try:
        return linux.call("openat2", linux.AT_FDCWD, linux.path("/" + path), _HOW, len(_HOW))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        if error.errno not in _NO_OPENAT2:
            error.filename = path
            raise
    return _walked(path)


def _walked(path: str) -> int:
    """As `open_real`, one part after the other."""
    at = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        for name in path.split("/"):
            if name:
                below = os.open(name, _REAL, dir_fd=at)
                os.close(at)
                at = below
    except BaseException:
        os.close(at)
        raise
    return at


def clone_real(path: str) -> int:
    """As `clone`, of a path without symlinks.

    Raises:
        OSError: ELOOP or ENOTDIR where one was.
    """
    at = open_real(path)
    try:
        return _clone_at(at, path)
    finally:
        os.close(at)


def _clone_at(at: int, path: str) -> int:
    if stat.S_ISLNK(os.fstat(at).st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | linux.AT_RECURSIVE | linux.AT_EMPTY_PATH
    return linux.call("open_tree", at, b"\0", flags)


def attach(tree: int, path: str) -> None:
    """Put a detached tree on `path` and close its descriptor. A last symlink of `path` is not followed."""
    try:
        linux.call("move_mount", tree, b"\0", linux.AT_FDCWD, linux.path(path), linux.MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(tree)


def attach_real(tree: int, path: str) -> None:
    """As `attach`, at a path without symlinks; where the last part is one, it is covered itself.

    Raises:
        OSError: ENOTDIR where a part on the way is a symlink now.
    """
    try:
        at = open_real(path)
        try:
            _attach_at(tree, at)
        finally:
            os.close(at)
    finally:
        os.close(tree)


def _attach_at(tree: int, at: int) -> None:
    linux.call("move_mount", tree, b"\0", at, b"\0", linux.MOVE_MOUNT_F_EMPTY_PATH | linux.MOVE_MOUNT_T_EMPTY_PATH)


def set_attributes(
    where: str | int, attributes: int, *, recursive: bool = False, propagation: int = 0, clear: int = 0
) -> None:
    """Add attributes to the mount at a path, or to a detached tree; `clear` some, and set the propagation."""
    flags = linux.AT_RECURSIVE if recursive else 0
    if isinstance(where, int):
        at, name, flags = where, b"\0", flags | linux.AT_EMPTY_PATH
    else:
        at, name = linux.AT_FDCWD, linux.path(where)
    # struct mount_attr: attr_set, attr_clr, propagation, userns_fd, each 64 bits
    wanted = b"".join(value.to_bytes(8, "little") for value in (attributes, clear, propagation, 0))
    linux.call("mount_setattr", at, name, flags, wanted, len(wanted))


def new_file_system(kind: str, options: Iterable[tuple[str, str]] = (), attributes: int = INERT) -> int:
    """A new file system of this kind, not yet anywhere: a detached tree."""
    context = linux.call("fsopen", linux.path(kind), linux.FSOPEN_CLOEXEC)
    try:
        for key, value in options:
            linux.call("fsconfig", context, linux.FSCONFIG_SET_STRING, linux.path(key), linux.path(value), 0)
        linux.call("fsconfig", context, linux.FSCONFIG_CMD_CREATE, None, None, 0)
        return linux.call("fsmount", context, linux.FSMOUNT_CLOEXEC, attributes)
    except OSError as error:
        error.filename = kind
        raise
    finally:
        os.close(context)


def bind_read_only(path: str, *, recursive: bool = True) -> None:
    """Make what is at `path` read-only from here on, with what is mounted below."""
    tree = clone(path, recursive=recursive)
    set_attributes(tree, READ_ONLY, recursive=recursive)
    attach(tree, path)


def protect_real(path: str) -> None:
    """As `bind_read_only`, at a path without symlinks: what is cloned and what is covered are the same file.

    Raises:
        OSError: ELOOP or ENOTDIR where there is one now.
    """
    at = open_real(path)
    try:
        tree = _clone_at(at, path)
        try:
            set_attributes(tree, READ_ONLY, recursive=True)
            _attach_at(tree, at)
        finally:
            os.close(tree)
    finally:
        os.close(at)
