"""Runs commands inside real holds, for tests: as the user who runs the tests, and as root also as an ordinary one."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from tidegate.holds import landlock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src")
RUNNER = os.path.join(HERE, "runner.py")
AS_USER = os.path.join(os.path.dirname(HERE), "lab", "as_user.py")
USERS = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)
BY_MOUNTS = ("netns", "offline", "open")
"""Where the person's files are in sight and kept by mounts; the table of escapes has what other holds answer."""
HOLDS = ("netns", "offline", "open", "landlock", *(("uid",) if os.geteuid() == 0 else ()))
PYTHON = os.path.realpath(sys.executable)  # a task sees that one wherever this clone lies
PATIENCE = 120  # seconds
_PLACE, _BASE = "/var/tmp", "tidegate-hold-"


class RunnerError(AssertionError):
    """The runner itself failed."""


def command(user: str, base: str, wishes: dict[str, Any]) -> list[str]:
    """The command line that holds what `wishes` describe, as this user."""
    try:
        if wishes.get("hold") == "uid" and (user != "root" or os.geteuid() != 0):
            pytest.skip("the hold uid is root's: it needs other users' ids and the machine's nftables")
        need(wishes.get("hold", ""))
    except pytest.skip.Exception:
        os.rmdir(base)  # nothing is in it yet, and who made it does not come to the end
        raise
    argv = [sys.executable, RUNNER, json.dumps(wishes | {"base": base})]
    if user == "ordinary" and os.geteuid() == 0:
        return [sys.executable, AS_USER, base, *argv]
    return argv


def need(hold: str) -> None:
    """Skip a test of a hold that this kernel cannot have."""
    if hold == "landlock" and landlock.abi() < landlock.SCOPE_ABI:
        pytest.skip("this kernel's Landlock scopes no signals (Linux 6.12)")


def new_base() -> str:
    """A folder outside /tmp, for the home of a task."""
    _sweep()
    return tempfile.mkdtemp(prefix=f"{_BASE}{os.getpid()}-", dir=_PLACE)


@functools.cache
def _sweep() -> None:
    """Remove the folders of runs that were killed."""
    for name in os.listdir(_PLACE):
        pid = name.removeprefix(_BASE).partition("-")[0]
        if name.startswith(_BASE) and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(os.path.join(_PLACE, name), ignore_errors=True)


def hold(hold: str, argv: list[str], *, user: str = USERS[0], **wishes: Any) -> dict[str, Any]:
    """Hold a command and return what came of it: status, out, heard, said, or error."""
    base = new_base()
    try:
        done = subprocess.run(
            command(user, base, wishes | {"hold": hold, "argv": argv}),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        if done.returncode:
            raise RunnerError(done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer
    finally:
        shutil.rmtree(base, ignore_errors=True)
