"""A folder for what a container is given by its engine: private to this user, gone with the task.

A file in it says whose it is, so that one that a crash left is found by the next task.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from tidegate.holds.container import owner

_PREFIX = "tidegate-container-"
_OWNER = "owner"


class WorkFolder:
    """One such folder, below /run/user where there is one, else below the folder for temporary files."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=_place())
        with open(os.path.join(self.path, _OWNER), "w", encoding="utf-8") as file:
            file.write(owner.me())

    def remove(self) -> None:
        """Remove it; may be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)


def sweep_folders() -> list[str]:
    """Remove this user's folders whose owner has ended; their paths. Never raises."""
    place = _place()
    left = []
    for name in os.listdir(place) if os.path.isdir(place) else ():
        path = os.path.join(place, name)
        try:
            if not name.startswith(_PREFIX) or os.lstat(path).st_uid != os.geteuid():
                continue
            with open(os.path.join(path, _OWNER), encoding="utf-8") as file:
                if not owner.is_gone(file.read(1000)):
                    continue
        except OSError:
            continue  # being made, or removed
        shutil.rmtree(path, ignore_errors=True)
        left.append(path)
    return left


def _place() -> str:
    runtime = f"/run/user/{os.getuid()}"
    return runtime if os.access(runtime, os.W_OK) else tempfile.gettempdir()
