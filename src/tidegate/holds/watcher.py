"""Which unix sockets a task may connect to: its own and shared ones, and no other, whenever they were made (HLD-14).

A socket with a path is found by the kernel wherever its file is in sight; no namespace ends it. So the task's filter
(seccomp.py) hands every connect() to this process, which stands outside the task's PID namespace: the task can neither
see nor end it, and when it ends the calls fail (ENOSYS). What is asked is copied once, the socket is taken by
pidfd_getfd(2), the path is opened once, as the caller would, and the connection is made *here*, to the very file
that was judged. Nothing is ever let through to be looked up again: what the caller changes meanwhile changes nothing.

Which files are the task's: a stream or seqpacket socket takes part only after listen(), which is handed here, too, and
then goes on. The kernel itself says which file a socket is bound to (SIOCUNIXFILE). That file is kept open, so its
number cannot be used again, and since bind() makes a new file no other socket can ever be on it. Datagram sockets
have no listen(), and sendmsg() names their receiver behind a pointer: the filter knows no such unix sockets.

Rules of the file: an answer for each call and never an exception; what is not understood is refused. Calls that must
wait (a full backlog) are tried again and hold nobody up. The peer of a connection made here sees the caller's user
but no process id (SO_PEERCRED), as over a border of PID namespaces.

seccomp_unotify(2), unix(7), pidfd_getfd(2), process_vm_readv(2). It does not judge internet addresses: their way is
the network namespace's, and those calls are made here because a descriptor can be exchanged while we look. But a place
of loopback that stands for a service of this machine (HLD-10) leads to the gate where the task does not listen itself.
That is found out by connecting, each time: no port is taken, and the task's own listener always wins.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import time

from tidegate.holds import capabilities, control, linux
from tidegate.holds.copies import Copies
from tidegate.holds.inside import place_of
from tidegate.holds.mountinfo import is_within
from tidegate.holds.on_behalf import (
    NOT_YET,
    RefusedError,
    Waiting,
    answer_at_once,
    attempt,
    field,
    meet,
    raise_descriptor_limit,
    send_answer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

# linux/seccomp.h: struct seccomp_notif { id, pid, flags, { nr, arch, ip, args[6] } }, struct seccomp_notif_resp
NOTIFICATION = 80
NOTIF_RECV = 0xC0502100
NOTIF_ID_VALID = 0x40082102
CONTINUE = 1
SIOCUNIXFILE = 0x89E0  # linux/un.h
SOL_SOCKET, SO_DOMAIN, SO_SNDTIMEO = 1, 39, 21  # asm-generic/socket.h
AF_UNIX = 1
INTERNET = (b"\2\0", b"\n\0")  # how the addresses of AF_INET and AF_INET6 begin
PATH_AT = 2  # struct sockaddr_un: sun_family, then sun_path
LONGEST_UNIX = 110
LONGEST_ADDRESS = 128  # struct sockaddr_storage
KEPT_CAPABILITIES = 1 << 12 | 1 << 18 | 1 << 19  # NET_ADMIN (SIOCUNIXFILE), SYS_CHROOT, SYS_PTRACE, inside only
NOTHING_MET: Mapping[bytes, bytes] = {}
MAX_LISTENERS = 4096
MAX_WAITING = 512
RETRY = 5  # milliseconds between two looks at a full backlog, which cannot be waited for
TOGETHER = 16  # calls that wait so, for which one RETRY more is added: many take neither a processor nor others' turn
LOOK_AGAIN = 1000  # milliseconds: is who waits still there?
_OWN_PROC = (b"/proc/self/", b"/proc/thread-self/", b"/dev/fd/")


def start(found: Sequence[int], shares: Sequence[str], met: Mapping[bytes, bytes] = NOTHING_MET) -> tuple[int, int]:
    """Fork the watcher of a task that was found: its pid, and where its listener is to be sent. `met`: see detours."""
    ours, theirs = control.pair()
    front = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            _be_watcher(front, theirs, found, shares, met)
        finally:
            os._exit(1)
    for descriptor in (theirs, *found):
        os.close(descriptor)
    return pid, ours


def _be_watcher(
    front: int, wire: int, found: Sequence[int], shares: Sequence[str], met: Mapping[bytes, bytes]
) -> NoReturn:
    detach((wire, *found))
    space, view = found
    linux.call("setns", space, linux.CLONE_NEWUSER)
    os.close(space)
    capabilities.stand_by(front, KEPT_CAPABILITIES)
    _, listener, own = control.orders(wire)
    made = Watcher(listener, view, shares, met)
    for listening in own:
        made.know(listening)
    made.run()


def detach(kept: Sequence[int]) -> None:
    """Let go of the front's signals, terminal and descriptors, but for these."""
    from tidegate.holds.init import fresh_signals

    fresh_signals()
    os.setsid()  # Ctrl-C is for the task
    linux.prctl(linux.PR_SET_NAME, linux.path("tidegate-watch"))
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    control.close_all_but(kept)


class Watcher:
    """Answers the notifications of one task until its last process has ended."""

    def __init__(self, listener: int, view: int, shares: Sequence[str], met: Mapping[bytes, bytes]) -> None:
        self._listener = listener
        self._view = view  # the root as the task's first process sees it
        self._shares = tuple(shares)
        self._met = met
        self._own_root = os.open("/", os.O_PATH | os.O_CLOEXEC)
        self._files: dict[tuple[int, int], int] = {}
        self._waiting: dict[int, Waiting] = {}
        self._copies = Copies(self._valid)
        # What the kernel writes for us: an address or an option, and behind it the option's length.
        self._scratch, memory = linux.address_of(bytes(LONGEST_ADDRESS + 4))
        self._seen = memoryview(memory).cast("B")  # type: ignore[arg-type]
        answer_at_once(listener)
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        raise_descriptor_limit()
        self._calls: dict[int, Callable[..., None]] = {
            linux.NUMBERS["connect"]: self._connect,
            linux.NUMBERS["listen"]: self._listen,
        }

    def run(self) -> NoReturn:
        """Serve until no process is left that could ask."""
        checked = looked = time.monotonic()
        while True:
            ready = False
            for descriptor, event in self._poll.poll(self._patience()):
                if descriptor != self._listener:
                    self._serve_other(descriptor)
                    ready = True
                    continue
                if event & select.POLLIN:
                    self._serve()
                elif event:
                    os._exit(0)
            if (pace := self._patience()) is not None:
                now = time.monotonic()
                if not ready and now - looked < pace / 1000:
                    continue
                looked = now
                gone = now - checked > LOOK_AGAIN / 1000
                checked = now if gone else checked
                for identity in tuple(self._waiting):
                    self._try_again(identity, now, check=gone)

    def _serve_other(self, descriptor: int) -> None:
        """Something else that is ready; sockets of calls that wait are tried again anyway."""

    def _patience(self) -> int | None:
        if not self._waiting:
            return None
        full = sum(call.timed_out == errno.EAGAIN for call in self._waiting.values())
        return RETRY * (1 + full // TOGETHER) if full else LOOK_AGAIN

    def _serve(self) -> None:
        notification = bytearray(NOTIFICATION)
        try:
            fcntl.ioctl(self._listener, NOTIF_RECV, notification, True)
        except OSError:
            return  # who asked is gone
        words = memoryview(notification).cast("Q")
        identity, thread = words[0], words[1] & 0xFFFFFFFF
        answer = self._calls.get(int.from_bytes(notification[16:20], "little"))
        try:
            if answer is None:
                raise RefusedError(errno.ENOSYS)  # noqa: TRY301 (all refusals take one way)
            answer(identity, thread, *words[4:10])
        except RefusedError as refused:
            self._answer(identity, refused.code)
        except OSError as error:
            self._answer(identity, error.errno or errno.EPERM)
        except Exception:  # noqa: BLE001 (whatever it is, the call fails and the next one is served)
            self._answer(identity, errno.EPERM)

    def _answer(self, identity: int, code: int, flags: int = 0) -> None:
        send_answer(self._listener, identity, code, flags)

    def _valid(self, identity: int) -> None:
        """Who asked still waits: its number has not passed to another process."""
        fcntl.ioctl(self._listener, NOTIF_ID_VALID, identity.to_bytes(8, "little"))

    def _take(self, identity: int, thread: int, descriptor: int) -> int:
        """A copy of the caller's descriptor."""
        return self._copies.take(identity, thread, descriptor)

    def _option(self, wire: int, option: int, size: int) -> bytes:
        self._seen[LONGEST_ADDRESS] = size
        linux.call("getsockopt", wire, SOL_SOCKET, option, self._scratch, self._scratch + LONGEST_ADDRESS)
        return bytes(self._seen[:size])

    def _domain(self, wire: int) -> int:
        return int.from_bytes(self._option(wire, SO_DOMAIN, 4), "little")

    def _listen(self, identity: int, thread: int, descriptor: int, *_rest: int) -> None:
        """Note the file that a socket about to listen is bound to; the call itself goes on."""
        try:
            wire = self._take(identity, thread, descriptor)
            try:
                self._note(wire)
            finally:
                os.close(wire)
        except OSError:
            pass  # no socket, or one without a file
        self._answer(identity, 0, CONTINUE)

    def know(self, wire: int) -> None:
        """Take a socket that listened before anybody was asked for the task's own, and close this copy of it."""
        self._note(wire)
        os.close(wire)

    def _note(self, wire: int) -> None:
        if self._domain(wire) != AF_UNIX:
            return
        file = fcntl.ioctl(wire, SIOCUNIXFILE)
        found = os.fstat(file)
        key = (found.st_dev, found.st_ino)
        if key in self._files:
            os.close(file)
            return
        if len(self._files) >= MAX_LISTENERS:
            self._forget()
        self._files[key] = file

    def _forget(self) -> None:
        """Let go of files without a name; where there is none, of the oldest."""
        gone = [key for key, file in self._files.items() if os.fstat(file).st_nlink == 0]
        for key in gone or list(self._files)[:1]:
            os.close(self._files.pop(key))

    def _connect(self, identity: int, thread: int, descriptor: int, address: int, length: int, *_rest: int) -> None:
        length &= 0xFFFFFFFF
        if length > LONGEST_ADDRESS:  # a negative int, too
            raise RefusedError(errno.EINVAL)
        wire = self._take(identity, thread, descriptor)
        target = -1
        kept = False
        try:
            where = self._read(thread, address, length) if length else b""
            self._valid(identity)
            # A unix socket does not connect to what is no unix address, and the kernel says so when it is tried.
            unix = where[:PATH_AT] not in INTERNET and self._domain(wire) == AF_UNIX
            where = self._judged(identity, wire, where, unix=unix)
            if unix and length > PATH_AT and where[:PATH_AT] == b"\1\0" and where[PATH_AT]:
                if length > LONGEST_UNIX:
                    raise RefusedError(errno.EINVAL)
                target = self._target(identity, thread, where[PATH_AT:].split(b"\0", 1)[0])
                where = b"\1\0/proc/self/fd/%d\0" % target
            detour = self._met.get(place_of(where)) if self._met and not unix else None
            if detour is None:
                code = attempt(wire, where, unix=unix)
            else:
                code, where = meet(wire, where, detour, thread)
            if code == errno.EWOULDBLOCK if unix else code in NOT_YET:
                kept = self._wait(identity, wire, where, target, code)
            if not kept:
                self._answer(identity, code)
        finally:
            if not kept:
                os.close(wire)
                if target >= 0:
                    os.close(target)

    def _judged(self, _identity: int, _wire: int, where: bytes, *, unix: bool) -> bytes:  # noqa: ARG002
        """Where a socket is connected that is meant to go to `where`; a task in a network of its own may go anywhere.

        Raises:
            RefusedError: nowhere.
        """
        return where

    def _read(self, thread: int, address: int, length: int) -> bytes:
        here = self._scratch.to_bytes(8, "little") + length.to_bytes(8, "little")
        there = address.to_bytes(8, "little") + length.to_bytes(8, "little")
        if linux.call("process_vm_readv", thread, here, 1, there, 1, 0) != length:
            raise RefusedError(errno.EFAULT)
        return bytes(self._seen[:length])

    def _target(self, identity: int, thread: int, path: bytes) -> int:
        """The file that the caller means, opened once, where it is one that it may connect to."""
        for own in _OWN_PROC:
            if path.startswith(own):
                rest = path[len(own) :] if own != b"/dev/fd/" else b"fd/" + path[len(own) :]
                path = b"/proc/%d/%b" % (field(thread, "NSpid")[-1], rest)
        file = self._open_as(identity, thread, path)
        may = False
        try:
            found = os.fstat(file)
            known = (found.st_dev, found.st_ino) in self._files
            may = stat.S_ISSOCK(found.st_mode) and (known or self._is_shared(file, found))
        finally:
            if not may:
                os.close(file)
        if not may:
            raise RefusedError(errno.ECONNREFUSED)  # as for a socket that nobody listens on
        return file

    def _open_as(self, identity: int, thread: int, path: bytes) -> int:
        """Open a path from the caller's root and folder. Which file that is, is judged afterwards, by its identity."""
        root = folder = -1
        try:
            root = os.open(f"/proc/{thread}/root", os.O_PATH | os.O_CLOEXEC)
            if not path.startswith(b"/"):
                folder = os.open(f"/proc/{thread}/cwd", os.O_PATH | os.O_CLOEXEC)
            self._valid(identity)
            try:
                os.fchdir(root)
                os.chroot(".")
                if folder >= 0:
                    os.fchdir(folder)
                return os.open(path, os.O_PATH | os.O_CLOEXEC)
            finally:
                os.fchdir(self._own_root)
                os.chroot(".")
        finally:
            for descriptor in (root, folder):
                if descriptor >= 0:
                    os.close(descriptor)

    def _is_shared(self, file: int, found: os.stat_result) -> bool:
        """Whether it lies in what the person shared, seen from the task's own root, which no task can change."""
        path = os.readlink(f"/proc/self/fd/{file}")
        if not any(is_within(path, share) for share in self._shares):
            return False
        # struct open_how: flags, mode, resolve (RESOLVE_NO_SYMLINKS | RESOLVE_IN_ROOT), 64 bits each
        how = b"".join(word.to_bytes(8, "little") for word in (os.O_PATH | os.O_CLOEXEC, 0, 0x04 | 0x10))
        again = linux.call("openat2", self._view, linux.path(path), how, len(how))
        try:
            return os.path.samestat(os.fstat(again), found)
        finally:
            os.close(again)

    def _wait(self, identity: int, wire: int, address: bytes, target: int, code: int) -> bool:
        """Keep a call that must wait; False where it is over because the socket does not wait."""
        if fcntl.fcntl(wire, fcntl.F_GETFL) & os.O_NONBLOCK:
            return False
        if len(self._waiting) >= MAX_WAITING:
            raise RefusedError(errno.ENOBUFS)
        limit = self._option(wire, SO_SNDTIMEO, 16)
        seconds = int.from_bytes(limit[:8], "little") + int.from_bytes(limit[8:], "little") / 1e6
        timed_out = errno.EINPROGRESS if code in NOT_YET else errno.EAGAIN
        deadline = time.monotonic() + seconds if seconds else 0.0
        self._waiting[identity] = Waiting(wire, address, target, deadline, timed_out)
        if timed_out == errno.EINPROGRESS:
            self._poll.register(wire, select.POLLOUT)
        return True

    def _try_again(self, identity: int, now: float, *, check: bool) -> None:
        call = self._waiting[identity]
        code = self._once_more(call)
        if code == errno.EAGAIN or code in NOT_YET:
            if call.deadline and now >= call.deadline:
                code = call.timed_out
            elif not check or self._still(identity):
                return
        self._answer(identity, code)
        del self._waiting[identity]
        if call.timed_out == errno.EINPROGRESS:
            self._poll.unregister(call.wire)
        os.close(call.wire)
        if call.target >= 0:
            os.close(call.target)

    def _once_more(self, call: Waiting) -> int:
        return attempt(call.wire, call.address, unix=call.timed_out == errno.EAGAIN)

    def _still(self, identity: int) -> bool:
        try:
            self._valid(identity)
        except OSError:
            return False
        return True
