"""Landlock: what a process gives up by itself, for good, with no namespace and no right of root (landlock(7)).

The hold `open` takes one thing from it: abstract unix sockets of the machine stay out of reach. The hold `landlock` is
made of it. A ruleset names what it handles, and each rule gives some of that back: to a file, or a folder with all
below it, by the inode and not by the name; to a TCP port on whatever address. What no rule gives is refused with
EACCES, and nothing can be taken from below a folder that was given (carve.py lives with that).

Scoping (signals, abstract names) needs Linux 6.12 (ABI 6). Rules of the file: primitives only, no policy.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.holds import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# linux/landlock.h
LANDLOCK_CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH, RULE_NET_PORT = 1, 2
SCOPE_ABSTRACT_UNIX_SOCKET, SCOPE_SIGNAL = 1, 2
SCOPE_ABI = 6
NET_BIND_TCP, NET_CONNECT_TCP = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = 1, 2, 4, 8, 16, 32
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 64, 128, 256, 512, 1024, 2048
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 4096, 8192, 16384, 32768
EVERY_FILE_RIGHT = (1 << 16) - 1  # ABI 5 and later, up to 7

READ = EXECUTE | READ_FILE | READ_DIR
CHANGE = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV
_OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP)


def abi() -> int:
    """The Landlock ABI of this kernel, 0 where there is none."""
    try:
        return linux.call("landlock_create_ruleset", None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def close_abstract_sockets() -> bool:
    """Let this process and its children connect to their own abstract sockets only. False where it cannot be done."""
    if abi() < SCOPE_ABI:
        return False
    restrict(ruleset(scoped=SCOPE_ABSTRACT_UNIX_SOCKET))
    return True


def scope() -> None:
    """From here on no signal reaches who does not come from this process, nor does a call to an abstract name.

    Raises:
        OSError: where the kernel cannot; no_new_privs must be set.
    """
    restrict(ruleset(scoped=SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL))


def confine(files: Iterable[tuple[str, int]], port: int) -> None:
    """Give up every file but these (path, rights), every TCP port but this one to connect to, and what `scope` says.

    A path that is gone, or that is a symlink now, is left out.

    Raises:
        OSError: where the kernel cannot; no_new_privs must be set.
    """
    made = ruleset(
        files=EVERY_FILE_RIGHT,
        network=NET_BIND_TCP | NET_CONNECT_TCP,
        scoped=SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
    )
    try:
        for path, rights in files:
            _add_path(made, path, rights)
        if port:
            _add(made, RULE_NET_PORT, NET_CONNECT_TCP.to_bytes(8, "little") + port.to_bytes(8, "little"))
    except BaseException:
        os.close(made)
        raise
    restrict(made)


def ruleset(files: int = 0, network: int = 0, scoped: int = 0) -> int:
    """A descriptor of rules that handle this; nothing of it is given yet."""
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped
    attributes = b"".join(word.to_bytes(8, "little") for word in (files, network, scoped))
    return linux.call("landlock_create_ruleset", attributes, len(attributes), 0)


def restrict(made: int) -> None:
    """Take these rules on and close their descriptor."""
    try:
        linux.call("landlock_restrict_self", made, 0)
    finally:
        os.close(made)


def allow_below(made: int, folder: int, rights: int) -> None:
    """Give rights to what a descriptor leads to, and to all below it."""
    # struct landlock_path_beneath_attr, packed: allowed_access, parent_fd
    _add(made, RULE_PATH_BENEATH, rights.to_bytes(8, "little") + folder.to_bytes(4, "little"))


def _add_path(made: int, path: str, rights: int) -> None:
    try:
        at = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _GONE:
            return  # removed since it was looked at: it is refused then
        raise
    try:
        mode = os.fstat(at).st_mode
        if stat.S_ISLNK(mode):
            return
        if not stat.S_ISDIR(mode):
            rights &= _OF_A_FILE
        if rights:
            allow_below(made, at, rights)
    finally:
        os.close(at)


def _add(made: int, kind: int, attributes: bytes) -> None:
    linux.call("landlock_add_rule", made, kind, attributes, 0)
