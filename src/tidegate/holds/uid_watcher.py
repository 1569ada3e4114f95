"""The watcher of a task that shares this machine's network as a user of its own (HLD-3, HLD-14).

As watcher.py has it: each connection is made here, unix sockets only to files that are the task's. What is added:

* A socket that is about to listen on an internet family is marked as the task's, and its port is entered in the table:
  that is what makes it one of "its own servers". The mark ends with the socket, and no task can set one.
* Abstract names are the machine's here. One can be connected to while the very socket with which this task listened
  at it still does: the kernel's diagnostics say so (unix_diag.py).
* When the table or the range's routing rule is removed or changed the task is ended at once, before anybody is told
  (HLD-7).

This process has the task's user, so that who it connects to sees that one, and keeps the few capabilities that it needs
in this machine's own namespaces: it can look at the task and set marks, and nothing of the task can touch it.
"""

from __future__ import annotations

import _socket
import errno
import os
import select

from tidegate.holds import capabilities, control, linux, netlink, uid_watch, unix_diag
from tidegate.holds.on_behalf import RefusedError
from tidegate.holds.uid_table import mark_of
from tidegate.holds.watcher import AF_UNIX, KEPT_CAPABILITIES, PATH_AT, SO_DOMAIN, Watcher, detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from tidegate.holds.uid_watch import TableWatch

TABLE_GONE = 3
"""What it exits with when it has ended the task because of the table."""
MOST_PORTS = 1024
_JUST_NOW = 64  # of them may not listen yet: the call goes on after we have answered
_CAP_KILL = 1 << 5
_SO_MARK = 36  # asm-generic/socket.h
_PR_SET_KEEPCAPS = 8


class Post:
    """Whom it watches: the user, the first process and its root, and the table. `locks` are kept open."""

    def __init__(self, uid: int, table: TableWatch, locks: Sequence[int], shares: Sequence[str]) -> None:
        self.uid = uid
        self.table = table
        self.locks = tuple(locks)
        self.shares = tuple(shares)

    def start(self, init: int) -> tuple[int, int]:
        """Fork the watcher of the task whose first process is `init`: its pid, and where its listener is to be sent."""
        handle = os.pidfd_open(init)
        view = os.open(f"/proc/{init}/root", os.O_PATH | os.O_CLOEXEC)
        ours, theirs = control.pair()
        front = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(ours)
                self._be(front, theirs, handle, view)
            finally:
                os._exit(1)
        for descriptor in (theirs, handle, view):
            os.close(descriptor)
        return pid, ours

    def _be(self, front: int, wire: int, handle: int, view: int) -> NoReturn:
        import resource  # noqa: F401  now: the user that this process becomes may have no way to where Python is
        import signal  # noqa: F401

        detach((wire, handle, view, *self.table.descriptors(), *self.locks))
        linux.prctl(_PR_SET_KEEPCAPS, 1)
        os.setgroups([])
        os.setresgid(self.uid, self.uid, self.uid)
        os.setresuid(self.uid, self.uid, self.uid)
        capabilities.stand_by(front, KEPT_CAPABILITIES | _CAP_KILL)
        both = select.poll()
        for descriptor in (wire, self.table.fileno()):
            both.register(descriptor, select.POLLIN)
        while wire not in dict(both.poll()):
            look(self.table, handle)
        _, listener, own = control.orders(wire)
        made = UidWatcher(listener, view, self, handle)
        for listening in own:
            made.know(listening)
        made.run()


class UidWatcher(Watcher):
    """Answers for the processes of one user."""

    def __init__(self, listener: int, view: int, post: Post, init: int) -> None:
        super().__init__(listener, view, post.shares, {})
        self._uid = post.uid
        self._table = post.table
        self._init = init
        self._abstract: dict[bytes, int] = {}  # names that the task listened at, and the inode of the socket
        self._ports: dict[int, None] = {}
        self._netfilter = netlink.connect(netlink.NETLINK_NETFILTER)
        self._poll.register(post.table.fileno(), select.POLLIN)

    def _serve_other(self, descriptor: int) -> None:
        if descriptor == self._table.fileno():
            look(self._table, self._init)

    def _note(self, wire: int) -> None:
        domain = int.from_bytes(self._option(wire, SO_DOMAIN, 4), "little")
        if domain in (_socket.AF_INET, _socket.AF_INET6):
            self._mark(wire)
            return
        try:
            super()._note(wire)
        except OSError as error:
            if error.errno != errno.ENOENT or domain != AF_UNIX:
                raise
            name = _name(wire)
            if name[:1] == b"\0":
                self._abstract[name] = os.fstat(wire).st_ino
                if len(self._abstract) > MOST_PORTS:
                    del self._abstract[next(iter(self._abstract))]

    def _mark(self, wire: int) -> None:
        sock = _socket.socket(fileno=wire)
        try:
            sock.setsockopt(_socket.SOL_SOCKET, _SO_MARK, mark_of(self._uid).to_bytes(4, "little"))
            port = sock.getsockname()[1]
        finally:
            sock.detach()
        if not port or port in self._ports:
            return
        if len(self._ports) >= MOST_PORTS:
            self._forget_ports()
        if len(self._ports) < MOST_PORTS:
            uid_watch.add_own(self._netfilter, self._uid, port)
            self._ports[port] = None

    def _forget_ports(self) -> None:
        """Make room: servers that have ended have no place in the table any more."""
        listening = _listening(self._uid)
        gone = [port for port in list(self._ports)[:-_JUST_NOW] if port not in listening]
        if gone:
            uid_watch.forget_own(self._netfilter, self._uid, gone)
        for port in gone:
            del self._ports[port]

    def _judged(self, _identity: int, _wire: int, where: bytes, *, unix: bool) -> bytes:
        if not unix:
            look(self._table, self._init)  # what the table said no to a moment ago is not made in its absence
        elif len(where) > PATH_AT and not where[PATH_AT] and not self._is_own(where[PATH_AT:]):
            raise RefusedError(errno.ECONNREFUSED)
        return where

    def _is_own(self, name: bytes) -> bool:
        """Whether the very socket with which this task listened at an abstract name still listens there."""
        inode = self._abstract.get(name)
        try:
            return inode is not None and unix_diag.listener(inode) == name
        except OSError:
            return False


def look(table: TableWatch, init: int) -> None:
    """End the task and this process where the table is not what it was."""
    if table.altered():
        import signal

        signal.pidfd_send_signal(init, signal.SIGKILL)
        os._exit(TABLE_GONE)


def _listening(uid: int) -> set[int]:
    """The ports of this network at which sockets of a user listen (proc_net(5))."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}", encoding="ascii") as file:
                lines = [line.split() for line in file]
        except OSError:
            continue  # a kernel without IPv6
        # number, local address, remote address, state, queues, timer, retransmissions, user
        found |= {int(one[1].rpartition(":")[2], 16) for one in lines if one[3] == "0A" and one[7] == str(uid)}
    return found


def _name(wire: int) -> bytes:
    sock = _socket.socket(fileno=wire)
    try:
        name = sock.getsockname()
    finally:
        sock.detach()
    return name if isinstance(name, bytes) else b""
