"""A policy written to a file: whole or not at all, and never over one that is there unless a person said so."""

from __future__ import annotations

import os
import stat

from tidegate.model.errors import UsageError
from tidegate.policy.positions import on_screen


def put(path: str, data: bytes, *, force: bool) -> None:
    """Write a file of this name.

    Raises:
        UsageError: when one is there already and not `force`, when what is there is no plain file, or when it cannot be
            written.
    """
    shown = f"'{on_screen(path, 200)}'"
    mode = None
    try:
        found = os.lstat(path)
    except OSError:
        found = None
    if found is not None:
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{shown} is there and is no plain file", fix="name another with --write FILE")
        if not force:
            raise UsageError(f"{shown} is there already", fix="--force writes over it")
        mode = stat.S_IMODE(found.st_mode)
    folder, name = os.path.split(os.path.abspath(path))
    fresh = os.path.join(folder, f".{name[:64]}.{os.urandom(6).hex()}.new")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
                if mode is not None:
                    os.fchmod(fd, mode)
            # A link is made only where nothing bears the name, also when somebody has just made it.
            (os.replace if force else os.link)(fresh, path)
        finally:
            if os.path.lexists(fresh):
                os.unlink(fresh)
    except FileExistsError:
        raise UsageError(f"{shown} is there already", fix="--force writes over it") from None
    except OSError as error:
        raise UsageError(f"{shown} cannot be written: {error.strerror}", fix="name another with --write FILE") from None
