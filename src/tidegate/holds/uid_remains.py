"""What is left of a user of the range: a uid is given to nobody else before this is nothing (HLD-3).

Processes anywhere on this machine, files in the folders where everybody may make some, System V and POSIX IPC of this
namespace, and jobs for later. A task has its own /tmp, /run, /dev/shm and IPC, and the rest read-only: what is found
here was not made by one, or something went wrong: the uid is left alone either way.

Rules of the file: it looks and changes nothing; folders are looked into as deep as a bound.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108 (they are looked into)
JOBS = ("/var/spool/cron/crontabs", "/var/spool/cron", "/var/spool/at", "/var/spool/cron/atjobs")
IPC = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
_DEEPEST = 1
_MOST = 20000  # files that are looked at
_HEADERS = ("uid", "cuid")


def remains(uid: int, root: str = "") -> str:
    """Name the first thing that is left of this user, '' where there is nothing. `root` is for tests."""
    return next(_found(uid, root), "")


def _found(uid: int, root: str) -> Iterator[str]:
    for name in os.listdir(f"{root}/proc"):
        if name.isdigit() and uid in _owners(f"{root}/proc/{name}/status"):
            yield f"process {name}"
    looked = [0]
    for folder in FOLDERS:
        yield from _files(root + folder, uid, looked, 0)
    for folder in JOBS:
        for name in _names(root + folder):
            try:
                if os.lstat(f"{root}{folder}/{name}").st_uid == uid or name == str(uid):
                    yield f"{folder}/{name}"
            except OSError:
                continue
    for path in IPC:
        if uid in _ipc(root + path):
            yield f"an entry of {path}"


def _owners(path: str) -> tuple[int, ...]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("State:\tZ"):
                    return ()  # it has ended, and waits for its parent to hear of it
                if line.startswith("Uid:"):
                    return tuple(int(word) for word in line.split()[1:])
    except OSError:
        pass  # it has just ended
    return ()


def _files(folder: str, uid: int, looked: list[int], depth: int) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        looked[0] += 1
        if looked[0] > _MOST:
            return
        try:
            if entry.stat(follow_symlinks=False).st_uid == uid:
                yield entry.path
            elif depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, uid, looked, depth + 1)
        except OSError:
            continue


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _ipc(path: str) -> set[int]:
    """The users of a table of System V IPC: proc_sysvipc(5), columns by their names."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return set()
    if not lines:
        return set()
    columns = [number for number, name in enumerate(lines[0].split()) if name in _HEADERS]
    return {int(line.split()[column]) for line in lines[1:] for column in columns}
