"""No way to a gate that does not answer, where there is no network of the task's own and no right to nftables (HLD-7).

The watcher makes the task's connections (landlock_watcher.py), so it makes none while one shared byte says so. What is
open already is ended from outside: each process of the task is looked at, and its sockets that lead to the gate are
taken (pidfd_getfd(2)) and disconnected, which resets them (connect(2) with AF_UNSPEC). The kernel does not disconnect a
socket while somebody waits in a call on it; that one is shut down, which reads as its end.

Rules of the file: nothing here raises; a process that is gone, or may not be looked into, is passed over. Such a
process made no connection: the watcher could not look into it either.
"""

from __future__ import annotations

import mmap
import os
from _socket import AF_INET, AF_UNSPEC, SHUT_RDWR, SOCK_STREAM, socket

from tidegate.holds import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PASSES = 8  # at most: what was being made while we looked
_LOOPBACK = (b"0100007F", b"0000000000000000FFFF00000100007F")  # as /proc/net/tcp and tcp6 have 127.0.0.1
_LISTEN, _TIME_WAIT, _CLOSE = b"0A", b"06", b"07"
UNSPECIFIED = AF_UNSPEC.to_bytes(2, "little") + bytes(14)  # struct sockaddr


class Pause:
    """See the head of the file. It is made before the watcher is forked, and both have its byte."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._byte = mmap.mmap(-1, 1)

    def is_shut(self) -> bool:
        """Whether no connection may be made."""
        return self._byte[0] != 0

    def shut(self, init: int, *, shut: bool) -> bool:
        """Make no connection and end those of the task whose first process is `init`, or make them again."""
        self._byte[0] = shut
        if shut:
            for _ in range(_PASSES):
                if not _end_open(init, self._port):
                    break
        return True

    def close(self) -> None:
        """Give the byte back."""
        self._byte.close()


def _end_open(init: int, port: int) -> bool:
    """End what is open now; whether there was anything."""
    wanted = _leading_to(port)
    found = False
    for pid in _processes(init) if wanted else ():
        for number in _sockets(pid, wanted):
            found = _end(pid, number) or found
    return found


def _leading_to(port: int) -> set[str]:
    """What connections of this machine to that port are called in /proc/PID/fd (proc_net(5))."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}", "rb") as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue  # a kernel without IPv6
        for line in lines:
            words = line.split()
            where, _, at = words[2].partition(b":")
            if at == b"%04X" % port and where in _LOOPBACK and words[3] not in (_LISTEN, _TIME_WAIT, _CLOSE):
                found.add(f"socket:[{words[9].decode('ascii')}]")
    return found


def _processes(init: int) -> Iterator[int]:
    """All that came from this process, which reaps what lost its parent."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
            except (OSError, IndexError):
                continue  # it has ended
    rest = [init]
    while rest:
        children = parents.pop(rest.pop(), [])
        yield from children
        rest += children


def _sockets(pid: int, wanted: set[str]) -> Iterator[int]:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for number in numbers:
        try:
            if os.readlink(f"/proc/{pid}/fd/{number}") in wanted:
                yield int(number)
        except OSError:
            continue


def _end(pid: int, number: int) -> bool:
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        taken = linux.call("pidfd_getfd", process, number, 0)
    except OSError:
        return False
    finally:
        os.close(process)
    wire = socket(AF_INET, SOCK_STREAM, 0, taken)
    try:
        linux.call("connect", taken, UNSPECIFIED, len(UNSPECIFIED))
    except OSError:
        try:
            wire.shutdown(SHUT_RDWR)
        except OSError:
            return False  # it has ended by itself
    finally:
        wire.close()
    return True
