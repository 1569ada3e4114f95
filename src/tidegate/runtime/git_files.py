"""The files of a repository by which git runs something, found from a folder inside it (HLD-15).

git-config(1) and githooks(5): `config` names programs in dozens of places, `hooks` holds them. They lie in the folder
that `.git` is or names, in that of a linked worktree and in those of submodules; the configuration may lead to more by
`core.hooksPath`, `init.templateDir` and `include.path`. Only such lines are read, by a reader that is no parser of
git's: what it takes for a path and is none only makes something read-only.

A task can have changed in an earlier run what was open to it: modes, HEAD, `commondir`, names beside these. None of
that may make the next run look elsewhere and leave what was protected open.

What it does not find: another repository, also one that lies in the folder; `git clone` must be able to make one.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MOST = 256  # submodules, worktrees; with more of them their folder is read-only whole
_LOOK = os.R_OK | os.X_OK
_DEEPEST = 6  # a submodule's name may have slashes in it
_LARGEST = 1 << 18
_MOST_FILES = 512  # of configuration
_PATHS = ("hookspath", "templatedir", "path")


def repositories(folder: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the `.git` of each repository that git could take for the one of this folder, nearest first.

    Not the nearest alone: the task may have made one in between since, which it owns. A bare repository is one itself.
    """
    found: dict[str, None] = {}
    here = folder
    while True:
        dot = os.path.join(here, ".git")
        if os.path.lexists(dot):
            found[dot] = None
        elif _is_bare(here):
            found[here] = None
        if here in ("/", ""):
            break
        here = os.path.dirname(here)
    named = environ.get("GIT_DIR", "")
    if named:
        found[os.path.normpath(os.path.join(folder, named))] = None
    return tuple(found)


def repository_files(dot: str) -> tuple[list[str], list[str]]:
    """Return what must be read-only of the repository, and what would lead git elsewhere if it came to be.

    What cannot be looked through is read-only whole. Where a repository has no hooks folder an empty one is made, as
    `git init` does: it could not be kept out otherwise.
    """
    found: list[str] = []
    doubtful: list[str] = []
    own = _git_folder(dot)
    if not os.path.isdir(dot) or os.path.islink(dot):
        found.append(dot)
    if own and not os.access(own, _LOOK):
        found.append(own)
    if not own or own in found:
        return found, doubtful
    common = _led_to(os.path.join(own, "commondir"), own) or own
    if common != own:
        found += [os.path.join(own, name) for name in ("commondir", "gitdir", "config.worktree", "hooks", "config")]
    else:
        doubtful.append(os.path.join(own, "commondir"))
    below: list[str] = []
    for modules in dict.fromkeys((os.path.join(own, "modules"), os.path.join(common, "modules"))):
        inner, whole = _submodules(modules)
        below += inner
        found += whole
    for folder in (common, *below):
        hooks = os.path.join(folder, "hooks")
        if not os.path.lexists(hooks):
            doubtful += [] if _make_hooks(folder, hooks) else [hooks]
        found += [hooks, os.path.join(folder, "config")]
        extra = os.path.join(folder, "config.worktree")
        (found if os.path.lexists(extra) else doubtful).append(extra)
    for linked in _worktrees(os.path.join(common, "worktrees"), found):
        found += [os.path.join(linked, one) for one in ("commondir", "gitdir", "config.worktree")]
    return [path for path in dict.fromkeys(found) if os.path.lexists(path)], doubtful


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


def _is_bare(folder: str) -> bool:
    """Whether the folder is a repository itself, by what no task can have changed if it was one before."""
    return "repositoryformatversion" in _text(os.path.join(folder, "config"))


def _make_hooks(folder: str, hooks: str) -> bool:
    """Make a hooks folder, but only in a repository: what names the folder may be the task's word."""
    if not os.path.isfile(os.path.join(folder, "HEAD")) or not os.path.isdir(os.path.join(folder, "objects")):
        return False
    try:
        os.mkdir(hooks)
    except OSError:
        return False  # and inside nobody can, as a rule
    return True


def _submodules(modules: str) -> tuple[list[str], list[str]]:
    """Return the repositories of submodules, and what must be read-only whole.

    Whole is what cannot be read, and all of it where there is more than a bound: what a task adds must hide nothing.
    """
    found: list[str] = []
    whole: list[str] = []
    waiting = [(modules, 0)]
    seen = 0
    while waiting:
        folder, depth = waiting.pop()
        if not os.path.isdir(folder):
            continue
        if not os.access(folder, _LOOK):
            whole.append(folder)
            continue
        # `config` cannot be taken away inside; HEAD can.
        if depth and any(os.path.isfile(os.path.join(folder, name)) for name in ("config", "HEAD")):
            found.append(folder)
            waiting.append((os.path.join(folder, "modules"), depth + 1))
            continue
        names = _names(folder)
        seen += len(names)
        if seen > _MOST or depth > _DEEPEST:
            return [], [modules]
        waiting += [(os.path.join(folder, name), depth + 1) for name in names]
    return found, whole


def _worktrees(folder: str, whole: list[str]) -> list[str]:
    """Return the folders of linked worktrees; what cannot be looked through, or has too many, is added to `whole`."""
    names = _names(folder)
    if len(names) > _MOST or (os.path.isdir(folder) and not os.access(folder, _LOOK)):
        whole.append(folder)
        return []
    found = [os.path.join(folder, name) for name in names]
    whole += [path for path in found if os.path.isdir(path) and not os.access(path, _LOOK)]
    return found


def _names(folder: str) -> list[str]:
    """The names in a folder, up to one more than the bound."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) > _MOST:
                    break
    except OSError:
        return []
    return sorted(found)


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
