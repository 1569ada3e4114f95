"""tidegate.holds.unix_socket."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from tidegate.holds.unix_socket import listen
from tidegate.model.errors import StartError


def test_it_listens_in_the_first_folder_for_this_user_alone(tmp_path: Path) -> None:
    """HLD-14: somebody can connect at the path; nobody else's program may."""
    umask = os.umask(0)
    try:
        path, fd = listen([str(tmp_path), "/nowhere"])
        assert os.umask(0) == 0  # as it was
    finally:
        os.umask(umask)
    with socket.socket(fileno=fd) as server, socket.socket(socket.AF_UNIX) as client:
        assert os.path.dirname(path) == str(tmp_path)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert not os.get_inheritable(fd)
        client.connect(path)
        server.accept()[0].close()


def test_without_a_folder_of_its_own_the_task_does_not_start(tmp_path: Path) -> None:
    """HLD-7: the socket is never made where others see it; a name that is taken is an error, not taken over."""
    with pytest.raises(StartError):
        listen([])
    path, fd = listen([str(tmp_path)])
    with pytest.raises(OSError, match="in use"):
        listen([str(tmp_path)])
    os.close(fd)
    assert os.path.exists(path)
