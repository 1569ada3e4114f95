"""Namespaces as descriptors: how they are kept, and joined later by a child of ours (setns(2)).

A namespace stays what it is, whoever gets the number of the process it was opened of. Only a process with one thread
may join a user namespace, so `go_into` is for a child that was just forked; the user namespace comes first, since what
may be joined next is asked in it.
"""

from __future__ import annotations

import os

from tidegate.holds import linux

Namespaces = list[tuple[int, int]]
"""Descriptors of namespaces and their kinds, in the order in which they are joined."""


def open_network(pid: int, *, through_user: bool) -> Namespaces:
    """Open what leads into the network namespace of a process, through its user namespace where that is needed.

    Raises:
        OSError: where this user may not; nothing is left open.
    """
    kinds = [("user", linux.CLONE_NEWUSER)] if through_user else []
    opened: Namespaces = []
    try:
        for kind, flag in (*kinds, ("net", linux.CLONE_NEWNET)):
            opened.append((os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC), flag))
    except OSError:
        close_namespaces(opened)
        raise
    return opened


def close_namespaces(namespaces: Namespaces) -> None:
    """Let go of them."""
    for descriptor, _ in namespaces:
        os.close(descriptor)


def go_into(namespaces: Namespaces) -> None:
    """Join them, and let go of what led there.

    Raises:
        OSError: when the kernel does not let us.
    """
    for descriptor, flag in namespaces:
        linux.call("setns", descriptor, flag)
        os.close(descriptor)
