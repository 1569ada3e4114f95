"""The server that runs here: that it answers and is this version; what a killed one left (SRV-1, SRV-4, HLD-8).

Rules of the file: nothing is made, and no row where no server has ever run. A place is taken for stale only while its
lock is free, and it is mended under that lock, so that no server can begin meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import contextmanager

from tidegate import __version__
from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.journal.heads import KEY_NAME
from tidegate.model.errors import StartError, TidegateError
from tidegate.runtime.server_link import find_server
from tidegate.runtime.state import RUN_FOLDER, key_folder, state_folder
from tidegate.state.database import look_at
from tidegate.state.folders import STORE_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SERVER, _STORE, _KEY = "server", "store", "seal key"
_STALE = ("front.sock", "api.sock", "server.json", "server.json.new", "port.new")
_INFO = 4096  # bytes of server.json, which has about 100


def check_server(environ: Mapping[str, str]) -> list[Check]:
    """Return the rows of the server, its store and its key; none for what is not there."""
    try:
        state = state_folder(environ)
    except StartError:
        return []  # the row of the state folder says it
    return [*_server(state), *_store(state), *_key(state)]


def _server(state: str) -> list[Check]:
    folder = os.path.join(state, RUN_FOLDER)
    if not os.path.lexists(os.path.join(folder, "lock")):
        return []
    try:
        with _alone(folder) as alone:
            left = [name for name in _STALE if os.path.lexists(os.path.join(folder, name))] if alone else []
    except OSError as error:
        return [
            Check(_SERVER, FAIL, f"{error.filename} cannot be looked at: {error.strerror}", f"see who owns {folder}")
        ]
    if not alone:
        return [_running(state, folder)]
    if not left:
        return [Check(_SERVER, OK, "none runs")]
    what = f"one ended without a word and left {', '.join(left)} in {folder}"
    return [Check(_SERVER, WARN, what, "the next start takes them over: tidegate serve", lambda: _sweep(folder))]


@contextmanager
def _alone(folder: str) -> Iterator[bool]:
    """Yield whether no server runs; while that is so none can begin."""
    fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def _sweep(folder: str) -> None:
    with _alone(folder) as alone:
        for name in _STALE if alone else ():
            try:
                os.unlink(os.path.join(folder, name))
            except FileNotFoundError:
                continue


def _running(state: str, folder: str) -> Check:
    info = _info(folder)
    pid = info.get("pid")
    again = f"kill {pid}; tidegate serve" if isinstance(pid, int) else "end it, and start it again: tidegate serve"
    if info.get("version", __version__) != __version__:
        said = ascii(info["version"])[:40]
        return Check(_SERVER, FAIL, f"the one that runs is tidegate {said}, and this is {__version__}", again)
    try:
        link = find_server(state, lambda _line: None)
        if link is None:
            return Check(_SERVER, FAIL, f"it runs (pid {pid}), and nobody listens in {folder}", again)
        try:
            tasks = link.do("list", all=False, limit=1000)
        finally:
            link.close()
    except TidegateError as error:
        return Check(_SERVER, FAIL, error.what, again)
    port = info.get("api_port")
    where = f", API on port {port} of loopback" if port else ""
    return Check(_SERVER, OK, f"it runs (pid {pid}), {len(tasks)} living task{'s'[: len(tasks) != 1]}{where}")


def _info(folder: str) -> dict[str, object]:
    try:
        with open(os.path.join(folder, "server.json"), encoding="utf-8") as file:
            found = json.loads(file.read(_INFO))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _store(state: str) -> list[Check]:
    if not os.path.lexists(os.path.join(state, STORE_FILE)):
        return []
    try:
        look_at(state)
    except StartError as error:
        return [Check(_STORE, FAIL, error.what, error.fix)]
    return [Check(_STORE, OK)]


def _key(state: str) -> list[Check]:
    # That it is there, and fits, is for the row of the action log.
    path = os.path.join(key_folder(state), KEY_NAME)
    try:
        found = os.lstat(path)
    except OSError:
        return []
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return [Check(_KEY, FAIL, f"{path} is not a file of yours", "see who owns it")]
    if found.st_mode & 0o077:
        return [Check(_KEY, FAIL, f"{path} is open to others", f"chmod 600 {path}", lambda: os.chmod(path, 0o600))]
    return [Check(_KEY, OK)]
