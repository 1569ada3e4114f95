"""The packages of the server, which `run` does not need and a first set-up does not install.

`./tidegate serve` puts them into its own environment when they are first wanted, and says so; where that environment is
not tidegate's own, the line says what to run. Nothing is installed while a task is on the way. pip tries once: without
a network it says so at once, and for a minute nobody waits for the same again.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from tidegate.model.errors import StartError
from tidegate.policy.positions import on_screen

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

AGAIN: Final = 60.0
"""Seconds for which an attempt that failed is not made again."""
_TRIED: Final = "tidegate-tried"  # what failed last, in an environment of its own
_PIP: Final = (
    *("-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--retries", "0", "--timeout", "5"),
)

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
    tried = os.path.join(environment, _TRIED)
    if not os.path.exists(os.path.join(environment, STAMP)):
        raise StartError(f"{what} are not installed", fix=fix, code="packages")
    lock = os.open(environment, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        importlib.invalidate_caches()
        if not _missing(packages):
            return  # another start has just installed them
        failed = _failed_lately(tried, wanted)
        if failed:
            raise StartError(f"{what} could not be installed just now ({failed})", fix=fix, code="packages")
        say(f"installing {what} (first use)")
        done = _run([sys.executable, *_PIP, *packages.values(), *also])
        if done.returncode and also and not any(package in done.stderr for package in packages.values()):
            done = _run([sys.executable, *_PIP, *packages.values()])
        if done.returncode:
            _note_failure(tried, wanted, _last_word(done.stderr))
    finally:
        os.close(lock)
    importlib.invalidate_caches()
    if done.returncode or _missing(packages):
        if not done.returncode:
            why = f"pip says that they are there, and they are not: remove {environment}, which is made anew"
            raise StartError(f"{what} cannot be loaded", fix=why, code="packages")
        raise StartError(f"{what} could not be installed ({_last_word(done.stderr)})", fix=fix, code="packages")


def _last_word(said: str) -> str:
    errors = [line for line in said.splitlines() if line.startswith("ERROR")] or said.splitlines()
    return on_screen(errors[-1].removeprefix("ERROR: "), 160) if errors else "no word from pip"


def _failed_lately(path: str, wanted: str) -> str:
    """Return why the same could not be had within the last minute, '' where it was not tried."""
    try:
        with open(path, encoding="utf-8") as file:
            what, why = file.read(4096).split("\n")[:2]
            age = time.time() - os.stat(file.fileno()).st_mtime  # noqa: TID251  a file has the clock of the world
    except (OSError, ValueError):
        return ""
    return why if what == wanted and why.isprintable() and 0 <= age < AGAIN else ""


def _note_failure(path: str, wanted: str, why: str) -> None:
    with suppress(OSError), open(path, "w", encoding="utf-8") as file:  # the next start tries again, then
        file.write(f"{wanted}\n{why}\n")


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _missing(packages: Mapping[str, str]) -> list[str]:
    return [name for name in packages if find_spec(name) is None]
