"""Holding names in place: what a protected path goes through cannot be renamed or removed from inside.

A mask or a read-only bind on `~/.config/tidegate` is worth little if the task can rename `~/.config` and put its own
there: inside nothing changes, but the next run outside reads what the task wrote. The kernel refuses to rename or
remove a name that is a mount point in the caller's mount namespace, whatever path leads to it. So a mount is put on
each such name, in a copy of its folder that is then buried under the task's /dev. In the task's own view nothing
changes: no extra mount is crossed, so renames and links elsewhere in these folders work as before.

Symlinks on the way are held in the same manner (move_mount does not follow the last one). What it does not do: keep
anything from being renamed by a process outside the hold.
"""

from __future__ import annotations

import os
import stat

from tidegate.holds import mounts
from tidegate.holds.masks import WORKSHOP
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.holds.masks import Masks

MAX_SYMLINKS = 40  # path_resolution(7)


def names_on_the_way(path: str, seen: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Each (real folder, name) that is looked up when `path` is opened, symlinks and what they lead through included.

    What was `seen` of names on other paths is not looked up again: where a link leads, '' for what is none.
    Ends early where the kernel would: at what does not exist, is too long, or is a symlink too many. What a task left
    lying must not stop the next start.
    """
    found: dict[tuple[str, str], None] = {}
    seen = {} if seen is None else seen
    folder = "/"
    waiting = _parts(path)[::-1]
    links = 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            folder = os.path.dirname(folder)
            continue
        here = f"{folder if folder != '/' else ''}/{name}"
        target = seen.get(here)
        if target is None:
            try:
                target = os.readlink(here) if stat.S_ISLNK(os.lstat(here).st_mode) else ""
            except OSError:
                break
            seen[here] = target
        found[folder, name] = None
        if not target:
            folder = here
            continue
        links += 1
        if links > MAX_SYMLINKS:
            break
        if target.startswith("/"):
            folder = "/"
        waiting += _parts(target)[::-1]
    return list(found)


def needed_pins(paths: Iterable[str], uid: int) -> list[tuple[str, str]]:
    """The names on the way to these paths that a task of this user could rename or replace."""
    wanted: dict[tuple[str, str], None] = {}
    open_folders: dict[str, bool] = {}
    seen: dict[str, str] = {}
    for path in paths:
        for folder, name in names_on_the_way(path, seen):
            if folder not in open_folders:
                open_folders[folder] = could_write(folder, uid)
            if open_folders[folder]:
                wanted[folder, name] = None
    return list(wanted)


def hold_in_place(pins: Iterable[tuple[str, str]], masks: Masks) -> None:
    """Put a mount on each of these names, in copies that are read-only and out of sight.

    Must run when what is not to be seen is covered, and /proc: copies of folders bring that along.

    Raises:
        StartError: where a name leads to what is out of sight, so that nothing can be put on it.
        OSError: where a folder cannot be copied.
    """
    shown: dict[str, str] = {}
    for folder, name in pins:
        if folder not in shown:
            shown[folder] = f"{WORKSHOP}/{len(shown)}"
            os.mkdir(shown[folder])
            copy = mounts.clone(folder)
            mounts.set_attributes(copy, mounts.READ_ONLY, recursive=True)
            mounts.attach(copy, shown[folder])
        target = f"{shown[folder]}/{name}"
        try:
            mode = os.lstat(target).st_mode
            mounts.attach(masks.empty(folder=stat.S_ISDIR(mode)), target)
        except OSError as error:
            raise StartError(
                f"{os.path.join(folder, name)} cannot be protected from the task ({error.strerror})",
                fix="it leads to tidegate's own files; replace a symlink there by a real folder",
                code="hold-pin",
            ) from error


def could_write(folder: str, uid: int) -> bool:
    """Whether this user may change names in the folder, now or after a chmod of its own."""
    return uid == 0 or os.stat(folder).st_uid == uid or os.access(folder, os.W_OK)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
