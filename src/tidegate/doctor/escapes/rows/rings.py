"""io_uring: a ring through which the kernel makes calls that no filter sees (B86). A whole one, so that it would work.

linux/io_uring.h: struct io_uring_params is 120 bytes, with sq_off at 40 and cq_off at 80; a submission is 64 bytes, a
completion 16.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
from typing import Any

from tidegate.doctor.escapes import needs
from tidegate.doctor.escapes.table import HELD, NETWORKED, escape
from tidegate.doctor.escapes.tools import syscall, word, wrong

SETUP, ENTER = 425, 426
OP_CONNECT, OP_SEND, OP_SOCKET = 16, 26, 45
GETEVENTS = 1
_SQ, _CQ, _SQES = 0, 0x8000000, 0x10000000
_there = needs.calls(SETUP, 8, bytes(120))


class Ring:
    """One ring, and what comes of one submission at a time."""

    def __init__(self) -> None:
        params = ctypes.create_string_buffer(120)
        self.fd = syscall(SETUP, 8, ctypes.addressof(params))
        self._sq_tail, _, _, _, _, self._array = struct.unpack_from("6I", params.raw, 44)
        self._cq_head, _, _, _, _, self._cqes = struct.unpack_from("6I", params.raw, 80)
        size = 4096
        self._sq: Any = mmap.mmap(self.fd, size, offset=_SQ)
        self._cq: Any = mmap.mmap(self.fd, size, offset=_CQ)
        self._sqes: Any = mmap.mmap(self.fd, 8 * 64, offset=_SQES)
        self._turn = 0

    def ask(self, code: int, fd: int, address: int = 0, length: int = 0, offset: int = 0) -> int:
        """Submit one and return its result.

        Raises:
            OSError: with its errno.
        """
        self._sqes[:64] = struct.pack("BBHiQQIIQ", code, 0, 0, fd, offset, address, length, 0, 7) + bytes(24)
        self._sq[self._array + 4 * (self._turn % 8) : self._array + 4 * (self._turn % 8) + 4] = struct.pack("I", 0)
        self._turn += 1
        self._sq[self._sq_tail : self._sq_tail + 4] = struct.pack("I", self._turn)
        syscall(ENTER, self.fd, 1, 1, GETEVENTS, 0, 0)
        at = self._cqes + 16 * ((self._turn - 1) % 16)
        (result,) = struct.unpack_from("i", self._cq, at + 8)
        self._cq[self._cq_head : self._cq_head + 4] = struct.pack("I", self._turn)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return int(result)


@escape("ENOSYS", needs=_there)
def io_uring() -> None:
    """A ring at all."""
    os.close(Ring().fd)


@escape("ENOSYS", holds=NETWORKED, needs=_there)
def io_uring_socket() -> None:
    """A socket of a kind that the filter refuses, made through a ring."""
    os.close(Ring().ask(OP_SOCKET, 40, length=0, offset=socket.SOCK_STREAM))


@escape("ENOSYS", holds=NETWORKED, needs=_there)
def io_uring_connect() -> None:
    """A connection to a unix socket of the machine's, made through a ring, which the watcher would not see."""
    address = ctypes.create_string_buffer(b"\1\0" + os.fsencode(HELD["late_home"]))
    said = ctypes.create_string_buffer(word().encode())
    with socket.socket(socket.AF_UNIX) as wire:
        ring = Ring()
        ring.ask(OP_CONNECT, wire.fileno(), ctypes.addressof(address), offset=len(address))
        ring.ask(OP_SEND, wire.fileno(), ctypes.addressof(said), len(said))
        wrong("connected")
