"""The files of a worker: the workspace and what is shared, at their own places, and what of them is protected (HLD-15).

The plan is that of the namespace holds (holds/plan.py); of it counts here what lies in a folder that the container gets
of this machine, since everything else in it is the image's. So: what would run later is bound read-only over itself,
folders on the way to it are bound over themselves so that they cannot be renamed away, tidegate's own files and
sockets of this machine are covered.

Rules of the file: a mount is named in the long form (`--mount`), which refuses a source that is not there; a path with
a comma or a quote, which that form cannot carry, is refused by name.
"""

from __future__ import annotations

import os

from tidegate.holds.container.engine import PODMAN
from tidegate.holds.container.weakness import is_engines_socket, sockets_below
from tidegate.holds.mountinfo import is_within
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.holds.hold import LaunchSpec
    from tidegate.holds.plan import Plan

MOST_MOUNTS = 1000


def mounts_of(spec: LaunchSpec, plan: Plan, engine: str) -> list[str]:
    """Options of `create` of this engine that give the worker its files.

    Raises:
        StartError: for what cannot be mounted into a container.
    """
    found: dict[str, str] = {}
    given: list[str] = []
    shares = [(os.path.realpath(share.path), share.readonly) for share in spec.shares]
    if spec.workspace is not None:
        shares.append((spec.workspace, False))
    for path, readonly in sorted(shares):
        if path == "/" or is_within(path, "/proc") or is_within(path, "/sys"):
            raise StartError(
                f"{path} of this machine cannot be given to a container",
                fix="run it from a project's folder, and share what it needs",
                code="share",
            )
        if is_engines_socket(path):
            raise StartError(
                f"{path} is an engine's socket: whoever has it owns this machine", fix="leave it out", code="share"
            )
        held = sockets_below(path, os.environ) if path != spec.workspace else []
        if held:
            raise StartError(
                f"{held[0]} is an engine's socket, which is in {path}: whoever has it owns this machine",
                fix="share the folders beside it that it needs, one by one",
                code="share",
            )
        found[path] = _bind(path, readonly=readonly)
        given.append(path)

    def seen(path: str) -> bool:
        return any(is_within(path, one) for one in given)

    for step in plan.steps:
        if seen(step.path) and (step.readonly or step.path not in found):
            found[step.path] = _bind(step.path, readonly=step.readonly)
    for folder, name in plan.pins:
        path = os.path.join(folder, name)
        if seen(path) and path not in found and os.path.isdir(path) and not os.path.islink(path):
            found[path] = _bind(path, readonly=False)
    for path in plan.hidden:
        if seen(path):
            found[path] = _empty(path, engine) if os.path.isdir(path) else _nothing(path)
    for path in plan.sockets:
        if seen(path):
            found[path] = _nothing(path)
    if len(found) > MOST_MOUNTS:
        raise StartError(
            f"the workspace needs {len(found)} mounts to be protected, more than an engine takes",
            fix="run it from a project's folder",
            code="workspace",
        )
    return [part for path in sorted(found) for part in ("--mount", found[path])]


def file_mount(source: str, target: str) -> list[str]:
    """The option that gives the worker one file of ours, read-only."""
    return ["--mount", f"type=bind,src={_named(source)},dst={target},readonly"]


def trust_sources(files: Iterable[tuple[str, bytes]], folder: str) -> dict[str, str]:
    """Where the files that say whom to trust are, by their places inside: one file in `folder` for each text."""
    named: dict[bytes, str] = {}
    return {place: named.setdefault(content, f"{folder}/trust-{len(named)}") for place, content in files}


def trust_mounts(files: Iterable[tuple[str, bytes]], folder: str) -> list[str]:
    """Options that give the worker those files, read-only; they are written."""
    files = tuple(files)
    sources = trust_sources(files, folder)
    for source, content in {sources[place]: content for place, content in files}.items():
        write_readable(source, content)
    return [part for place, source in sources.items() for part in file_mount(source, place)]


def write_readable(path: str, content: bytes) -> None:
    """Write a file that a container's user can read; one that is there keeps its place: it may be mounted somewhere."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)
        file.write(content)


def _bind(path: str, *, readonly: bool) -> str:
    return f"type=bind,src={_named(path)},dst={_named(path)}" + (",readonly" if readonly else "")


def _empty(path: str, engine: str) -> str:
    """A folder with nothing in it: podman would else fill it with what it is to cover."""
    return f"type=tmpfs,dst={_named(path)},tmpfs-mode=0000" + (",notmpcopyup" if engine == PODMAN else "")


def _nothing(path: str) -> str:
    return f"type=bind,src=/dev/null,dst={_named(path)},readonly"


def _named(path: str) -> str:
    if "," in path or '"' in path or "\n" in path:
        raise StartError(
            f"{path!r} cannot be mounted into a container: engines read its name as more than a name",
            fix="use a path without comma, quote and end of line",
            code="share",
        )
    return path
