"""What of this person's files would run outside later, found on this machine: the table's rows as paths (HLD-15).

Three answers for each row, since only what exists can be covered: it is there (`guarded`); it is not, and its folder
lets no new name come to be (`closed`); it is not, and its folder must stay open, as that of a workspace (`told`: a
person hears of it afterwards). In a workspace nothing is closed.

It looks and changes nothing, but for the hooks folder of git_files.py.
"""

from __future__ import annotations

import os

from tidegate.holds.mountinfo import is_within
from tidegate.model.value import Value
from tidegate.runtime.git_files import led_to, repository_files, repository_top
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


class Guarded(Value):
    """Paths as they are named. `closed` are folders."""

    guarded: tuple[str, ...]
    closed: tuple[str, ...]
    told: tuple[str, ...]


def guarded_files(environ: Mapping[str, str], folder: str, home: str) -> Guarded:
    """Return what is protected for a task in this folder. Both are real paths; `home` is '' where there is none."""
    look = _Look(folder, "" if home == "/" else home)
    if look.home:
        for sub, _kind, names in HOME:
            for base in _bases(sub, _XDG, environ, home):
                look.at(base, names)
        for sub, _kind, names in OPEN:
            for base in _bases(sub, _AGENT_FOLDERS, environ, home):
                look.at(base, names, closes=not os.path.isdir(base))
        if os.path.isabs(environ.get("ZDOTDIR", "")):
            look.at(environ["ZDOTDIR"], ZSH)
    for variable in VARIABLES:
        for path in environ.get(variable, "").split(":"):
            if os.path.isabs(path):
                look.add(path)
    for path in environ.get("PATH", "").split(":"):
        look.program_folder(path)
    top = repository_top(folder)
    configs = [os.path.join(home, name) for name in (".gitconfig", ".config/git/config")] if look.home else []
    configs += [path for path in (environ.get("GIT_CONFIG_GLOBAL", ""),) if path]
    if top:
        found, doubtful = repository_files(top)
        for path in found:
            look.add(path)
        look.told.extend(doubtful)
        configs += [path for path in found if path.endswith("/config")]
    for path in led_to(configs, top, home):
        look.add(path)
    for base in dict.fromkeys((folder, top)):
        if base and base != look.home:
            for _sub, _kind, names in WORKSPACE:
                look.at(base, names, closes=False)
    return look.result()


def _bases(sub: str, variables: Mapping[str, str], environ: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Where the folder is by default, and where a variable puts it: the next shell may not have that variable."""
    usual = os.path.join(home, sub).rstrip("/")
    moved = environ.get(variables.get(sub, ""), "")
    return (usual, os.path.normpath(moved)) if os.path.isabs(moved) and os.path.normpath(moved) != usual else (usual,)


class _Look:
    def __init__(self, folder: str, home: str) -> None:
        self.folder = folder
        self.home = home
        self.told: list[str] = []
        self._guarded: dict[str, None] = {}
        self._closed: dict[str, None] = {}
        self._listed: dict[str, frozenset[str] | None] = {}
        self._seen: set[str] = set()

    def at(self, base: str, names: Iterable[str], *, closes: bool = True) -> None:
        """Look for these names in one folder."""
        base = base.rstrip("/")
        present = self._names(base)
        if present is None:
            if closes:
                self._close_above(base)  # as if it were a name that is missing
            return
        for name in names:
            path = f"{base}/{name}"
            if name.partition("/")[0] in present and ("/" not in name or os.path.lexists(path)):
                self.add(path)
            elif closes:
                self._close_above(path)
            else:
                self.told.append(path)

    def add(self, path: str) -> None:
        """Protect one path: as it is, or from coming to be."""
        if os.path.exists(path):
            self._guard(path)
        elif os.path.islink(path):
            self._guard(path)
            self._close_above(os.path.realpath(path))
        elif self._is_workspaces(path):
            self.told.append(path)
        else:
            self._close_above(path)

    def program_folder(self, path: str) -> None:
        """Protect a folder on the PATH, and the libraries of what is in it, where this user could change it."""
        if not path.startswith("/") or self._is_workspaces(os.path.realpath(path)):
            return
        in_home = bool(self.home) and is_within(os.path.realpath(path), self.home)
        if not in_home and (os.geteuid() == 0 or not os.access(path, os.W_OK)):
            return
        if os.path.realpath(path) == self.home:
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
        return Guarded(tuple(self._guarded), tuple(self._closed), tuple(dict.fromkeys(self.told)))

    def _names(self, base: str) -> frozenset[str] | None:
        if base not in self._listed:
            try:
                self._listed[base] = frozenset(os.listdir(base or "/"))
            except OSError:
                self._listed[base] = None
        return self._listed[base]

    def _guard(self, path: str) -> None:
        real = os.path.realpath(path)
        holds_home = bool(self.home) and is_within(self.home, real)
        if real != "/" and not holds_home and not any(is_within(real, one) for one in _SYSTEM):
            self._guarded[path] = None

    def _close_above(self, path: str) -> None:
        """Close the nearest folder above that is there, if it is one in which new names are no part of the work."""
        folder = path.rpartition("/")[0] or "/"
        while folder not in self._seen and not os.path.isdir(folder):
            self._seen.add(folder)
            folder = folder.rpartition("/")[0] or "/"
        if folder in self._seen:
            return
        self._seen.add(folder)
        folder = os.path.realpath(folder)
        if not self._is_workspaces(folder) and self.home and is_within(folder, self.home):
            self._closed[folder] = None

    def _is_workspaces(self, path: str) -> bool:
        """Whether a path belongs to the workspace, and not to a home that is in it, or is it."""
        return is_within(path, self.folder) and not (self.home and is_within(self.home, self.folder))
