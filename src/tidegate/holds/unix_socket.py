"""A listening unix socket inside, served from outside: made where only the task sees it, gone with its mounts.

The folder is one that the task has of its own, so that the path leads nowhere outside; unix(7).
"""

from __future__ import annotations

import _socket
import os

from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "tidegate-ssh-agent"
BACKLOG = 16


def listen(folders: Sequence[str]) -> tuple[str, int]:
    """Make the socket in the first of these folders, for this user alone: its path and its descriptor.

    Raises:
        StartError: when there is no such folder.
        OSError: when it cannot be made.
    """
    if not folders:
        raise StartError(
            "the task has no folder of its own for the socket of its ssh agent",
            fix="share less than all of /run and /tmp",
        )
    path = os.path.join(folders[0], NAME)
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    umask = os.umask(0o177)
    try:
        made.bind(path)
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    finally:
        os.umask(umask)
    return path, made.detach()
