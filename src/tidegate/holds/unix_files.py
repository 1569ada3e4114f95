"""Unix sockets with a path, for a process without rights: which file one is bound to, and binding in one folder only.

The kernel tells anybody which file a socket of this network is bound to (sock_diag(7), UNIX_DIAG_VFS; the answer has
the low 32 bits of the inode's number). And a bind() that must keep the caller's own text of the path, because
getsockname() gives it back, is made by a child that Landlock lets make sockets in the judged folder and nowhere else.
"""

from __future__ import annotations

import _socket
import errno
import os
import struct

from tidegate.holds import landlock, linux, netlink

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20  # linux/netlink.h, linux/sock_diag.h
UDIAG_SHOW_VFS, UNIX_DIAG_VFS = 2, 1  # linux/unix_diag.h
ANY_COOKIE = 0xFFFFFFFF
_HEAD = 16  # struct unix_diag_msg
_ANSWER = 4096


def file_of(wire: int) -> tuple[int, int] | None:
    """The device and the low half of the inode number of the file that a unix socket is bound to; None for none."""
    inode = os.fstat(wire).st_ino & 0xFFFFFFFF
    # struct unix_diag_req: family, protocol, pad, states, inode, show, cookie
    body = struct.pack("=BBHIIIII", _socket.AF_UNIX, 0, 0, 0xFFFFFFFF, inode, UDIAG_SHOW_VFS, ANY_COOKIE, ANY_COOKIE)
    with_kernel = netlink.connect(NETLINK_SOCK_DIAG)
    try:
        with_kernel.send(netlink.Message("unix sockets", SOCK_DIAG_BY_FAMILY, 0, body).packed(1))
        data = with_kernel.recv(_ANSWER, _socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    finally:
        with_kernel.close()
    for kind, _sequence, start, end in netlink.split(data):
        if kind == SOCK_DIAG_BY_FAMILY and end - start >= _HEAD:
            return _file_in(data[start + _HEAD : end])
    return None


def _file_in(attributes: bytes) -> tuple[int, int] | None:
    at = 0
    while at + 4 <= len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, at)
        if length < 4:
            return None
        if kind == UNIX_DIAG_VFS and length >= 12:
            inode, device = struct.unpack_from("=II", attributes, at + 4)
            return os.makedev(device >> 20, device & 0xFFFFF), inode
        at += length + -length % 4
    return None


def is_file(found: os.stat_result, file: tuple[int, int] | None) -> bool:
    """Whether this is the file that `file_of` told of."""
    return file is not None and (found.st_dev, found.st_ino & 0xFFFFFFFF) == file


def bind_in(wire: int, name: bytes, folder: int, umask: int) -> None:
    """Bind a unix socket to a name in a folder: nothing is looked up.

    Raises:
        OSError: as bind(2) says.
    """
    before, here = os.umask(umask), os.open(".", os.O_PATH | os.O_CLOEXEC)
    try:
        os.fchdir(folder)
        address = b"\1\0" + name + b"\0"
        linux.call("bind", wire, address, len(address))
    finally:
        os.fchdir(here)
        os.close(here)
        os.umask(before)


def bind_within(wire: int, path: bytes, folder: int, start: int, umask: int) -> None:
    """Bind a unix socket to a path, looked up from the folder `start`, where that makes a name in or below `folder`.

    Raises:
        OSError: as bind(2) says; EACCES where it would have been elsewhere.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = errno.EPERM
        try:
            made = landlock.ruleset(files=landlock.MAKE_SOCK)
            landlock.allow_below(made, folder, landlock.MAKE_SOCK)
            landlock.restrict(made)
            if not path.startswith(b"/"):
                os.fchdir(start)
            os.umask(umask)
            address = b"\1\0" + path + b"\0"
            linux.call("bind", wire, address, len(address))
            code = 0
        except OSError as error:
            code = error.errno or errno.EPERM
        finally:
            os.write(writing, code.to_bytes(2, "little"))
            os._exit(0)
    os.close(writing)
    answer = os.read(reading, 2)
    os.close(reading)
    os.waitpid(child, 0)
    code = int.from_bytes(answer, "little") if answer else errno.EPERM
    if code:
        raise OSError(code, os.strerror(code))
