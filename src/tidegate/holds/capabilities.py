"""Giving up every right, for good: capabilities, ways to get them back, and being looked into.

Man pages: capabilities(7), prctl(2). The order matters: what needs a capability comes before they are gone.
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import linux

# linux/securebits.h: uid 0 means nothing to exec; kept and ambient capabilities cannot be had; all of it locked.
SECBIT_NOROOT = 1 << 0
SECBIT_NOROOT_LOCKED = 1 << 1
SECBIT_KEEP_CAPS_LOCKED = 1 << 5
SECBIT_NO_CAP_AMBIENT_RAISE = 1 << 6
SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED = 1 << 7
SECUREBITS = (
    SECBIT_NOROOT
    | SECBIT_NOROOT_LOCKED
    | SECBIT_KEEP_CAPS_LOCKED
    | SECBIT_NO_CAP_AMBIENT_RAISE
    | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED
)
_VERSION_3 = 0x20080522  # linux/capability.h, _LINUX_CAPABILITY_VERSION_3
_MORE_THAN_THERE_ARE = 64


def drop_all(user: int = 0) -> None:
    """Empty the ambient, bounding, inheritable, permitted and effective sets of this process and lock them.

    With a `user` become that one on the way, for good: its uid and the group of the same number, and no other group.

    Raises:
        OSError: when the kernel refuses; the process must not go on then.
    """
    linux.prctl(linux.PR_CAP_AMBIENT, linux.PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(_MORE_THAN_THERE_ARE):
        try:
            linux.prctl(linux.PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # the first number that this kernel does not know
                break
            raise
    linux.prctl(linux.PR_SET_SECUREBITS, SECUREBITS)
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    header = _VERSION_3.to_bytes(4, "little") + bytes(4)
    linux.call("capset", header, bytes(24))


def drop_what_there_is() -> None:
    """As `drop_all`, where an ordinary user has no right to empty the bounding set: no_new_privs keeps it from use.

    Raises:
        OSError: when the kernel refuses; the process must not go on then.
    """
    try:
        drop_all()
    except PermissionError:
        keep_only(0)


def keep_only(wanted: int) -> None:
    """Have no capability but those of this mask (bits by number), and none to pass on.

    Raises:
        OSError: when the kernel refuses.
    """
    header = _VERSION_3.to_bytes(4, "little") + bytes(4)
    halves = (wanted & 0xFFFFFFFF, wanted >> 32)  # struct __user_cap_data_struct: effective, permitted, inheritable
    linux.call("capset", header, b"".join(half.to_bytes(4, "little") * 2 + bytes(4) for half in halves))


def no_new_privileges() -> None:
    """Nothing this process or a child executes gives more rights than it has (set-uid, file capabilities)."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)


def close_to_others() -> None:
    """Nobody inside may trace this process or read its memory.

    Its memory belongs to the user namespace outside (it was forked, not executed, in the new one), so even a
    capability in the task's namespaces does not help. exec resets it, so the command itself can be debugged.
    """
    linux.prctl(linux.PR_SET_DUMPABLE, 0)


def die_with_parent() -> None:
    """Be killed when the front ends, however it ends."""
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)


def stand_by(front: int, kept: int) -> None:
    """Keep these capabilities and nothing else, out of everybody's reach, for as long as the front is there."""
    keep_only(kept)
    no_new_privileges()
    close_to_others()
    die_with_parent()
    if os.getppid() != front:
        os._exit(0)  # it was gone before we asked
