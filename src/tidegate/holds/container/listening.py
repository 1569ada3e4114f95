"""A unix socket in a folder that a container is given, whose path may be longer than an address takes (unix(7))."""

from __future__ import annotations

import _socket
import os

BACKLOG = 1024


def listen_at(folder: str, name: str, kind: int = _socket.SOCK_STREAM) -> int:
    """Listen at this name in the folder, for whatever user the container has; the descriptor.

    Raises:
        OSError: when it cannot be made.
    """
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = _socket.socket(_socket.AF_UNIX, kind | _socket.SOCK_CLOEXEC)
    try:
        sock.bind(f"/proc/self/fd/{fd}/{name}")
        os.chmod(os.path.join(folder, name), 0o666)  # noqa: S103 - what leads to the folder is private
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(fd)
    return sock.detach()
