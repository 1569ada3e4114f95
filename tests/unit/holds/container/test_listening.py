"""listening.py: a socket in a folder, however long its path."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from tidegate.holds.container.listening import listen_at

if TYPE_CHECKING:
    from pathlib import Path


def test_it_listens_at_a_path_of_any_length(tmp_path: Path) -> None:
    """Longer than an address takes, connected to from the folder, open to every user who is let into it (HLD-4)."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    for name, kind in (("stream", socket.SOCK_STREAM), ("packets", socket.SOCK_SEQPACKET)):
        with socket.socket(fileno=listen_at(str(folder), name, kind)) as server:
            assert os.stat(folder / name).st_mode & 0o777 == 0o666
            fd = os.open(folder, os.O_PATH)
            with socket.socket(socket.AF_UNIX, kind) as client:
                client.connect(f"/proc/self/fd/{fd}/{name}")
                server.accept()[0].close()
            os.close(fd)
