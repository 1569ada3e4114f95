"""Who is on the other end of a unix socket of the server: this user, and outside of every task (SRV-1, HLD-15).

Rules of the file:

* The kernel says who connected (SO_PEERCRED, unix(7)): the uid must be the server's own. Root is no exception: it has
  a state folder of its own.
* Every task has a user namespace and a PID namespace of its own, in each hold (HLD-5). A peer whose namespaces are not
  the server's is refused; so is one that has ended, or that the kernel does not tell us about. Network and mount
  namespaces are not compared: a service with a private /tmp is no task.
* A peer is held by a pidfd while it is looked at (SO_PEERPIDFD, Linux 6.5), so that its number cannot be given to
  somebody else meanwhile; an older kernel gives one by number.

That a task does not even see the sockets is the hold's work; this is what is left if that fails.
"""

from __future__ import annotations

import os
import select
import struct
from socket import SO_PEERCRED, SOL_SOCKET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

SO_PEERPIDFD = 77  # asm-generic/socket.h; Python 3.11 has no name for it
_NAMESPACES = ("user", "pid")
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class _RefusedError(Exception):
    """The peer is not to be served; the text says why."""


def refusal(sock: socket) -> str:
    """Return why the other end of a connected unix socket is not to be served, '' where it is."""
    try:
        _check(sock)
    except (_RefusedError, OSError) as error:
        return str(error) or "the process that connected cannot be looked at"
    return ""


def _check(sock: socket) -> None:
    pid, uid, _gid = _CREDENTIALS.unpack(sock.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))
    if uid != os.geteuid():
        raise _RefusedError(f"this server is another user's (uid {os.geteuid()}, and you are {uid})")
    if pid <= 0:
        raise _RefusedError("the process that connected is not in this PID namespace")
    handle = _hold(sock, pid)
    try:
        for name in _NAMESPACES:
            if _namespace(f"/proc/{pid}/ns/{name}") != _namespace(f"/proc/self/ns/{name}"):
                raise _RefusedError("a process inside a task cannot speak to the server")
        if _ended(handle):
            raise _RefusedError("the process that connected has ended")
    finally:
        os.close(handle)


def _hold(sock: socket, pid: int) -> int:
    try:
        return sock.getsockopt(SOL_SOCKET, SO_PEERPIDFD)
    except OSError:
        pass  # a kernel before 6.5, or the process is gone, which the next call says too
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        raise _RefusedError(f"the process that connected cannot be looked at: {error.strerror}") from None


def _ended(handle: int) -> bool:
    look = select.poll()
    look.register(handle, select.POLLIN)
    return bool(look.poll(0))


def _namespace(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise _RefusedError(f"the process that connected cannot be looked at: {error.strerror}") from None
    return found.st_dev, found.st_ino
