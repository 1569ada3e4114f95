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
from tidegate.holds.layers import Step, Wishes, readonly_at, steps
from tidegate.holds.mountinfo import aliases, is_within, read_mounts
from tidegate.holds.name_files import RESOLV_TEXT, name_files, own_files
from tidegate.holds.paths import found_path, real_path
from tidegate.holds.pins import could_write, needed_pins
from tidegate.holds.sockets import listed_sockets
from tidegate.model.errors import StartError
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.hold import LaunchSpec, Share
    from tidegate.holds.idmap import Mapped
    from tidegate.holds.mountinfo import Mount
    from tidegate.holds.name_files import NameFile

OWN_FOLDERS = ("/tmp", "/run", "/var/run", SHARED_MEMORY)  # noqa: S108 (these are what is replaced)
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")
TEMPORARY = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")
MOST_FILES = 256  # loose files of a closed folder that stay writable; each costs a mount
MOST_FOLDERS = 4096  # and folders: half a second of mounts, measured; the kernel's own bound for all is 100,000
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
    steps: tuple[Step, ...]
    hidden: tuple[str, ...]
    sockets: tuple[str, ...]
    pins: tuple[tuple[str, str], ...]
    names: tuple[NameFile, ...] = ()
    strict: bool = False
    mapped: tuple[Mapped, ...] = ()  # shown as the task's user's own (idmap.py)
    owner: int = 0  # who the folders of the task's own belong to; 0: who makes them

    @property
    def readonly(self) -> tuple[str, ...]:
        """What is bound read-only."""
        return tuple(step.path for step in self.steps if step.readonly)

    @property
    def asks_loopback(self) -> bool:
        """Whether there is no resolv.conf to bind one over: programs ask 127.0.0.1 then (resolver(5))."""
        return all(one.text != RESOLV_TEXT for one in self.names)


def make_plan(spec: LaunchSpec, uid: int, closed: tuple[str, ...] = ()) -> Plan:
    """Decide the view for this task and user. `closed` are folders in which the task sees no more than its own.

    Raises:
        StartError: for a workspace or a share that cannot be given.
    """
    table = read_mounts()
    replaced = _replaced(spec, closed)
    hidden = _outermost(_everywhere(_hidden(spec.hidden), table))
    _check_workspace(spec.workspace, replaced, hidden)
    shares = tuple(_share(share, hidden) for share in spec.shares)
    bound = [share for share in shares if not is_within(share.path, "/dev") or is_within(share.path, SHARED_MEMORY)]
    home = real_path(spec.env.get("HOME", "/"))
    kept = [path for path in (spec.workspace, home) if path and _is_below(path, replaced) and os.path.exists(path)]
    bound += [Bound(path, readonly=False) for path in kept]
    view = steps(_wishes(spec, shares, hidden, table, uid))
    return Plan(
        mounts=table,
        replaced=replaced,
        made=_made(spec, uid, replaced),
        links=_links(),
        bound=tuple(sorted(bound, key=lambda one: (len(one.path), one.readonly))),
        devices=tuple(share for share in shares if share not in bound),
        steps=view,
        hidden=hidden,
        sockets=_sockets(table, replaced, bound, shares, hidden),
        pins=_pins(spec, view, hidden, table, uid),
        names=_named(spec, replaced, bound),
        strict=spec.strict,
    )


def _named(spec: LaunchSpec, replaced: tuple[str, ...], bound: list[Bound]) -> tuple[NameFile, ...]:
    """The files of ours that the task sees: how it looks names up, and whom it trusts."""
    back = tuple(one.path for one in bound)
    found = () if spec.capture == OFF else name_files(os.uname().nodename, replaced, back)
    return found + own_files(spec.trust, replaced, back)


def _wishes(
    spec: LaunchSpec, shares: tuple[Bound, ...], hidden: tuple[str, ...], table: tuple[Mount, ...], uid: int
) -> Wishes:
    """What was asked for, as real paths of what is there, with the other names of what is protected."""

    def seen(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path for path in paths if not _is_within_any(path, hidden))

    closed = {}
    firm = list(_everywhere(_outermost(_real(spec.readonly)), table))
    for folder in seen(_real(spec.closed)):
        if folder != "/" and os.path.isdir(folder) and could_write(folder, uid):
            closed[folder] = seen(_children(folder))
            firm += [other for other in aliases(folder, table) if _is_same(folder, other)]
    return Wishes(
        workspace=spec.workspace or "",
        shared=tuple(one.path for one in shares if not one.readonly and not is_within(one.path, "/dev")),
        firm=seen(tuple(firm)),
        guarded=seen(_everywhere(_outermost(_real(spec.guarded)), table)),
        closed=closed,
        writable=tuple(path for path in seen(_still_real(spec.writable)) if not _is_within_any(path, SYSTEM_FOLDERS)),
        strict=spec.strict,
    )


def _real(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(real for real in map(found_path, paths) if real))


def _still_real(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are there and no symlink leads to: another task could have put one there since they were chosen."""
    return tuple(path for path in paths if found_path(path) == path)


def _children(folder: str) -> tuple[str, ...]:
    """What is in a closed folder and can be bound: folders and files up to a bound; links cannot be changed there."""
    found: list[str] = []
    files = folders = 0
    if not os.access(folder, os.R_OK | os.X_OK):
        return ()  # all of it is read-only then
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders += 1
                if folders <= MOST_FOLDERS:
                    found.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and files < MOST_FILES:
                files += 1
                found.append(entry.path)
    return tuple(found)


def _pins(
    spec: LaunchSpec, view: tuple[Step, ...], hidden: tuple[str, ...], table: tuple[Mount, ...], uid: int
) -> tuple[tuple[str, str], ...]:
    """The names that must be held: none where the folder is read-only by whatever name it has."""
    said = {step.path: step.readonly for step in view}
    fixed: dict[str, bool] = {}
    found = []
    for folder, name in needed_pins((*spec.hidden, *spec.readonly, *spec.guarded, *spec.closed), uid):
        if folder not in fixed:
            names = (folder, *(other for other in aliases(folder, table) if _is_same(folder, other)))
            fixed[folder] = _is_within_any(folder, hidden) or all(
                readonly_at(path, said, strict=spec.strict) for path in names
            )
        if not fixed[folder]:
            found.append((folder, name))
    return tuple(found)


def _replaced(spec: LaunchSpec, closed: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that a task gets empty ones for, those inside another left out."""
    found: list[str] = []
    runtime = spec.env.get("XDG_RUNTIME_DIR")
    for path in (*OWN_FOLDERS, *closed, runtime):
        real = real_path(path) if path and path.startswith("/") else ""
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
        real = real_path(path)
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
        return os.path.lexists(other) and (is_within(other, path) or _is_same(path, other))
    except OSError:
        return False


def _is_same(path: str, other: str) -> bool:
    """Whether `other` shows this very folder now."""
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
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
        real = real_path(listed)
        for path in (real, *aliases(real, table)):
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
