"""What of this person's files would run outside later, found on this machine: the table's rows as paths (HLD-15).

Three answers for each row, since only what exists can be covered: it is there (`guarded`); it is not, and its folder
lets no new name come to be (`closed`); it is not, and its folder must stay open, as that of a workspace (`told`: a
person hears of it afterwards). In a workspace nothing is closed. A folder that this user cannot look into is covered
whole: its owner, and so the task, can change its mode, and could have in an earlier run.

It looks and changes nothing, but for the hooks folder of git_files.py.
"""

from __future__ import annotations

import os

from tidegate.holds.mountinfo import is_within
from tidegate.holds.paths import found_path, real_path
from tidegate.holds.pins import could_write, needed_pins
from tidegate.model.errors import StartError
from tidegate.model.value import Value
from tidegate.runtime.git_files import led_to, repositories, repository_files
from tidegate.runtime.later_files import HOME, OPEN, VARIABLES, WORKSPACE, ZSH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_XDG = {".config": "XDG_CONFIG_HOME", ".local/share": "XDG_DATA_HOME", ".local/state": "XDG_STATE_HOME"}
_AGENT_FOLDERS = {".claude": "CLAUDE_CONFIG_DIR", ".codex": "CODEX_HOME"}
_PROGRAM_FOLDERS = ("bin", "sbin", "condabin")
_SHIMS = "shims"  # of version managers: they run what lies beside them
_BESIDE_PROGRAMS = ("lib", "lib64", "libexec")
_SYSTEM = ("/proc", "/sys", "/dev")
_LOOK = os.R_OK | os.X_OK


class Guarded(Value):
    """Paths as they are named. `closed` are folders."""

    guarded: tuple[str, ...]
    closed: tuple[str, ...]
    told: tuple[str, ...]


def homes_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the real paths of this person's homes: of $HOME and, where they differ, of the password file."""
    import pwd

    named = [environ.get("HOME", "")]
    try:
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        named.append("")  # nobody who is known here
    found = dict.fromkeys(os.path.realpath(path) for path in named if os.path.isabs(path))
    return tuple(path for path in found if path != "/" and os.path.isdir(path))


def guarded_files(environ: Mapping[str, str], folder: str, homes: tuple[str, ...]) -> Guarded:
    """Return what is protected for a task in this folder. All are real paths.

    Raises:
        StartError: where the folder itself or a home cannot be looked into.
    """
    for place in (folder, *homes):
        if not os.access(place, _LOOK) and (place == folder or could_write(place, os.geteuid())):
            raise StartError(
                f"the folder {place!a} cannot be read, so nothing in it can be protected",
                fix=f"chmod u+rx {place!a}",
                code="unreadable",
            )
    look = _Look(folder, homes)
    for home in homes:
        for sub, _kind, names in HOME:
            for base in _bases(sub, _XDG, environ, home):
                look.at(base, names)
        for sub, _kind, names in OPEN:
            for base in _bases(sub, _AGENT_FOLDERS | _XDG, environ, home):
                look.at(base, names, closes=not os.path.isdir(base))
    if os.path.isabs(environ.get("ZDOTDIR", "")):
        look.at(environ["ZDOTDIR"], ZSH)
    for variable in VARIABLES:
        for path in environ.get(variable, "").split(":"):
            if os.path.isabs(path):
                look.add(path)
    for path in environ.get("PATH", "").split(":"):
        look.program_folder(path)
    _look_for_git(look, environ, folder, homes)
    return look.result()


def _look_for_git(look: _Look, environ: Mapping[str, str], folder: str, homes: tuple[str, ...]) -> None:
    """Look for the repositories of the folder, where their configuration leads, and the table's rows at their tops."""
    configs = [f"{home}/.gitconfig" for home in homes]
    configs += [f"{base}/git/config" for home in homes for base in _bases(".config", _XDG, environ, home)]
    configs += [path for path in (environ.get("GIT_CONFIG_GLOBAL", ""), "/etc/gitconfig") if path]
    first = homes[0] if homes else ""
    leads = [*led_to(configs, "", first)]
    tops = [folder]
    for dot in repositories(folder, environ):
        found, doubtful = repository_files(dot)
        tops.append(dot.removesuffix("/.git"))
        look.told.extend(doubtful)
        own = [path for path in found if path.endswith(("/config", "/config.worktree"))]
        leads += [*found, *led_to((*configs, *own), tops[-1], first)]
    for path in dict.fromkeys(leads):
        look.add(path)
    if not os.path.lexists(f"{folder}/.git"):
        look.told.append(f"{folder}/.git")
    for base in dict.fromkeys(tops):
        if base not in homes:
            for _sub, _kind, names in WORKSPACE:
                look.at(base, names, closes=False)


def marks_of(paths: Iterable[str], folder: str) -> dict[str, tuple[int, int, int, int]]:
    """Return what tells, for each path in the folder that is there, whether it is another file, or changed, later.

    A name in an open folder can be given to another file by somebody outside, who takes its protection away with it.
    """
    found = {}
    for path in paths:
        if path == folder or not is_within(path, folder):
            continue
        try:
            there = os.stat(path)
        except OSError:
            continue  # a link to what is not there, and is told when it is
        found[path] = (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns)
    return found


def _bases(sub: str, variables: Mapping[str, str], environ: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Where the folder is by default, and where a variable puts it: the next shell may not have that variable."""
    usual = os.path.join(home, sub).rstrip("/")
    moved = environ.get(variables.get(sub, ""), "")
    return (usual, os.path.normpath(moved)) if os.path.isabs(moved) and os.path.normpath(moved) != usual else (usual,)


class _Look:
    def __init__(self, folder: str, homes: tuple[str, ...]) -> None:
        self.folder = folder
        self.homes = homes
        self.told: list[str] = []
        self._bases: list[str] = []
        self._guarded: dict[str, None] = {}
        self._closed: dict[str, None] = {}
        self._listed: dict[str, frozenset[str] | None] = {}
        self._above: dict[str, bool] = {}

    def at(self, base: str, names: Iterable[str], *, closes: bool = True) -> None:
        """Look for these names in one folder."""
        base = base.rstrip("/")
        if os.path.isdir(base) and not os.access(base, _LOOK):
            self._guard(base)  # what is in it is not known: whole
            return
        if closes and base not in self._bases:
            self._bases.append(base)
        present = self._names(base)
        if present is None:
            if closes:
                self._close_above(base)  # as if it were a name that is missing
            return
        for name in names:
            path = f"{base}/{name}"
            if name.partition("/")[0] in present and ("/" not in name or _may_be_there(path)):
                self.add(path)
            elif closes:
                self._close_above(path)
            else:
                self.told.append(path)

    def add(self, path: str) -> None:
        """Protect one path: as it is, or from coming to be."""
        if real := found_path(path):
            self._guard(path, real)
            return
        real = os.path.realpath(path)
        if os.path.islink(path):
            self._guard(path)
        shut = _shut_above(real)
        if shut:
            self._guard(shut)  # what is in it is not known: whole
        else:
            self._close_above(real)

    def program_folder(self, path: str) -> None:
        """Protect a folder on the PATH, and the libraries of what is in it, where this user could change it."""
        real = real_path(path)
        if not path.startswith("/") or self._is_workspaces(real) or real in self.homes:
            return
        if not any(is_within(real, home) for home in self.homes):
            uid = os.geteuid()
            if uid == 0 or not (needed_pins((path,), uid) or (os.path.isdir(path) and could_write(path, uid))):
                return
        self.add(path)
        above, name = os.path.split(path.rstrip("/"))
        if name == _SHIMS:
            self._guard(above)
        if name in _PROGRAM_FOLDERS and above not in ("/", "/usr", "/usr/local"):
            for beside in _BESIDE_PROGRAMS:
                if os.path.isdir(os.path.join(above, beside)):
                    self._guard(os.path.join(above, beside))

    def result(self) -> Guarded:
        """What was found."""
        told = tuple(path for path in dict.fromkeys(self.told) if not os.path.lexists(path))
        return Guarded(tuple(self._guarded), tuple(self._closed), told)

    def _names(self, base: str) -> frozenset[str] | None:
        if base not in self._listed:
            try:
                self._listed[base] = frozenset(os.listdir(base or "/"))
            except OSError:
                self._listed[base] = None
        return self._listed[base]

    def _guard(self, path: str, real: str = "") -> None:
        real = real or real_path(path)
        holds_home = any(is_within(home, real) for home in self.homes)
        if real != "/" and not holds_home and not any(is_within(real, one) for one in _SYSTEM):
            self._guarded[path] = None

    def _close_above(self, path: str) -> None:
        """Close the nearest folder above that is there; where new names in it are part of the work, it is told."""
        folder = path.rpartition("/")[0] or "/"
        passed = []
        while folder not in self._above and not os.path.isdir(folder):
            passed.append(folder)
            folder = folder.rpartition("/")[0] or "/"
        if folder not in self._above:
            real = real_path(folder)
            within = any(is_within(real, base) for base in (*self.homes, *self._bases))
            self._above[folder] = within and not self._is_workspaces(real)
            if self._above[folder]:
                self._closed[real] = None
        closes = self._above[folder]
        self._above.update(dict.fromkeys(passed, closes))
        if not closes:
            self.told.append(path)

    def _is_workspaces(self, path: str) -> bool:
        """Whether a path belongs to the workspace, and not to a home that is in it, or is it."""
        return is_within(path, self.folder) and not any(is_within(home, self.folder) for home in self.homes)


def _may_be_there(path: str) -> bool:
    """Whether there is something by this name, or this user is kept from knowing."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _shut_above(path: str) -> str:
    """The nearest folder above a real path that is there, if this user is kept from looking into it; else ''."""
    if not _may_be_there(path):
        return ""
    folder = path
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.path.isdir(folder):
            return "" if os.access(folder, os.X_OK) else folder
    return ""
