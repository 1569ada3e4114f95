"""The rights of a container: none (HLD-13). The options that say so to an engine, and the look that sees it is so.

Worker and holder get the same. What an engine was told is not believed: the status of the process that it made is read
from this machine's own /proc, where the engine runs on this machine.
"""

from __future__ import annotations

import os

from tidegate.holds import selftest
from tidegate.holds.container.engine import PODMAN
from tidegate.holds.container.profile import profile
from tidegate.holds.messages import ended_early

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.container.engine import Engine

MOST_PROCESSES = 4096
_PROFILE, _STARTS, _RULES = "seccomp.json", "seccomp-starts.json", "seccomp-rules.json"


def confining(engine: Engine, folder: str, *, starts: bool = False, rules: bool = False) -> list[str]:
    """Options of `create` that leave a container no right; `folder` takes the file with the filter.

    `starts`: its first program is the starter, whose own filter is added to this one (starter.py).
    `rules`: it makes those of a network, and has the right to (relay_rules.py); it is gone before there is a worker.
    """
    path = os.path.join(folder, _STARTS if starts else _RULES if rules else _PROFILE)
    if not os.path.exists(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, profile(starts=starts, rules=rules).encode())
        finally:
            os.close(descriptor)
    options = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", f"seccomp={path}"]
    options += ["--pids-limit", str(MOST_PROCESSES), "--ipc", "private", "--cgroupns", "private"]
    return [*options, *engine_options(engine)]


def engine_options(engine: Engine) -> list[str]:
    """What podman needs besides: no proxy of the caller's, and where it is rootless the caller's own number inside."""
    if engine.name != PODMAN:
        return []
    return ["--http-proxy=false", *(("--userns", "keep-id") if engine.facts().rootless else ())]


def check_process(pid: int, before: int) -> None:
    """Read from /proc that a container's first process has no right left, and is the one that it was `before`.

    Raises:
        StartError: where it has one, or has ended.
    """
    try:
        if pid != before:
            raise ended_early()
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            selftest.check_confinement(status.read())
    except OSError:
        raise ended_early() from None
