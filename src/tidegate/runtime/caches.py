"""The folders that stay writable when all else is read-only: caches, and what agents keep of themselves (HLD-15).

A cache that is missing is made if its tool is on the PATH: below a home folder that is closed the tool could not. One
that a symlink leads to counts only if the link lies in the home folder itself, where no task can have made it; and a
variable that names one is the caller's word. What lies in a cache is run later by whoever builds with it: caches are
not a boundary, and docs/files.md says so.
"""

from __future__ import annotations

import os

from tidegate.holds.mountinfo import is_within
from tidegate.holds.paths import real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# folder in the home, the tool that uses it; one without a tool is always made. Yarn, pnpm and Bun are often run by a
# path, from a project or by corepack: who has Node may have them.
CACHES: tuple[tuple[str, str], ...] = (
    (".cache", ""),
    (".npm", "npm"),
    (".yarn/berry", "node"),
    (".local/share/pnpm/store", "node"),
    (".bun/install/cache", "node"),
    (".cargo/registry", "cargo"),
    (".cargo/git", "cargo"),
    ("go/pkg", "go"),
    (".m2/repository", "mvn"),
    (".gradle/caches", "gradle"),
    (".gradle/daemon", "gradle"),
    (".gradle/native", "gradle"),
    (".gradle/wrapper", "gradle"),
    (".ivy2", "sbt"),
    (".sbt", "sbt"),
    (".nuget/packages", "dotnet"),
    (".local/share/NuGet", "dotnet"),
    (".bundle/cache", "bundle"),
    (".local/share/gem", "gem"),
    (".hex", "mix"),
    (".stack", "stack"),
    (".cabal/packages", "cabal"),
    (".conan2", "conan"),
    (".ccache", "ccache"),
    (".claude", "claude"),
    (".codex", "codex"),
    (".gemini", "gemini"),
    (".cursor", "cursor-agent"),
)

# variable, the folders in what it names
VARIABLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("XDG_CACHE_HOME", ("",)),
    ("npm_config_cache", ("",)),
    ("NPM_CONFIG_CACHE", ("",)),
    ("YARN_CACHE_FOLDER", ("",)),
    ("BUN_INSTALL_CACHE_DIR", ("",)),
    ("PIP_CACHE_DIR", ("",)),
    ("UV_CACHE_DIR", ("",)),
    ("POETRY_CACHE_DIR", ("",)),
    ("CARGO_HOME", ("registry", "git")),
    ("GOPATH", ("pkg",)),
    ("GOMODCACHE", ("",)),
    ("GOCACHE", ("",)),
    ("GRADLE_USER_HOME", ("caches", "daemon", "native", "wrapper")),
    ("NUGET_PACKAGES", ("",)),
    ("DENO_DIR", ("",)),
    ("COMPOSER_CACHE_DIR", ("",)),
    ("CCACHE_DIR", ("",)),
    ("SCCACHE_DIR", ("",)),
    ("CLAUDE_CONFIG_DIR", ("",)),
    ("CODEX_HOME", ("",)),
)

TEMPORARY = ("/var/tmp",)  # noqa: S108  nothing of ours is written there
_TEMPORARY_VARIABLES = ("TMPDIR", "TMP", "TEMP")


def writable_folders(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """Return what stays writable in `files: strict` beside the workspace, made where it was missing: real path, path.

    `home` is the real path of the home folder, '' for none.
    """
    found = [*TEMPORARY, *(environ.get(name, "") for name in _TEMPORARY_VARIABLES)]
    if home and home != "/" and os.path.isdir(home):
        found += _in_home(environ, home)
    for variable, names in VARIABLES:
        base = environ.get(variable, "")
        if os.path.isabs(base):
            found += [os.path.normpath(os.path.join(base, name)) for name in names]
    sound = {_sound(path, home): path for path in found if os.path.isabs(path)}
    return {real: path for real, path in sound.items() if real}


def not_led_astray(folders: Mapping[str, str], guarded: Iterable[str]) -> tuple[str, ...]:
    """Return the real paths without those that a link leads into what is protected: no tool of a cache's does that."""
    real = [real_path(path) for path in guarded]
    return tuple(
        place for place, path in folders.items() if place == path or not any(is_within(place, one) for one in real)
    )


def _in_home(environ: Mapping[str, str], home: str) -> Iterator[str]:
    programs = [folder for folder in environ.get("PATH", "").split(":") if folder.startswith("/")]
    there: dict[str, bool] = {"": True}
    for name, tool in CACHES:
        path = f"{home}/{name}"
        if not os.path.isdir(path):
            if tool not in there:
                there[tool] = any(os.access(f"{folder}/{tool}", os.X_OK) for folder in programs)
            if not there[tool] or os.path.lexists(path):
                continue
            try:
                os.makedirs(path, exist_ok=True)
            except OSError:
                continue
        yield path


def _sound(path: str, home: str) -> str:
    """The real path if it is there, no link that a task could have made leads to it, and no home is in it; else ''."""
    path = path.rstrip("/")
    expected = path
    if home and is_within(path, home):
        first, slash, rest = path[len(home) + 1 :].partition("/")
        expected = f"{real_path(f'{home}/{first}')}{slash}{rest}"
    real = real_path(path)
    fine = real == expected and path != home and real != "/" and not (home and is_within(home, real))
    # A folder that cannot be looked into may hold settings that are protected, and they could not be.
    return real if fine and (os.path.isfile(real) or os.access(real, os.R_OK | os.X_OK)) else ""
