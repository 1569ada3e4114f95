"""What a task will see, decided before anything is mounted: from the wishes of a LaunchSpec to plain lists of paths.

Rules of the file: it looks at the machine and changes nothing but one thing: a hidden folder that does not exist is
made, because one that is not there cannot be covered and the task would make it. Whatever cannot be done as asked is a
StartError with the fix.

It does not mount: tree.py does, in the child.
"""

from __future__ import annotations

import os
import stat

from tidegate.holds.device import SHARED_MEMORY
from tidegate.holds.inside import OFF
from tidegate.holds.mountinfo import aliases, is_within, read_mounts
from tidegate.holds.name_files import RESOLV_TEXT, name_files
from tidegate.holds.pins import needed_pins
from tidegate.holds.sockets import listed_sockets
from tidegate.model.errors import StartError
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.hold import LaunchSpec, Share
    from tidegate.holds.mountinfo import Mount
    from tidegate.holds.name_files import NameFile

OWN_FOLDERS = ("/tmp", "/run", "/var/run", SHARED_MEMORY)  # noqa: S108 (these are what is replaced)
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")
TEMPORARY = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")
KEPT_LINKS = ("current-system", "booted-system", "opengl-driver", "shm")  # /run of NixOS, Debian: where PATH leads


class Bound(Value):
    """Something of the machine that is bound at its own path, over a folder of the task's own."""

    path: str
    readonly: bool


class Plan(Value):
    """The view of one task. Every path is real; `replaced` are empty folders of the task's own."""

    mounts: tuple[Mount, ...]
    replaced: tuple[str, ...]
    made: tuple[tuple[str, int], ...]
    links: tuple[tuple[str, str], ...]
    bound: tuple[Bound, ...]
    devices: tuple[Bound, ...]
    readonly: tuple[str, ...]
    hidden: tuple[str, ...]
    sockets: tuple[str, ...]
    pins: tuple[tuple[str, str], ...]
    names: tuple[NameFile, ...] = ()

    @property
    def asks_loopback(self) -> bool:
        """Whether there is no resolv.conf to bind one over: programs ask 127.0.0.1 then (resolver(5))."""
        return all(one.text != RESOLV_TEXT for one in self.names)


def make_plan(spec: LaunchSpec, uid: int) -> Plan:
    """Decide the view for this task and user.

    Raises:
        StartError: for a workspace or a share that cannot be given.
    """
    table = read_mounts()
    replaced = _replaced(spec)
    hidden = _outermost(_everywhere(_hidden(spec.hidden), table))
    real = (os.path.realpath(path) for path in spec.readonly if os.path.exists(path))
    readonly = _outermost(tuple(dict.fromkeys(real)))
    _check_workspace(spec.workspace, replaced, hidden)
    shares = tuple(_share(share, hidden) for share in spec.shares)
    bound = [share for share in shares if not is_within(share.path, "/dev") or is_within(share.path, SHARED_MEMORY)]
    home = os.path.realpath(spec.env.get("HOME", "/"))
    kept = [path for path in (spec.workspace, home) if path and _is_below(path, replaced) and os.path.exists(path)]
    bound += [Bound(path, readonly=False) for path in kept]
    return Plan(
        mounts=table,
        replaced=replaced,
        made=_made(spec, uid, replaced),
        links=_links(),
        bound=tuple(sorted(bound, key=lambda one: (len(one.path), one.readonly))),
        devices=tuple(share for share in shares if share not in bound),
        readonly=tuple(path for path in _everywhere(readonly, table) if not _is_within_any(path, hidden)),
        hidden=hidden,
        sockets=_sockets(table, replaced, bound, shares, hidden),
        pins=tuple(
            (folder, name)
            for folder, name in needed_pins((*spec.hidden, *spec.readonly), uid)
            if not _is_within_any(folder, hidden)
        ),
        names=() if spec.capture == OFF else name_files(os.uname().nodename, replaced, (one.path for one in bound)),
    )


def _replaced(spec: LaunchSpec) -> tuple[str, ...]:
    """The folders that a task gets empty ones for, those inside another left out."""
    found: list[str] = []
    runtime = spec.env.get("XDG_RUNTIME_DIR")
    for path in (*OWN_FOLDERS, runtime):
        real = os.path.realpath(path) if path and path.startswith("/") else ""
        if not os.path.isdir(real) or any(is_within(real, other) for other in (*found, *SYSTEM_FOLDERS[:2])):
            continue
        if path == runtime and real in ("/", os.path.realpath(spec.env.get("HOME", "/"))):
            continue  # not a runtime folder, whatever the variable says
        found.append(real)
    return tuple(found)


def _made(spec: LaunchSpec, uid: int, replaced: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Folders that programs expect below those, with their modes."""
    made = {"/run/lock": 0o1777, f"/run/user/{uid}": 0o700}
    for name in (*TEMPORARY, "XDG_RUNTIME_DIR"):
        path = os.path.normpath(spec.env.get(name) or "/")
        if path not in replaced:
            made.setdefault(path, 0o700)
    return tuple((path, mode) for path, mode in made.items() if _is_below(path, replaced))


def _is_within_any(path: str, folders: tuple[str, ...]) -> bool:
    return any(is_within(path, folder) for folder in folders)


def _outermost(paths: tuple[str, ...]) -> tuple[str, ...]:
    """These paths without those inside another, which is treated whole."""
    return tuple(path for path in paths if not any(path != other and is_within(path, other) for other in paths))


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path != folder and is_within(path, folder) for folder in folders)


def _links() -> tuple[tuple[str, str], ...]:
    paths = [f"/run/{name}" for name in KEPT_LINKS]
    return tuple((path, os.readlink(path)) for path in paths if os.path.islink(path))


def _hidden(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The real paths of what is hidden; what is not there is made, unless this user (and so the task) could not."""
    found = []
    for path in paths:
        real = os.path.realpath(path)
        if not os.path.lexists(real):
            try:
                os.makedirs(real, 0o700, exist_ok=True)
            except (PermissionError, FileNotFoundError):
                continue
            except OSError as error:
                if error.errno == 30:  # EROFS: the task cannot make it either
                    continue
                raise StartError(
                    f"{path} cannot be made ({error.strerror})",
                    fix="the task would be able to put its own there; make the folder, or free the name",
                    code="hold-hidden",
                ) from error
        found.append(real)
    return tuple(found)


def _check_workspace(workspace: str | None, replaced: tuple[str, ...], hidden: tuple[str, ...]) -> None:
    if workspace is None or workspace == "/":
        return
    fix = "run it from a folder of its own, such as a project's"
    below_system = any(is_within(workspace, folder) for folder in SYSTEM_FOLDERS)
    if workspace in replaced or (below_system and not is_within(workspace, SHARED_MEMORY)):
        raise StartError(
            f"the task gets a {workspace} of its own, so it cannot work in the machine's", fix=fix, code="workspace"
        )
    if _is_within_any(workspace, hidden):
        raise StartError(f"{workspace} holds tidegate's own files, which no task sees", fix=fix, code="workspace")


def _share(share: Share, hidden: tuple[str, ...]) -> Bound:
    real = os.path.realpath(share.path)
    fix = "name the file or folder that the task needs"
    if not os.path.lexists(real):
        raise StartError(f"--share {share.path}: no such file or folder", fix=fix, code="share")
    if real in ("/", "/dev") or any(is_within(real, folder) for folder in SYSTEM_FOLDERS[:2]):
        raise StartError(f"--share {share.path}: this cannot be shared", fix=fix, code="share")
    if _is_within_any(real, hidden):
        raise StartError(f"--share {share.path}: these are tidegate's own files", fix=fix, code="share")
    return Bound(real, share.readonly)


def _everywhere(paths: tuple[str, ...], table: tuple[Mount, ...]) -> tuple[str, ...]:
    """These paths and the other names that lead to the same files, as far as this user can see them."""
    found: dict[str, None] = dict.fromkeys(paths)
    for path in paths:
        found.update(dict.fromkeys(other for other in aliases(path, table) if _same(path, other)))
    return tuple(found)


def _same(path: str, other: str) -> bool:
    """Whether `other` still leads there: a later mount may lie over it. A part of `path` counts as it is."""
    try:
        return os.path.lexists(other) and (is_within(other, path) or os.path.samestat(os.lstat(path), os.lstat(other)))
    except OSError:
        return False


def _sockets(
    table: tuple[Mount, ...],
    replaced: tuple[str, ...],
    bound: list[Bound],
    shares: tuple[Bound, ...],
    hidden: tuple[str, ...],
) -> tuple[str, ...]:
    """The sockets that stay in sight: not in a folder that is replaced, and not shared by the person."""
    visible = []
    for listed in listed_sockets():
        for path in (os.path.realpath(listed), *aliases(os.path.realpath(listed), table)):
            if any(is_within(path, share.path) for share in shares) or _is_within_any(path, hidden):
                continue
            if any(is_within(path, own) for own in replaced) and not any(is_within(path, one.path) for one in bound):
                continue
            if _is_socket(path):
                visible.append(path)
    return tuple(dict.fromkeys(visible))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
