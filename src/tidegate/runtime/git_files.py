"""The files of a repository by which git runs something, found from a folder inside it (HLD-15).

git-config(1) and githooks(5): `config` names programs in dozens of places, `hooks` holds them. They lie in the folder
that `.git` is or names, in that of a linked worktree and in those of submodules; the configuration may lead to more by
`core.hooksPath`, `init.templateDir` and `include.path`. Only such lines are read, by a reader that is no parser of
git's: what it takes for a path and is none only makes something read-only.

What it does not find: another repository, also one that lies in the folder; `git clone` must be able to make one.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 256  # submodules, worktrees
_DEEPEST = 6  # a submodule's name may have slashes in it
_LARGEST = 1 << 18
_MOST_FILES = 16  # of configuration
_PATHS = ("hookspath", "templatedir", "path")


def repository_top(folder: str) -> str:
    """Return the nearest folder at or above this one that has a `.git`, or ''."""
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        if folder in ("/", ""):
            return ""
        folder = os.path.dirname(folder)


def repository_files(top: str) -> tuple[list[str], list[str]]:
    """Return what must be read-only of the repository, and what would lead git elsewhere if it came to be.

    Where a repository has no hooks folder an empty one is made, as `git init` does: it could not be kept out otherwise.
    """
    dot = os.path.join(top, ".git")
    found: list[str] = []
    doubtful: list[str] = []
    own = _git_folder(dot)
    if not os.path.isdir(dot) or os.path.islink(dot):
        found.append(dot)
    if not own:
        return found, doubtful
    common = _led_to(os.path.join(own, "commondir"), own) or own
    if common != own:
        found += [os.path.join(own, name) for name in ("commondir", "gitdir", "config.worktree")]
    else:
        doubtful.append(os.path.join(own, "commondir"))
    for folder in (common, *_submodules(os.path.join(common, "modules"))):
        hooks = os.path.join(folder, "hooks")
        if not os.path.lexists(hooks):
            try:
                os.mkdir(hooks)
            except OSError:
                doubtful.append(hooks)  # and inside neither, as a rule
        found += [hooks, os.path.join(folder, "config")]
        extra = os.path.join(folder, "config.worktree")
        (found if os.path.lexists(extra) else doubtful).append(extra)
    for name in _names(os.path.join(common, "worktrees")):
        linked = os.path.join(common, "worktrees", name)
        found += [os.path.join(linked, one) for one in ("commondir", "gitdir", "config.worktree")]
    return [path for path in found if os.path.lexists(path)], doubtful


def led_to(configs: Iterable[str], top: str, home: str) -> Iterator[str]:
    """Yield the paths that these configuration files, and those that they include, lead git to."""
    waiting = list(configs)
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_FILES:
        config = waiting.pop(0)
        if config in seen:
            continue
        seen.add(config)
        for key, value in _lines(config):
            named = os.path.join(home, value[2:]) if value.startswith("~/") else value
            base = top if key == "hookspath" else os.path.dirname(config)
            path = os.path.normpath(os.path.join(base, named)) if base else named
            if os.path.isabs(path):
                yield path
                if key == "path":
                    waiting.append(path)


def _lines(config: str) -> Iterator[tuple[str, str]]:
    for line in _text(config).splitlines():
        key, equals, value = line.rpartition("]")[2].partition("=") if "=" in line else ("", "", "")
        name = key.strip().lower()
        text = value.strip().strip('"')
        if equals and text and name in _PATHS:
            yield name, text


def _git_folder(dot: str) -> str:
    """What a `.git` stands for: itself, or the folder that the file names."""
    if os.path.isdir(dot):
        return os.path.realpath(dot)
    text = _text(dot)
    if not text.startswith("gitdir:"):
        return ""
    path = os.path.realpath(os.path.join(os.path.dirname(dot), text[len("gitdir:") :].strip()))
    return path if os.path.isdir(path) else ""


def _led_to(file: str, folder: str) -> str:
    text = _text(file).strip()
    path = os.path.realpath(os.path.join(folder, text)) if text else ""
    return path if path and os.path.isdir(path) else ""


def _submodules(modules: str, depth: int = 0) -> list[str]:
    found: list[str] = []
    for name in _names(modules):
        folder = os.path.join(modules, name)
        if os.path.isfile(os.path.join(folder, "HEAD")):
            found.append(folder)
            found += _submodules(os.path.join(folder, "modules"), depth + 1) if depth < _DEEPEST else []
        elif depth < _DEEPEST and not os.path.islink(folder):
            found += _submodules(folder, depth + 1)
    return found[:_MOST]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST]
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, _LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(fd)
