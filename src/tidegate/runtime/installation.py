"""What of this machine is tidegate itself, and so read-only inside every hold (HLD-15).

A task that could change the launcher, the source, the environment or the interpreter that tidegate runs on would be
outside at the next start. Run from a clone, that is what the launcher reads and the scripts a person runs; installed
as a package, the package and its entry point. The rest of a clone stays writable: it may be the workspace.

Of a Python that is not the system's (pyenv, uv, conda) that is all of its bin/ and lib/: it loads libpython from lib/
and `python311.zip` before the library, and believes a `pybuilddir.txt` beside the program. And symlinks: the name of
the interpreter in an environment leads through some that lie elsewhere, and each could be made to lead astray.
"""

from __future__ import annotations

import os
import sys

from tidegate.holds.paths import real_path

_OWN_FOLDERS = ("/tmp/", "/run/", "/dev/shm/", "/var/run/")  # noqa: S108  nothing is written there
_CLONE = ("tidegate", "src", ".venv", "pyproject.toml", "scripts", ".ci")
_SYSTEM = ("/", "/usr", "/usr/local")  # root's, and much else is in their bin and lib
_MAX_SYMLINKS = 40  # path_resolution(7)


def installation_paths() -> tuple[str, ...]:
    """Return the paths of all that is tidegate's own and that this user could change.

    Real ones, and after them names that lead to those through a symlink that could be replaced.
    """
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = [package, *interpreter_paths(sys.executable or "", os.__file__)]
    clone = os.path.dirname(os.path.dirname(package))
    if os.path.basename(os.path.dirname(package)) == "src" and os.path.isfile(os.path.join(clone, "tidegate")):
        found += [os.path.join(clone, name) for name in _CLONE]
    script = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    if not os.path.isfile(script):
        script = ""
    found += [script] if script else []
    # Not sys.prefix: without the site module it names the base installation.
    environment = os.path.dirname(os.path.dirname(sys.executable))
    if os.path.isfile(os.path.join(environment, "pyvenv.cfg")):
        found.append(environment)
    real = [real_path(path) for path in found]
    outermost = [path for path in dict.fromkeys(real) if os.path.lexists(path) and not _inside_another(path, real)]
    names = [*links_on_the_way(sys.executable or ""), script]
    return (*outermost, *(name for name in dict.fromkeys(names) if name and not _within(name, outermost)))


def out_of_sight(paths: tuple[str, ...], hidden: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return those of the paths that a task would not see because its /tmp, /run and /dev are its own.

    What lies in a `hidden` folder stays so: the environment of a clone that its user cannot write is in their cache,
    and that is below a home, which may be in /tmp.

    A clone in /tmp is to be read-only inside like any other, not gone: its Python may be what the task runs.
    """
    kept = [real_path(folder) for folder in hidden]
    return tuple(path for path in paths if path.startswith(_OWN_FOLDERS) and not _within(path, kept))


def interpreter_paths(executable: str, library: str) -> list[str]:
    """Return what a Python loads before our first line, given its program and a file of its library."""
    program = real_path(executable) if executable else ""
    found = [path for path in (program, os.path.dirname(real_path(library))) if path]
    folder = os.path.dirname(program)
    prefix = os.path.dirname(folder)
    if os.path.basename(folder) == "bin" and prefix not in _SYSTEM:
        found += [path for name in ("bin", "lib", "lib64") if os.path.isdir(path := os.path.join(prefix, name))]
    return found


def links_on_the_way(path: str) -> list[str]:
    """Return this path and those that its last part leads to one after another, the real one left out."""
    found: list[str] = []
    while path and real_path(path) != path and len(found) < _MAX_SYMLINKS:
        found.append(path)
        if not os.path.islink(path):  # a folder above is one
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return found


def _within(path: str, folders: list[str]) -> bool:
    """Whether the name lies in one of these folders, as far as its text tells."""
    return "/../" not in path and any(path == folder or path.startswith(folder + "/") for folder in folders)


def _inside_another(path: str, paths: list[str]) -> bool:
    return any(path != other and path.startswith(other + "/") and os.path.isdir(other) for other in paths)
