"""What is mounted where, read once per start (proc_pid_mountinfo(5)).

It answers two questions: which mounts show the kernel's own interfaces, and under which other names a folder can be
reached, because one file system may be mounted, or bound, at several places.
"""

from __future__ import annotations

from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_indexed: tuple[tuple[Mount, ...], dict[str, Mount]] = (), {}
MOUNTINFO = "/proc/self/mountinfo"


class Mount(Value):
    """One line: the device as `major:minor`, the folder of it that is shown, where it is shown, and its kind.

    `firm`: nothing can be written through this mount, and nothing that is mounted elsewhere later appears below it.
    """

    device: str
    root: str
    point: str
    kind: str
    firm: bool = False


def read_mounts(file: str = MOUNTINFO) -> tuple[Mount, ...]:
    """All mounts of this process's namespace, in the order they were made."""
    with open(file, encoding="utf-8", errors="surrogateescape") as lines:
        return parse_mounts(lines.read())


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """The mounts that this text lists."""
    mounts = []
    for line in text.rstrip("\n").split("\n") if text else ():  # other line ends are not escaped in names
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        firm = "ro" in fields[5].split(",") and not any(one.startswith(("shared:", "master:")) for one in fields[6:])
        mounts.append(Mount(fields[2], _plain(fields[3]), _plain(fields[4]), right.split(" ", 1)[0], firm))
    return tuple(mounts)


def _plain(text: str) -> str:
    r"""Undo the kernel's escapes: \040 space, \011 tab, \012 newline, \134 backslash."""
    if "\\" not in text:
        return text
    out = bytearray()
    raw = text.encode("utf-8", "surrogateescape")
    at = 0
    while at < len(raw):
        if raw[at] == ord("\\") and raw[at + 1 : at + 4].isdigit():
            out.append(int(raw[at + 1 : at + 4], 8))
            at += 4
        else:
            out.append(raw[at])
            at += 1
    return out.decode("utf-8", "surrogateescape")


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies below it. Both absolute and normal."""
    return folder in (path, "/") or path.startswith(folder + "/")


def aliases(path: str, mounts: tuple[Mount, ...]) -> tuple[str, ...]:
    """Every other path, as far as the mounts tell, that leads to what the real path `path` names, or to part of it.

    `path` itself is not among them. A mount that shows only something below `path` counts: it would show that part.
    """
    home = mount_of(path, mounts)
    if home is None:
        return ()
    inside = _join(home.root, path[len(home.point.rstrip("/")) :])
    return tuple(other for other in dict.fromkeys(places_of(home.device, inside, mounts)) if other != path)


def places_of(device: str, folder: str, mounts: tuple[Mount, ...]) -> Iterator[str]:
    """Yield where these mounts show this folder of a device, or a part of it."""
    for mount in mounts:
        if mount.device != device:
            continue
        if is_within(folder, mount.root):
            yield _join(mount.point, folder[len(mount.root.rstrip("/")) :])
        elif is_within(mount.root, folder):
            yield mount.point


def mount_of(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount that `path` lies on: the longest mount point above it, the latest of those that share it."""
    global _indexed  # noqa: PLW0603  one table serves a start, and is asked about each path of it
    if _indexed[0] is not mounts:
        _indexed = mounts, {mount.point: mount for mount in mounts}
    points = _indexed[1]
    while path not in points:
        if path == "/":
            return None
        path = path.rpartition("/")[0] or "/"
    return points[path]


def _join(folder: str, rest: str) -> str:
    rest = rest.strip("/")
    if not rest:
        return folder
    return f"{folder.rstrip('/')}/{rest}"
