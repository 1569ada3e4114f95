"""Asking the kernel where a unix socket listens."""

from __future__ import annotations

import os
import socket

import pytest

from tidegate.holds.unix_diag import listener


def test_a_listening_sockets_name_is_told_while_it_listens() -> None:
    """An abstract name; nothing where it only is bound; an error when it is closed (HLD-14)."""
    name = f"\0tidegate-diag-{os.getpid()}".encode()
    with socket.socket(socket.AF_UNIX) as wire:
        inode = os.fstat(wire.fileno()).st_ino
        wire.bind(name)
        assert listener(inode) == b""
        wire.listen()
        assert listener(inode) == name
    with pytest.raises(OSError, match="No such file"):
        listener(inode)
