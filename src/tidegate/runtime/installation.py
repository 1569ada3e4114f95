"""What of this machine is tidegate itself, and so read-only inside every hold (HLD-15).

A task that could change the launcher, the source, the environment or the interpreter that tidegate runs on would be
outside at the next start. Run from a clone, that is what the launcher reads and the scripts a person runs; installed
as a package, the package and its entry point. The rest of a clone stays writable: it may be the workspace.
"""

from __future__ import annotations

import os
import sys

_CLONE = ("tidegate", "src", ".venv", "pyproject.toml", "scripts", ".ci")


def installation_paths() -> tuple[str, ...]:
    """Return the real paths of all that is tidegate's own and that this user could change."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = [package, *_interpreter()]
    clone = os.path.dirname(os.path.dirname(package))
    if os.path.basename(os.path.dirname(package)) == "src" and os.path.isfile(os.path.join(clone, "tidegate")):
        found += [os.path.join(clone, name) for name in _CLONE]
    script = os.path.realpath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    if os.path.isfile(script):
        found.append(script)
    # Not sys.prefix: without the site module it names the base installation.
    environment = os.path.dirname(os.path.dirname(sys.executable))
    if os.path.isfile(os.path.join(environment, "pyvenv.cfg")):
        found.append(environment)
    real = [os.path.realpath(path) for path in found]
    return tuple(path for path in dict.fromkeys(real) if os.path.lexists(path) and not _inside_another(path, real))


def _interpreter() -> list[str]:
    executable = os.path.realpath(sys.executable) if sys.executable else ""
    library = os.path.dirname(os.path.realpath(os.__file__))
    return [path for path in (executable, library) if path]


def _inside_another(path: str, paths: list[str]) -> bool:
    return any(path != other and path.startswith(other + "/") and os.path.isdir(other) for other in paths)
