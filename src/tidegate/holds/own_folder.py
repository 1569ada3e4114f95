"""A folder of the machine's /tmp that belongs to one task, where it can have no /tmp of its own (hold `landlock`).

Its name carries the front's pid and when that began, so that a folder of a front that is gone is known and removed by
the next start. Only folders of this user are looked at; nothing is followed out of one.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "tidegate-task."
TMP, RUN, TRUST = "tmp", "run", "trust"
TRUST_FOLDER = "/run/tidegate"  # where such files are in a hold with a /run of the task's own (runtime/trust.py)
_PLACES = ("/tmp", "/var/tmp")  # noqa: S108 (a folder with a name nobody knows is made there, for this user alone)


def _places(wanted: str) -> tuple[str, ...]:
    return (wanted, *_PLACES) if os.path.isabs(wanted) and os.path.isdir(wanted) else _PLACES


def make_own_folder(wanted: str = "") -> str:
    """Make one with `tmp` and `run` in it, where the person has temporary files or else in /tmp; its real path.

    Raises:
        StartError: where this user can make none.
    """
    for place in _places(wanted):
        path = os.path.join(
            os.path.realpath(place), f"{PREFIX}{os.getpid()}.{_began(os.getpid())}.{os.urandom(6).hex()}"
        )
        try:
            os.mkdir(path, 0o700)
            for name in (TMP, RUN):
                os.mkdir(f"{path}/{name}", 0o700)
        except OSError:
            continue
        return path
    raise StartError(
        "no folder for the task's temporary files can be made in /tmp", fix="make room there", code="hold-own"
    )


def put_trust(folder: str, files: Iterable[tuple[str, bytes]]) -> str:
    """Write the files that say whom the task trusts, as far as they are of a folder of tidegate's; the one they are in.

    What lies over a distribution's own bundle has no place here: programs find the bundle by their variables.
    """
    path = os.path.join(folder, TRUST)
    os.mkdir(path, 0o700)
    for name, content in files:
        if os.path.dirname(name) == TRUST_FOLDER:
            made = os.open(
                f"{path}/{os.path.basename(name)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444
            )
            with os.fdopen(made, "wb") as file:
                file.write(content)
    return path


def remove_own_folder(path: str) -> None:
    """Remove it with all that is in it. What cannot be removed stays for the next sweep."""
    try:
        _remove(path)
    except OSError:
        return


def sweep_own_folders(wanted: str = "") -> None:
    """Remove those of fronts that are gone."""
    for place in _places(wanted):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            words = name.split(".")
            if (
                not name.startswith(PREFIX)
                or len(words) != 4
                or _began(int(words[1]) if words[1].isdigit() else 0) == words[2]
            ):
                continue
            path = os.path.join(os.path.realpath(place), name)
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                remove_own_folder(path)


def _began(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty where there is none (proc_pid_stat(5))."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _remove(path: str) -> None:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                try:
                    os.chmod(entry.path, 0o700)
                except OSError as error:
                    if error.errno != errno.EPERM:
                        raise
                _remove(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(path)
