"""What can stand in the place of a file, for the tests of the journal."""

from __future__ import annotations

import os
import socket
from pathlib import Path

NOT_FILES = ("pipe", "folder", "link", "dangling link", "socket", "device")


def put(kind: str, path: Path) -> None:
    """Put something that is no file in the place of this one, which is kept beside where there was one."""
    kept = path.with_name(path.name + ".kept")
    if path.exists():
        path.rename(kept)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        kept.touch()
        path.symlink_to(kept)
    elif kind == "dangling link":
        path.symlink_to(path.with_name("nowhere"))
    elif kind == "socket":
        folder = os.open(path.parent, os.O_PATH)  # its path may be longer than an address can be
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
    else:
        path.symlink_to("/dev/zero")  # a device of our own needs root, and would read as this does


def word(kind: str) -> str:
    """Return how it is named."""
    named = {"folder": "a folder", "pipe": "a pipe", "socket": "a socket"}.get(kind, "a symbolic link")
    return f"{named} stands in the place of a file"
