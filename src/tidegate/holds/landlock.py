"""The one thing that the hold `open` takes from Landlock: abstract unix sockets of the machine stay out of reach.

With a network namespace of its own a task has no abstract names but its own; `open` shares the machine's. Scoping needs
Linux 6.12 (Landlock ABI 6); where it is missing nothing is done, and doctor says so. landlock(7).
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import linux

LANDLOCK_CREATE_RULESET_VERSION = 1
SCOPE_ABSTRACT_UNIX_SOCKET = 1
SCOPE_ABI = 6


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
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped
    attributes = bytes(16) + SCOPE_ABSTRACT_UNIX_SOCKET.to_bytes(8, "little")
    ruleset = linux.call("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        linux.call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
    return True
