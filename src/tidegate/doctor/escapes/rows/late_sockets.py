"""Unix sockets of this machine that were made when the task's view had been built."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.table import FENCED, HELD, escape
from tidegate.doctor.escapes.tools import LIBC, mount, nested, number, syscall, turning, unix, wrong

if TYPE_CHECKING:
    from collections.abc import Callable


# Sockets made when the task's view had been built. `open` shares the machine's sockets; the rest do not.


def _folder() -> str:
    """A folder in sight with such a socket: at home, and where that is not there (containers, uid) the workspace."""
    late: str = HELD["late_home"] if os.path.lexists(HELD["late_home"]) else HELD["late_work"]
    return os.path.dirname(late)


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_at_home() -> None:
    """A listener that was made at home after the start."""
    unix(HELD["late_home"])


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_in_the_workspace() -> None:
    """A listener that was made in the workspace after the start."""
    unix(HELD["late_work"])


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_of_another_network() -> None:
    """A listener of another network namespace, as a container's in a shared folder."""
    unix(HELD["late_elsewhere"])


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_relative_path() -> None:
    """The same by a path from the folder it is in, short enough for any length of address."""
    os.chdir(_folder())
    unix("late.sock")


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_our_own_process_files() -> None:
    """The same through /proc/self."""
    os.chdir(_folder())
    unix("/proc/self/cwd/late.sock")


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_descriptor() -> None:
    """The same through a descriptor of the file."""
    unix(f"/proc/self/fd/{os.open(_folder() + '/late.sock', os.O_PATH)}")


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_symlink() -> None:
    """The same through a symlink of the task's, where a socket of its own was before."""
    _in_place_of_our_own(os.symlink)


@escape("ECONNREFUSED", holds=FENCED)
def late_unix_socket_by_a_hard_link() -> None:
    """The same by a hard link of the task's, where a socket of its own was before."""
    _in_place_of_our_own(os.link)


def _in_place_of_our_own(put: Callable[[str, str], None]) -> None:
    own = _folder() + "/replaced.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(own)
        server.listen()
        unix(own)
        os.unlink(own)
        put(_folder() + "/late.sock", own)
        try:
            unix(own)
        finally:
            os.unlink(own)


@escape("ECONNREFUSED", holds=FENCED, who="ordinary")
def late_unix_socket_from_a_namespace_inside() -> None:
    """The same with other mounts, below another name, in a root of our own."""
    nested()
    mount(_folder(), "/tmp", flags=0x5000)  # MS_BIND | MS_REC
    os.chroot("/tmp")
    unix("/late.sock")


@escape("ECONNREFUSED", holds=FENCED)
def exchanging_the_address_while_it_is_judged() -> None:
    """A thread changes the path while the call is on its way: what was judged is what is called."""
    own, late = (b"\1\0" + os.fsencode(path).ljust(100, b"\0") for path in ("raced.sock", "late.sock"))
    os.chdir(_folder())
    address = ctypes.create_string_buffer(own, len(own))
    _race(lambda: _copy(address, late), lambda: _copy(address, own), address)


@escape("ECONNREFUSED", holds=FENCED)
def exchanging_the_file_while_it_is_judged() -> None:
    """A thread exchanges the files behind two names while the call is on its way."""
    os.chdir(_folder())
    for name in ("flip", "flop"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    os.link("late.sock", "flop")
    address = ctypes.create_string_buffer(b"\1\0flip\0")
    exchange = number(316, 276), -100, b"flip\0", -100, b"flop\0", 2  # renameat2, RENAME_EXCHANGE
    _race(lambda: syscall(*exchange), lambda: None, address, name="flip")


@escape("ECONNREFUSED", holds=FENCED)
def exchanging_the_descriptor_while_it_is_judged() -> None:
    """A thread puts a unix socket where a TCP socket was while the call is on its way."""
    os.chdir(_folder())
    address = ctypes.create_string_buffer(b"\1\0late.sock\0")
    fd = socket.socket(socket.AF_UNIX).detach()
    own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).detach()
    other = socket.socket(socket.AF_UNIX).detach()
    _race(lambda: os.dup2(own, fd), lambda: os.dup2(other, fd), address, fd=fd)


def _copy(address: ctypes.Array[ctypes.c_char], text: bytes) -> None:
    ctypes.memmove(address, text, len(text))


def _race(
    one: Callable[[], object],
    other: Callable[[], object],
    address: ctypes.Array[ctypes.c_char],
    name: str = "raced.sock",
    fd: int = -1,
) -> None:
    """Connect many times while a thread does the one and the other. Who is reached must be our own server."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen(1024)
    with turning(one, other):
        for _ in range(100):
            client = socket.socket(socket.AF_UNIX)
            wire = fd if fd >= 0 else client.fileno()
            if LIBC.connect(wire, address, len(address)) == 0:
                if fd >= 0:
                    wrong("reached")
                server.accept()[0].close()  # hangs, and the alarm ends it, where it was another's
            client.close()
    unix("late.sock")
