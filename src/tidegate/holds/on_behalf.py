"""What the watcher does with the kernel for a caller: connect without waiting, read its numbers, be woken at once.

Small and without state; who may do what is judged in watcher.py. connect(2), proc_pid_status(5), seccomp_unotify(2).
"""

from __future__ import annotations

import errno
import fcntl
import os
import select

from tidegate.holds import linux

NOTIF_SEND = 0xC0182101
NOTIF_SET_FLAGS, SYNC_WAKE_UP = 0x40082104, 1  # linux/seccomp.h
SETTLES = 20  # milliseconds; a reset on loopback is there at once, but on a busy machine
LISTED = 1 << 16  # bytes: some 400 sockets, and those that listen are the first
NOT_YET = (errno.EINPROGRESS, errno.EALREADY)


class RefusedError(Exception):
    """The call fails with this errno."""

    def __init__(self, code: int) -> None:
        self.code = code


class Waiting:
    """A call that is not over: the copy of its socket, where to, and until when (monotonic seconds, 0: for ever)."""

    def __init__(self, wire: int, address: bytes, target: int, deadline: float, timed_out: int) -> None:
        self.wire = wire
        self.address = address
        self.target = target
        self.deadline = deadline
        self.timed_out = timed_out


def attempt(wire: int, address: bytes, *, unix: bool) -> int:
    """Connect without waiting, whatever the socket says; 0 or the errno."""
    flags = fcntl.fcntl(wire, fcntl.F_GETFL)
    waits = not flags & os.O_NONBLOCK
    if waits:
        fcntl.fcntl(wire, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        code = _connect(wire, address)
        if waits and not unix and code in NOT_YET:
            code = _connect(wire, address)  # on loopback it is settled by now
        return code
    finally:
        if waits:
            fcntl.fcntl(wire, fcntl.F_SETFL, flags)


def meet(wire: int, address: bytes, detour: bytes, thread: int) -> tuple[int, bytes]:
    """Connect to a place of the task's loopback, else to `detour`; 0 or the errno, and where to.

    Whether somebody listens is waited for, also where the socket does not wait: on loopback it is known at once, unless
    a queue is full. A task that listens on that port of another of its addresses is left to find it there: who asks for
    `localhost` tries ::1 first.
    """
    code = _settled(wire, address)
    if code != errno.ECONNREFUSED or _listens(thread, int.from_bytes(address[2:4], "big")):
        return code, address
    code = _settled(wire, detour)
    # What stands for the place cannot be had (IPV6_V6ONLY, or the gate is gone): nobody listens, then.
    return (code, detour) if code == 0 or code in NOT_YET else (errno.ECONNREFUSED, address)


def _settled(wire: int, address: bytes) -> int:
    code = attempt(wire, address, unix=False)
    if code in NOT_YET:
        poll = select.poll()
        poll.register(wire, select.POLLOUT)
        poll.poll(SETTLES)
        code = attempt(wire, address, unix=False)
    return code


def _listens(thread: int, port: int) -> bool:
    """Whether anything in this thread's network listens on a TCP port, on whatever address (proc_net(5))."""
    mark = b":%04X" % port
    for name in ("tcp", "tcp6"):
        try:
            file = os.open(f"/proc/{thread}/net/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # a kernel without IPv6
        try:
            data = os.read(file, LISTED)
        finally:
            os.close(file)
        for line in data.splitlines():
            words = line.split(None, 4)  # number, local address, remote address, state
            if len(words) > 3 and words[3] == b"0A" and words[1].endswith(mark):
                return True
    return False


def _connect(wire: int, address: bytes) -> int:
    return linux.outcome("connect", wire, address, len(address))


def field(thread: int, name: str) -> list[int]:
    """The numbers of one line of a process's status.

    Raises:
        RefusedError: ESRCH where there is no such line.
        OSError: where the process has ended.
    """
    with open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(name + ":"):
                return [int(word) for word in line.split()[1:]]
    raise RefusedError(errno.ESRCH)


def send_answer(listener: int, identity: int, code: int, flags: int = 0, value: int = 0) -> None:
    """End a call with this errno, or with a value: struct seccomp_notif_resp { id, val, error, flags }."""
    reply = identity.to_bytes(8, "little") + value.to_bytes(8, "little") + (-code).to_bytes(4, "little", signed=True)
    try:
        fcntl.ioctl(listener, NOTIF_SEND, reply + flags.to_bytes(4, "little"))
    except OSError:
        return  # who asked was killed meanwhile


def answer_at_once(listener: int) -> None:
    """Who asks waits for us and we for who asks: let both run on one processor, where the kernel can (Linux 6.6)."""
    try:
        fcntl.ioctl(listener, NOTIF_SET_FLAGS, SYNC_WAKE_UP)
    except OSError:
        return


def raise_descriptor_limit() -> None:
    """Let this process hold as many descriptors as it may."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
