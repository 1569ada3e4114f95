"""What a kernel may lack of what a row is about. Asked outside a hold, by doing, where nothing refuses it.

Each returns a question for `needs=`: empty where it is there, else what is missing. Of what a right is missing for, or
what only its arguments were wrong for, nothing is missing.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes.tools import syscall

if TYPE_CHECKING:
    from collections.abc import Callable

_UNKNOWN = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EPFNOSUPPORT, errno.ENOENT)


def sockets(family: int, kind: int, protocol: int) -> Callable[[], str]:
    """Sockets of this kind."""

    def ask() -> str:
        try:
            socket.socket(family, kind, protocol).close()
        except OSError as error:
            if error.errno in _UNKNOWN:
                return f"this kernel has no sockets of family {family}, protocol {protocol}"
        return ""

    return ask


def calls(number: int, *arguments: Any) -> Callable[[], str]:
    """A system call; it must be harmless with these arguments for whoever has every right."""

    def ask() -> str:
        try:
            syscall(number, *arguments)  # a descriptor that it makes goes with the process, which asks and ends
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
                return "this kernel has no such system call"
        return ""

    return ask


def paths(*names: str) -> Callable[[], str]:
    """One of these files."""

    def ask() -> str:
        return "" if any(os.path.lexists(name) for name in names) else f"there is no {names[0]} here"

    return ask


def ipv6() -> str:
    """IPv6."""
    return paths("/proc/net/if_inet6")()


def in_a_child(act: Callable[[], object], what: str) -> Callable[[], str]:
    """Something that may end the process that tries it."""

    def ask() -> str:
        child = os.fork()
        if child == 0:
            try:
                act()
            except BaseException:  # noqa: BLE001 (it does not work here, whatever the reason)
                os._exit(1)
            os._exit(0)
        return "" if os.waitpid(child, 0)[1] == 0 else what

    return ask
