"""The key of an action log and its sealed head, in a folder that no task can read.

    actions.key    32 random bytes
    actions.head   two slots, written in turn: whatever interrupts a write, the other one is whole

Losing the key is losing the proof: a log whose key is gone is never gone on with under a new one.
"""

from __future__ import annotations

import errno
import os

from tidegate.journal.chain import KEY_BYTES, Head, head_text, read_head
from tidegate.journal.files import open_regular
from tidegate.model.errors import StartError

KEY_NAME = "actions.key"
HEAD_NAME = "actions.head"
_SLOT = 512  # bytes; the text of a head is about 300


def read_key(keys: str) -> bytes:
    """Return the key in this folder.

    Raises:
        StartError: when there is none that can be read, or it is no key.
    """
    path = os.path.join(keys, KEY_NAME)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            key = os.read(fd, KEY_BYTES + 1)
        finally:
            os.close(fd)
    except OSError as error:
        raise StartError(
            f"the key of the action log, {path!r}, cannot be read: {os.strerror(error.errno or errno.EIO)}",
            fix="put it back, or move the log's folder aside to begin a new log",
            code="journal",
        ) from None
    if len(key) != KEY_BYTES:
        raise StartError(
            f"the key of the action log, {path!r}, is damaged",
            fix="put it back, or move it and the log's folder aside to begin a new log",
            code="journal",
        )
    return key


def make_key(keys: str) -> bytes:
    """Return the key in this folder, made and on the disk where there was none.

    Raises:
        StartError: as `read_key`.
        OSError: when it cannot be made.
    """
    path = os.path.join(keys, KEY_NAME)
    if not os.path.lexists(path):
        fresh = f"{path}.new"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, os.urandom(KEY_BYTES))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(fresh, path)
    return read_key(keys)


def newest_head(keys: str, key: bytes) -> Head | None:
    """Return the newest head that this key has sealed, None where there is none."""
    try:
        with open_regular(os.path.join(keys, HEAD_NAME)) as file:
            text = file.read(2 * _SLOT)
    except OSError:
        return None
    found = [read_head(text[start : start + _SLOT].rstrip(), key) for start in (0, _SLOT)]
    return max((head for head in found if head is not None), key=lambda head: head.seq, default=None)


class HeadFile:
    """Where a log's writer keeps its head.

    Raises:
        OSError: from the constructor, when the file cannot be made.
    """

    def __init__(self, keys: str, key: bytes) -> None:
        self._key = key
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(os.path.join(keys, HEAD_NAME), flags, 0o600)
        os.posix_fallocate(self._fd, 0, 2 * _SLOT)  # a full disk can never keep a head back

    def write(self, head: Head) -> None:
        """Write a head into the older slot."""
        os.pwrite(self._fd, head_text(head, self._key).ljust(_SLOT - 1) + b"\n", _SLOT * (head.seq % 2))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)
