"""Sockets of other users, without processes of theirs: the kernel takes a socket's owner from the thread's fsuid."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_libc = ctypes.CDLL(None)


@contextlib.contextmanager
def owning(uid: int) -> Iterator[None]:
    """Make what this thread opens meanwhile a user's (setfsuid(2)). Skips the test where root is wanted for that."""
    if os.geteuid() != 0:
        pytest.skip("sockets of other users can only be made by root")
    before = _libc.setfsuid(uid)
    try:
        assert _libc.setfsuid(-1 & 0xFFFFFFFF) == uid, f"fsuid {uid} is not to be had"  # an impossible one only asks
        yield
    finally:
        _libc.setfsuid(before)


def connect_as(uid: int, address: tuple[Any, ...], *, port: int = 0, family: int = socket.AF_INET) -> socket.socket:
    """Return a user's connection to an address, from a given port of this machine where one is named."""
    with owning(uid):
        sock = socket.socket(family)
    try:
        sock.settimeout(10)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if port:
            sock.bind(("127.0.0.1", port))
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def spare_port() -> int:
    """Return a port of the loopback that nothing uses, not even a connection that waits for stray packets."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def reset(sock: socket.socket) -> None:
    """Close a connection so that the other side is told to forget it at once."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()
