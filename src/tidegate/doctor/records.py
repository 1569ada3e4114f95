"""Whether records can be kept: the state folder, the room on its disk, and the action log (JRN-2, JRN-5)."""

from __future__ import annotations

import os
import stat

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.journal.verify import verify
from tidegate.model.errors import StartError
from tidegate.runtime.state import key_folder, log_folder, need_home, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ROOM = 256 * 1024 * 1024  # bytes: below that a busy task can fill the disk with its record within hours
_FOLDER, _LOG = "state folder", "action log"


def check_records(environ: Mapping[str, str]) -> list[Check]:
    """Look at what is there, and make nothing."""
    try:
        state = state_folder(environ)
        need_home(state, environ)
    except StartError as error:
        return [Check(_FOLDER, FAIL, error.what, error.fix)]
    return [_folder(state), *_log(state)]


def _folder(state: str) -> Check:
    place = state
    while not os.path.lexists(place):  # it is made by the first run, inside what is there
        place = os.path.dirname(place)
    try:
        found, room = os.stat(place), os.statvfs(place)
    except OSError as error:
        return Check(_FOLDER, FAIL, f"{place} cannot be looked at: {error.strerror}", "set XDG_STATE_HOME")
    if not stat.S_ISDIR(found.st_mode):
        return Check(_FOLDER, FAIL, f"{place} is not a folder", f"move it away: mv {place} {place}.old")
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=True) or room.f_flag & os.ST_RDONLY:
        return Check(_FOLDER, FAIL, f"{place} cannot be written", "set XDG_STATE_HOME to a folder that can")
    if place == state and found.st_uid != os.geteuid():
        return Check(_FOLDER, FAIL, f"{state} belongs to uid {found.st_uid}", "set XDG_STATE_HOME, or chown it")
    if place == state and found.st_mode & 0o077:
        return Check(_FOLDER, FAIL, f"{state} is open to others", f"chmod 700 {state}", lambda: os.chmod(state, 0o700))
    free = room.f_bavail * room.f_frsize
    if free < ROOM:
        return Check(_FOLDER, WARN, f"{free >> 20} MiB are left on the disk of {place}", "make room: lines get lost")
    return Check(_FOLDER, OK)


def _log(state: str) -> list[Check]:
    folder = log_folder(state)
    if not os.path.isdir(folder):
        return []  # no server has run here
    try:
        found = verify(folder, key_folder(state))
    except StartError as error:
        return [Check(_LOG, FAIL, error.what, error.fix)]
    except OSError as error:
        return [Check(_LOG, FAIL, f"{error.filename} cannot be read: {error.strerror}", f"see who owns {folder}")]
    if found.ok:
        return [Check(_LOG, OK)]
    return [Check(_LOG, FAIL, f"it is not what was written: {found.findings[0].what}", "tidegate log verify")]
