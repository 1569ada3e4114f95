"""A folder for what a container is given by its engine: private to this user, gone with the task.

    <state>/run/containers/tidegate-container-*    of a task: its variables, and a relay's sockets
    /run/user/UID, or the temporary folder         where there is no state: to try a transport

In the state folder, since every hold hides that whole: a task that shares /tmp would find the others' there. A file in
it says whose it is, so that one that a crash left is found by the next task; its name does, too, since for a moment
it is there and the file is not.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from tidegate.holds.container import owner
from tidegate.model.errors import StartError

_PREFIX = "tidegate-container-"
_OWNER = "owner"
_SLASH = "+"
_BELOW = "run/containers"


class WorkFolder:
    """One such folder. `state` is tidegate's own, '' for none."""

    def __init__(self, state: str = "") -> None:
        place = _place(state)
        try:
            for folder in (state, os.path.dirname(place), place) if state else ():
                os.makedirs(folder, 0o700, exist_ok=True)  # one by one: the mode is the last one's only
            self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{owner.me().replace('/', _SLASH)}-", dir=place)
        except OSError as error:
            raise StartError(f"{place} cannot be written: {error.strerror}", code="work-folder") from None
        with open(os.path.join(self.path, _OWNER), "w", encoding="utf-8") as file:
            file.write(owner.me())

    def remove(self) -> None:
        """Remove it; may be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)


def sweep_folders(state: str = "") -> list[str]:
    """Remove this user's folders whose owner has ended; their paths. Never raises."""
    left = []
    places = {place for place in (_place(state), _place("")) if os.path.isdir(place)}
    for path in [os.path.join(place, name) for place in places for name in os.listdir(place)]:
        try:
            if not os.path.basename(path).startswith(_PREFIX) or os.lstat(path).st_uid != os.geteuid():
                continue
            if not owner.is_gone(_owner_of(path)):
                continue
        except OSError:
            continue  # being removed
        shutil.rmtree(path, ignore_errors=True)
        left.append(path)
    return left


def _owner_of(path: str) -> str:
    try:
        with open(os.path.join(path, _OWNER), encoding="utf-8") as file:
            text = file.read(1000)
    except FileNotFoundError:
        text = ""
    return text or os.path.basename(path).removeprefix(_PREFIX).rpartition("-")[0].replace(_SLASH, "/")


def _place(state: str) -> str:
    if state:
        return os.path.join(state, _BELOW)
    runtime = f"/run/user/{os.getuid()}"
    return runtime if os.access(runtime, os.W_OK) else tempfile.gettempdir()
