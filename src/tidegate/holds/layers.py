"""Which folders and files of a task's view are read-only and which of those inside them are not: pure, by paths.

Three kinds of paths say so. `firm` ones are read-only whatever else is said. `guarded` ones are, unless the workspace,
a cache or a share is that very path or lies inside. In a `closed` folder no name can be made, because one that is
missing there would be run outside later; what is in it and is not guarded stays writable. `strict` closes everything
but what is named.

The result is a list of steps from the outside in: bind this read-only with all in it, put that back as it was. What
the task can rename in between is held by pins.py. It does not look at the machine: the names in a closed folder come
as an argument.
"""

from __future__ import annotations

from tidegate.holds.mountinfo import is_within
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Step(Value):
    """Something that is bound over itself: read-only, or as it was before any step."""

    path: str
    readonly: bool


class Wishes(Value):
    """What a view is made of; all paths are real, and `closed` maps a folder to the paths of what is in it.

    A workspace that is itself a closed folder stays closed; a `shared` folder does not.
    """

    workspace: str
    shared: tuple[str, ...]
    firm: tuple[str, ...]
    guarded: tuple[str, ...]
    closed: Mapping[str, tuple[str, ...]]
    writable: tuple[str, ...]
    strict: bool


def steps(wishes: Wishes) -> tuple[Step, ...]:
    """The steps, outermost first. In `strict` they begin at a root that is read-only already."""
    firm = dict.fromkeys(wishes.firm, True)
    guarded = dict.fromkeys(wishes.guarded, True)
    kept_closed = () if wishes.workspace in wishes.shared else (wishes.workspace,)
    wanted = (*wishes.shared, *wishes.writable, *(path for path in kept_closed if path not in wishes.closed))
    said = guarded | {path: False for path in wanted if path and not _inside_any(path, firm)} | firm
    named = frozenset(said)
    for folder in sorted(wishes.closed, key=len):
        if folder in named or _inside_any(folder, firm):
            continue
        # What is writable only because the closed folder above it lists it is closed all the same.
        if folder in kept_closed or folder in said or not readonly_at(folder, said, strict=wishes.strict):
            for path in wishes.closed[folder]:
                said.setdefault(path, False)
            said[folder] = True
    return _needed(said, strict=wishes.strict)


def readonly_at(path: str, said: Mapping[str, bool], *, strict: bool) -> bool:
    """Whether the view shows `path` read-only, by the nearest of the paths at or above it that something is said of."""
    while True:
        found = said.get(path)
        if found is not None:
            return found
        if path == "/":
            return strict
        path = path[: path.rfind("/")] or "/"


def _needed(said: Mapping[str, bool], *, strict: bool) -> tuple[Step, ...]:
    """The steps without those that repeat what is above them."""
    kept: dict[str, bool] = {}
    for path in sorted(said, key=len):
        if readonly_at(path, kept, strict=strict) != said[path]:
            kept[path] = said[path]
    return tuple(Step(path, readonly) for path, readonly in kept.items())


def _inside_any(path: str, folders: Iterable[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)
