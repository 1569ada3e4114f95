"""The packages of the server, which `run` does not need and a first set-up does not install.

`./tidegate serve` puts them into its own environment when they are first wanted, and says so; where that environment is
not tidegate's own, the line says what to run. Nothing is installed while a task is on the way.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PACKAGES: Final[Mapping[str, str]] = {
    "starlette": "starlette>=0.46",
    "uvicorn": "uvicorn>=0.34",
    "msgspec": "msgspec>=0.19",
    "segno": "segno>=1.6",
    "cryptography": "cryptography>=42",
}
"""What is imported, and what is installed for it; pyproject's extra `server` has the same."""

STAMP: Final = "tidegate-stamp"  # scripts/launcher/prepare.py leaves it in an environment of its own


def ensure(
    say: Callable[[str], None],
    packages: Mapping[str, str] = PACKAGES,
    what: str = "the server's packages",
    also: Sequence[str] = (),
) -> None:
    """See that the packages are there; install them where the environment is tidegate's own. `what` is said of them.

    `also` is installed with them where it can be, and not missed.

    Raises:
        StartError: when they are not there and cannot be installed.
    """
    if not _missing(packages):
        return
    environment = os.path.dirname(os.path.dirname(sys.executable))
    wanted = " ".join(repr(package) for package in packages.values())
    fix = f"{sys.executable} -m pip install {wanted}"
    if not os.path.exists(os.path.join(environment, STAMP)):
        raise StartError(f"{what} are not installed", fix=fix, code="packages")
    lock = os.open(environment, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        importlib.invalidate_caches()
        if not _missing(packages):
            return  # another start has just installed them
        say(f"installing {what} (first use)")
        argv = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        done = _run([*argv, *packages.values(), *also])
        if done.returncode and also:
            done = _run([*argv, *packages.values()])
    finally:
        os.close(lock)
    importlib.invalidate_caches()
    if done.returncode or _missing(packages):
        if not done.returncode:
            why = f"pip says that they are there, and they are not: remove {environment}, which is made anew"
            raise StartError(f"{what} cannot be loaded", fix=why, code="packages")
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        why = errors[-1][:160].removeprefix("ERROR: ") if errors else "no word from pip"
        raise StartError(f"{what} could not be installed ({why})", fix=fix, code="packages")


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _missing(packages: Mapping[str, str]) -> list[str]:
    return [name for name in packages if find_spec(name) is None]
