"""The sockets of this machine that have a path."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from tidegate.holds.sockets import listed_sockets, parse_sockets

if TYPE_CHECKING:
    from pathlib import Path

LISTED = """\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 1001 /run/docker.sock
0000000000000000: 00000002 00000000 00010000 0001 01 1002 @abstract
0000000000000000: 00000002 00000000 00010000 0001 01 1003 relative/path
0000000000000000: 00000003 00000000 00000000 0001 03 1004
0000000000000000: 00000003 00000000 00000000 0001 03 1005 /run/docker.sock
0000000000000000: 00000002 00000000 00010000 0005 01 1006 /home/ann/with space.sock
"""


def test_absolute_paths_each_once() -> None:
    """Abstract, relative and nameless sockets are left out; a path may hold spaces (HLD-14)."""
    assert parse_sockets(LISTED) == ("/run/docker.sock", "/home/ann/with space.sock")
    assert parse_sockets("Num RefCount\n") == ()


def test_a_socket_that_is_bound_is_listed(tmp_path: Path) -> None:
    """The kernel's own list holds a stream and a datagram socket while they are open (HLD-14)."""
    paths = [os.path.join(tmp_path, name) for name in ("one", "other one")]
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        one.bind(paths[0])
        other.bind(paths[1])
        assert set(paths) <= set(listed_sockets())
    assert not set(paths) & set(listed_sockets())
