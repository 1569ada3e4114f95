"""Stops a server at each system call of consequence, without a change to it: `Steps` runs a command under a filter.

The filter (seccomp_unotify(2)) hands every write, sync, send, connect, rename and unlink of the command to this
process before it is made. `Steps` counts them from when it is armed, and at the one that is wanted it kills the whole
process with SIGKILL, so that the call is never made; all others go on as they are. SQLite's own writes are among them.

    python tests/server_steps.py CONTROL COMMAND...      what is started: puts the filter on itself, sends the
                                                         listener through descriptor CONTROL, and becomes COMMAND
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))  # a program, too

from tidegate.holds import linux
from tidegate.holds.bpf import ALLOW, NOTIFY, NUMBER, Program
from tidegate.holds.on_behalf import NOTIF_SEND
from tidegate.holds.seccomp import install
from tidegate.holds.watcher import CONTINUE, NOTIF_RECV, NOTIFICATION

CALLS = {
    "x86_64": {
        1: "write", 18: "pwrite64", 20: "writev", 42: "connect", 44: "sendto", 46: "sendmsg", 74: "fsync",
        75: "fdatasync", 77: "ftruncate", 82: "rename", 87: "unlink", 264: "renameat", 263: "unlinkat", 275: "splice",
    },
    "aarch64": {
        64: "write", 68: "pwrite64", 66: "writev", 203: "connect", 206: "sendto", 211: "sendmsg", 82: "fsync",
        83: "fdatasync", 46: "ftruncate", 38: "renameat", 35: "unlinkat", 76: "splice",
    },
}  # fmt: skip


def _filter() -> bytes:
    program = Program()
    program.load(NUMBER)
    for number in CALLS[linux.MACHINE]:
        if linux.MACHINE == "x86_64" or number != 211:
            program.if_equal(number, "ask")
    program.give(ALLOW)
    program.label("ask")
    program.give(NOTIFY)
    return program.assemble()


def argv(control: int, command: list[str]) -> list[str]:
    """Return the command line that runs `command` under the filter."""
    return [sys.executable, os.path.abspath(__file__), str(control), *command]


class Steps:
    """See the head of the file. `control` is the other end of the pair whose one end the command was started with."""

    def __init__(self, control: socket.socket) -> None:
        _, fds, _, _ = socket.recv_fds(control, 1, 1)
        control.close()
        self._listener = fds[0]
        self._lock = threading.Lock()
        self._armed = False
        self._kill_at = -1
        self._pid = 0
        self.seen: list[str] = []
        self.killed = ""  # the call at which it was killed
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def arm(self, pid: int, kill_at: int) -> None:
        """Count from now on; kill process `pid` at the call with this number, where it comes to that."""
        with self._lock:
            self._pid, self._kill_at, self._armed = pid, kill_at, True

    def disarm(self) -> list[str]:
        """Count no more; return what was counted."""
        with self._lock:
            self._armed = False
            return list(self.seen)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while not poll.poll()[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
            call = bytearray(NOTIFICATION)
            try:
                fcntl.ioctl(self._listener, NOTIF_RECV, call, True)
            except OSError:
                continue  # it has ended meanwhile
            if not self._kills(call):
                # struct seccomp_notif_resp { id, val, error, flags }
                with contextlib.suppress(OSError):
                    reply = bytes(call[:8]) + bytes(12) + CONTINUE.to_bytes(4, "little")
                    fcntl.ioctl(self._listener, NOTIF_SEND, reply)
        os.close(self._listener)

    def _kills(self, call: bytearray) -> bool:
        with self._lock:
            if not self._armed or self.killed:
                return bool(self.killed)
            name = CALLS[linux.MACHINE][int.from_bytes(call[16:20], "little")]
            self.seen.append(f"{name} {self._target(call)}")
            if len(self.seen) <= self._kill_at:
                return False
            self.killed = self.seen[-1]
            os.kill(self._pid, signal.SIGKILL)
            return True

    @staticmethod
    def _target(call: bytearray) -> str:
        # What the first argument leads to, where it is a descriptor.
        pid, first = int.from_bytes(call[8:12], "little"), int.from_bytes(call[32:40], "little")
        try:
            path = os.readlink(f"/proc/{pid}/fd/{first}")
        except OSError:
            return "?"
        return os.path.basename(path).partition(":")[0]


def main() -> None:
    """Put the filter on, hand out its listener, and become the command."""
    control = socket.socket(fileno=int(sys.argv[1]))
    if os.geteuid() != 0:
        linux.call("prctl", linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Sending it on is a sendmsg() too, which nobody could answer yet: another thread, made before, is not filtered.
    ready, listener = threading.Event(), [0]

    def send() -> None:
        ready.wait()
        socket.send_fds(control, [b"l"], [listener[0]])

    sender = threading.Thread(target=send)
    sender.start()
    listener[0] = install(_filter(), listener=True)
    ready.set()
    sender.join()
    os.close(listener[0])
    control.close()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
