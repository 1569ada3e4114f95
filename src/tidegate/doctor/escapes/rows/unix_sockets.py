"""Unix sockets of this machine that were there before the task: docker's, an agent's, an editor's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct

from tidegate.doctor.escapes.table import FENCED, HELD, escape, neighbour
from tidegate.doctor.escapes.tools import nested, number, syscall, umount, unix, wrong


@escape("ENOENT", "ECONNREFUSED")
def unix_socket_in_tmp() -> None:
    """A listener in the machine's /tmp (B85)."""
    unix(HELD["unix_tmp"])


@escape("ENOENT", "ECONNREFUSED")
def unix_socket_in_run() -> None:
    """A listener in the machine's /run, as docker's (B79)."""
    unix(HELD["unix_run"])


@escape("ECONNREFUSED")
def unix_socket_at_home() -> None:
    """A listener in the home folder, as ssh's control sockets."""
    unix(HELD["unix_home"])


@escape("ECONNREFUSED")
def unix_socket_in_the_workspace() -> None:
    """A listener in the workspace itself."""
    unix(HELD["unix_work"])


@escape("ECONNREFUSED", "EPERM")
def abstract_unix_socket() -> None:
    """A listener with an abstract name."""
    unix(HELD["unix_abstract"])


@escape("EXDEV", "ENOENT", "EPERM")
def another_name_for_a_socket() -> None:
    """A hard link to a covered socket is a link to the cover."""
    os.link(HELD["unix_home"], HELD["workspace"] + "/link.sock")
    unix(HELD["workspace"] + "/link.sock")


@escape("EINVAL", "EPERM")
def uncovering_a_socket() -> None:
    """Nobody inside can take the cover off."""
    with contextlib.suppress(PermissionError):
        umount(HELD["unix_home"])
        wrong("uncovered")
    nested()
    umount(HELD["unix_home"])


@escape("ESOCKTNOSUPPORT", holds=FENCED)
def unix_datagram_socket() -> None:
    """A datagram socket could name a receiver behind a pointer."""
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


@escape("ESOCKTNOSUPPORT", holds=FENCED)
def unix_raw_socket() -> None:
    """The kernel makes a datagram socket of it."""
    socket.socket(socket.AF_UNIX, socket.SOCK_RAW)


@escape("ESOCKTNOSUPPORT", holds=FENCED)
def unix_datagram_pair() -> None:
    """One of a pair can name a receiver, too."""
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)


@escape("EBUSY")
def a_listener_of_our_own_for_calls() -> None:
    """A filter inside cannot answer for calls in place of the watcher."""
    program = struct.pack("HBBI", 0x06, 0, 0, 0x7FC00000)  # RET USER_NOTIF
    kept = ctypes.create_string_buffer(program)
    fprog = struct.pack("HxxxxxxQ", 1, ctypes.addressof(kept))
    syscall(number(317, 277), 1, 8, fprog)


@escape("EINVAL", "EPERM", "ESRCH", "ENOPROTOOPT", holds=FENCED)
def ending_who_answers_for_sockets() -> None:
    """A peer's process can be asked for, but nothing can be done to the watcher by it."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("\0peer")
        server.listen()
        client.connect("\0peer")
        peer = server.accept()[0]
        process = peer.getsockopt(socket.SOL_SOCKET, 77)  # SO_PEERPIDFD
        for taken in range(8):
            with contextlib.suppress(PermissionError):
                syscall(number(438, 438), process, taken, 0)
                wrong("a descriptor of the watcher")
        syscall(number(424, 424), process, signal.SIGKILL, 0, 0)


@escape("EBUSY")
def moving_the_cover_of_a_socket() -> None:
    """Nor rename what is covered."""
    os.rename(HELD["unix_home"], HELD["unix_home"] + ".2")


@escape("ECONNREFUSED")
def moving_the_folder_of_a_socket() -> None:
    """Renaming the folder takes the cover along."""
    folder = os.path.dirname(HELD["unix_folder"])
    os.rename(folder, folder + "2")
    try:
        unix(folder + "2/s")
    finally:
        os.rename(folder + "2", folder)


@neighbour()
def no_descriptor_of_the_machine() -> None:
    """Nothing but the three standard descriptors is inherited (B85)."""
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the one that listed them
        if int(name) > 2 and not target.startswith("pipe:"):  # a row reports through a pipe
            wrong(f"{name} is {target}")
