"""What the rows are written with: raw system calls, namespaces inside, connections. Standard library only.

Numbers are those of x86-64 and arm64, as in holds/syscalls.py, which a test compares with the kernel's headers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes.table import CAPTURING, HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
PATIENCE = 5  # seconds; what takes longer is not "at once"
_current = [""]


class SaidError(Exception):
    """What a row was answered, where that is no errno: a status, an alert."""


def begin(row: str) -> None:
    """Say which row runs in this process: what it sends carries its name, so that a canary knows who came."""
    _current[0] = row


def word() -> str:
    """What the row that runs says to whomever it reaches. It can be a label of a name, too."""
    return f"escaped-{_current[0]}"


def syscall(number: int, *arguments: Any) -> int:
    """Make a raw system call."""
    words = [argument if isinstance(argument, bytes) else ctypes.c_long(argument) for argument in arguments]
    result: int = LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return result


def number(x86: int, arm: int) -> int:
    """The number of a system call on this machine."""
    return x86 if X86 else arm


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    syscall(number(272, 97), flags)


def nested(*, mounts: bool = True, network: bool = False) -> None:
    """Get every capability in a user namespace of our own, as any program may.

    A task run as root cannot be mapped there, for want of CAP_SETFCAP here; the capabilities it has all the same.
    """
    uid, gid = os.getuid(), os.getgid()
    unshare(0x10000000 | (0x20000 if mounts else 0) | (0x40000000 if network else 0))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except PermissionError:
            if uid != 0:
                raise


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    """Mount something."""
    words = [os.fsencode(word) + b"\0" if word else 0 for word in (source, target, kind)]
    syscall(number(165, 40), *words, flags, 0)


def umount(target: str, flags: int = 0) -> None:
    """Unmount something."""
    syscall(number(166, 39), os.fsencode(target) + b"\0", flags)


def wrong(what: str) -> None:
    """Say that something was seen that must not be."""
    raise AssertionError(what)


def none_of(attempt: Callable[[str], None], paths: Iterable[str], worked: str) -> OSError:
    """Try each path and return the last refusal; of one at which the attempt succeeds it is said what `worked`."""
    last: OSError = FileNotFoundError(2, "none")
    for path in paths:
        try:
            attempt(path)
        except OSError as error:
            last = error
            continue
        wrong(f"{path} {worked}")
    return last


def tcp(family: int, address: str, port: int) -> None:
    """Connect by TCP. A connection that is captured is made, and must be ended by the gate without a byte."""
    with socket.socket(family, socket.SOCK_STREAM) as wire:
        wire.settimeout(PATIENCE)
        wire.connect((address, port))
        wire.sendall(word().encode() + b"\r\n\r\n")
        if HELD["hold"] in CAPTURING:
            wire.recv(1)


def udp(family: int, address: str, port: int) -> None:
    """Send a datagram twice: the second reports that nobody took the first."""
    with socket.socket(family, socket.SOCK_DGRAM) as wire:
        wire.settimeout(PATIENCE)
        wire.connect((address, port))
        for _ in range(2):
            wire.send(word().encode())
            time.sleep(0.02)


def unix(address: str) -> None:
    """Connect to a unix socket; an abstract name begins with @."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.connect("\0" + address[1:] if address.startswith("@") else address)
        wire.sendall(word().encode())


@contextlib.contextmanager
def turning(one: Callable[[], object], other: Callable[[], object]) -> Iterator[None]:
    """Have a thread do the one and the other, again and again, meanwhile."""
    import threading

    over = threading.Event()

    def turn() -> None:
        while not over.is_set():
            one()
            other()

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def all_refused(attempts: Iterable[Callable[[], object]], code: int, what: str) -> None:
    """Try each; each has to be refused with this errno, and the last refusal is raised."""
    last = OSError(code, "nothing was tried")
    for count, attempt in enumerate(attempts):
        try:
            attempt()
        except OSError as error:
            if error.errno != code:
                raise
            last = error
            continue
        wrong(f"{what} ({count})")
    raise last


def race(
    one: Callable[[], object], other: Callable[[], object], attempt: Callable[[int], int], *, reaches: bool = True
) -> None:
    """Attempt many times, with a new TCP socket each, while a thread does the one and the other.

    An attempt gives 0 where it connected; who is reached then must be the gate, or, where nobody may be, nobody.
    """
    with turning(one, other):
        for _ in range(100):
            with socket.socket() as wire:
                if attempt(wire.fileno()) == 0 and (not reaches or wire.getpeername()[1] != HELD["port"]):
                    wrong("another was reached")
