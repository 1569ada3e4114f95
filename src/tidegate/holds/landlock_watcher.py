"""The watcher of a task without namespaces: it shares the machine's network, files and processes (HLD-2, HLD-15).

As in watcher.py nothing that is judged is looked up again. What is added:

* A TCP socket is connected to the gate's address and to no other, from this process's own copy of that address; what
  kind of socket it is, is asked of the copy that is connected. Before that the gate is told which socket it is
  (gate/announced.py), so that it knows who comes.
* Unix sockets: one is bound to a path here and so known; abstract names are the machine's and are refused.
* Nothing listens on the internet families; listen() is made here, on the copy, so that it cannot become another's.
* Changes of names and files: file_calls.py. The peer of a pty's master, which no rule gives by name.
* Limits of another process, where that is the task's.

A call goes on to the kernel (SECCOMP_USER_NOTIF_FLAG_CONTINUE) only where Landlock refuses there what must be refused,
so that nothing depends on what was seen here. The process is as ordinary as the user, has no capability, and stands
outside the task's Landlock domain: the task can neither signal nor trace it. seccomp_unotify(2).
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import select
import struct

from tidegate.holds import capabilities, control, linux
from tidegate.holds.callers import Caller, GoesOnError
from tidegate.holds.file_call_table import AT_FDCWD, FILE_CALLS
from tidegate.holds.file_calls import FileCalls
from tidegate.holds.landlock_pause import UNSPECIFIED
from tidegate.holds.on_behalf import RefusedError, attempt, field, send_answer
from tidegate.holds.seccomp import TIOCGPTPEER
from tidegate.holds.watcher import (
    AF_UNIX,
    CONTINUE,
    LONGEST_UNIX,
    MAX_LISTENERS,
    PATH_AT,
    RETRY,
    SO_DOMAIN,
    TOGETHER,
    Watcher,
    detach,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from tidegate.holds.carve import Levels
    from tidegate.holds.landlock_pause import Pause
    from tidegate.holds.on_behalf import Waiting

NOTIF_ADDFD = 0x40182103  # linux/seccomp.h, struct seccomp_notif_addfd { id, flags, srcfd, newfd, newfd_flags }
SO_TYPE, SO_PROTOCOL, SO_COOKIE = 3, 38, 57  # asm-generic/socket.h
HERE, TRIED = b"h", b"t"  # what the gate is told: gate/announced.py
_LOOPBACK4, _MAPPED = b"\x7f", bytes(10) + b"\xff\xff\x7f"


class Post:
    """What the watcher of one task is told: where its gate is, whom to tell, what it may write, and who its init is."""

    def __init__(self, port: int, announcer: int, levels: Levels, shares: Sequence[str], pause: Pause) -> None:
        self.port = port
        self.pause = pause
        self.announcer = announcer
        self.levels = levels
        self.shares = tuple(shares)


def start(post: Post) -> tuple[int, int]:
    """Fork the watcher of a task: its pid, and where what it answers at is to be sent."""
    ours, theirs = control.pair()
    front = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _be_watcher(front, theirs, post)
        finally:
            os._exit(1)
    os.close(theirs)
    return pid, ours


def _be_watcher(front: int, wire: int, post: Post) -> NoReturn:
    detach((wire, *((post.announcer,) if post.announcer >= 0 else ())))
    os.chdir("/")
    capabilities.stand_by(front, 0)
    message, listener, own = control.orders(wire)
    made = LandlockWatcher(listener, post, *(int(word) for word in message.split()[1:]))
    for path in own:
        made.own(path)
    made.run()


class LandlockWatcher(Watcher):
    """Answers for a task whose first process is `init`; `guard` is a child of that one and none of the task's."""

    def __init__(self, listener: int, post: Post, init: int, guard: int) -> None:
        super().__init__(listener, os.open("/", os.O_PATH | os.O_CLOEXEC), post.shares, {})
        self._init = init
        self._guard = guard
        self._announcer = post.announcer
        self._pause = post.pause
        self._files_of_task = FileCalls(post.levels)
        port = post.port.to_bytes(2, "big")
        self._gate4 = b"\2\0" + port + b"\x7f\0\0\1" + bytes(8)
        self._gate6 = b"\n\0" + port + bytes(4) + _MAPPED + b"\0\0\1" + bytes(4)
        handlers = {name: self._of_files(act) for name, act in FILE_CALLS.items()}
        handlers |= {"bind": self._bind, "prlimit64": self._limit, "ioctl": self._peer_of_pty}
        handlers |= {"open": self._open, "openat": self._openat, "creat": self._creat}
        self._calls |= {linux.NUMBERS[name]: act for name, act in handlers.items() if name in linux.NUMBERS}

    # --- sockets

    def _judged(self, _identity: int, wire: int, where: bytes, *, unix: bool) -> bytes:
        if unix:
            if len(where) <= PATH_AT or where[:PATH_AT] != b"\1\0" or not where[PATH_AT]:
                raise RefusedError(errno.ECONNREFUSED)
            return where
        self._require_tcp(wire)
        if where[:2] == b"\2\0" and len(where) >= 16:
            gate, packed = self._gate4, where[4:8]
            own = where[:8] == gate[:8]
        elif where[:2] == b"\n\0" and len(where) >= 24:
            gate, packed = self._gate6, where[8:24]
            own = where[2:4] == gate[2:4] and packed == gate[8:24]
        else:
            raise RefusedError(errno.EAFNOSUPPORT if where[:2] in (b"\0\0", b"\1\0") else errno.EINVAL)
        if not own:
            self._tell(TRIED + where[2:4] + packed)
            local = packed[:1] in (_LOOPBACK4, b"\0") if len(packed) == 4 else _is_local(packed)
            raise RefusedError(errno.ECONNREFUSED if local else errno.ENETUNREACH)
        if self._pause.is_shut():
            raise RefusedError(errno.ECONNREFUSED)
        self._announce(wire)
        return gate

    def _once_more(self, call: Waiting) -> int:
        if call.timed_out == errno.EINPROGRESS and self._pause.is_shut():  # to the gate, which takes nobody
            attempt(call.wire, UNSPECIFIED, unix=False)
            return errno.ECONNREFUSED
        return super()._once_more(call)

    def _require_tcp(self, wire: int) -> None:
        domain, kind, protocol = (
            int.from_bytes(self._option(wire, option, 4), "little") for option in (SO_DOMAIN, SO_TYPE, SO_PROTOCOL)
        )
        inet = domain in (_socket.AF_INET, _socket.AF_INET6)
        if not inet or kind != _socket.SOCK_STREAM or protocol != _socket.IPPROTO_TCP:
            raise RefusedError(errno.EPERM)

    def _announce(self, wire: int) -> None:
        """Tell the gate which socket it is that will come, by the number that the kernel knows it by for good."""
        if not self._tell(HERE + self._option(wire, SO_COOKIE, 8), wait=True):
            raise RefusedError(errno.ECONNREFUSED)

    def _tell(self, message: bytes, *, wait: bool = False) -> bool:
        """Tell the gate; False where it cannot be told. What need not be told is left out while it does not listen.

        Waiting for a gate that was stopped ends when the front has noticed: all of the task's calls wait for us.
        """
        if self._announcer < 0:
            return False
        own = _socket.socket(fileno=self._announcer)
        try:
            while True:
                try:
                    own.send(message, _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
                except BlockingIOError:
                    if not wait or self._pause.is_shut():
                        return False
                    room = select.poll()
                    room.register(self._announcer, select.POLLOUT)
                    room.poll(RETRY * TOGETHER)
                else:
                    return True
        except OSError:
            return False
        finally:
            own.detach()

    def _listen(self, identity: int, thread: int, descriptor: int, *rest: int) -> None:
        wire = self._take(identity, thread, descriptor)
        own = _socket.socket(fileno=wire)
        try:
            if own.family != _socket.AF_UNIX:
                raise RefusedError(errno.EACCES)
            own.listen(max(0, struct.unpack("i", struct.pack("I", rest[0] & 0xFFFFFFFF))[0]))
        finally:
            own.close()
        self._answer(identity, 0)

    def _bind(self, identity: int, thread: int, descriptor: int, address: int, length: int, *_rest: int) -> None:
        length &= 0xFFFFFFFF
        if not 2 <= length <= LONGEST_UNIX:
            raise RefusedError(errno.EINVAL)
        wire = self._take(identity, thread, descriptor)
        try:
            where = self._read(thread, address, length)
            self._valid(identity)
            domain = int.from_bytes(self._option(wire, SO_DOMAIN, 4), "little")
            if domain == _socket.AF_NETLINK:
                linux.call("bind", wire, where, len(where))
            elif domain != AF_UNIX or where[:PATH_AT] != b"\1\0" or length <= PATH_AT or not where[PATH_AT]:
                raise RefusedError(errno.EACCES)
            else:
                caller = self._caller(identity, thread)
                there, file = self._files_of_task.bind(caller, where[PATH_AT:].split(b"\0", 1)[0], wire)
                self._know_file(there, file)
        except GoesOnError:
            raise RefusedError(errno.EACCES) from None
        finally:
            os.close(wire)
        self._answer(identity, 0)

    def _know_file(self, key: tuple[int, int], file: int) -> None:
        if len(self._files) >= MAX_LISTENERS:
            self._forget()
        self._files[key] = file

    def own(self, file: int) -> None:
        """Take the file of a socket that listened before anybody was asked (O_PATH) for the task's own."""
        found = os.fstat(file)
        self._know_file((found.st_dev, found.st_ino), file)

    def _open_as(self, identity: int, thread: int, path: bytes) -> int:
        folder = -1
        try:
            if not path.startswith(b"/"):
                folder = os.open(f"/proc/{thread}/cwd", os.O_PATH | os.O_CLOEXEC)
                self._valid(identity)
                return os.open(path, os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
            return os.open(path, os.O_PATH | os.O_CLOEXEC)
        finally:
            if folder >= 0:
                os.close(folder)

    # --- files

    def _caller(self, identity: int, thread: int) -> Caller:
        def take(descriptor: int) -> int:
            return self._take(identity, thread, descriptor)

        def read(address: int, length: int) -> bytes:
            found = self._read_some(thread, address, length)
            self._valid(identity)
            return found

        return Caller(thread, take, read)

    def _read_some(self, thread: int, address: int, length: int) -> bytes:
        with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
            try:
                return os.pread(memory.fileno(), length, address)
            except OSError:
                raise RefusedError(errno.EFAULT) from None

    def _of_files(self, act: Callable[..., object]) -> Callable[..., None]:
        def answer(identity: int, thread: int, *arguments: int) -> None:
            try:
                act(self._files_of_task, self._caller(identity, thread), *arguments)
            except GoesOnError:
                self._answer(identity, 0, CONTINUE)
                return
            self._answer(identity, 0)

        return answer

    def _open(self, identity: int, thread: int, path: int, flags: int, mode: int, *_rest: int) -> None:
        self._openat(identity, thread, AT_FDCWD, path, flags, mode)

    def _creat(self, identity: int, thread: int, path: int, mode: int, *_rest: int) -> None:
        self._openat(identity, thread, AT_FDCWD, path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)

    def _openat(self, identity: int, thread: int, at: int, path: int, flags: int, mode: int, *_rest: int) -> None:
        flags &= 0xFFFFFFFF
        try:
            made = self._files_of_task.open(self._caller(identity, thread), at, path, flags, mode)
        except GoesOnError:
            self._answer(identity, 0, CONTINUE)
            return
        self._give(identity, made, flags & os.O_CLOEXEC)

    def _give(self, identity: int, made: int, flags: int) -> None:
        """Answer with a descriptor. Ours is closed first: nobody can execute a file that is open to be written."""
        try:
            words = bytearray(struct.pack("=QIIII", identity, 0, made, 0, flags))
            number = fcntl.ioctl(self._listener, NOTIF_ADDFD, words, True)
        finally:
            os.close(made)
        send_answer(self._listener, identity, 0, value=number)

    def _peer_of_pty(self, identity: int, thread: int, descriptor: int, _ask: int, flags: int, *_rest: int) -> None:
        master = self._take(identity, thread, descriptor)
        try:
            wanted = flags & (os.O_RDWR | os.O_WRONLY | os.O_NONBLOCK)
            made = fcntl.ioctl(master, TIOCGPTPEER, wanted | os.O_NOCTTY | os.O_CLOEXEC)
        finally:
            os.close(master)
        self._give(identity, made, flags & os.O_CLOEXEC)

    def _limit(self, identity: int, thread: int, pid: int, which: int, new: int, old: int, *_rest: int) -> None:
        pid &= 0xFFFFFFFF
        if not self._is_the_tasks(pid):
            raise RefusedError(errno.EPERM)
        caller = self._caller(identity, thread)
        wanted = caller.bytes(new, 16)
        before, memory = linux.address_of(bytes(16))
        linux.call("prlimit64", pid, which & 0xFFFFFFFF, wanted, before)
        if old:
            with open(f"/proc/{thread}/mem", "r+b", buffering=0) as file:
                self._valid(identity)  # else this may be the memory of whoever has the number by now
                os.pwrite(file.fileno(), bytes(memoryview(memory)), old)  # type: ignore[arg-type]
        self._answer(identity, 0)

    def _is_the_tasks(self, pid: int) -> bool:
        """Whether a process comes from this task's init, and is neither that one nor its guard."""
        if pid in (self._init, self._guard):
            return False
        while pid > 1:
            try:
                (pid,) = field(pid, "PPid")
            except (OSError, RefusedError):
                return False
            if pid == self._init:
                return True
        return False


def _is_local(packed: bytes) -> bool:
    return packed == bytes(15) + b"\1" or packed.startswith(_MAPPED) or packed == bytes(16)
