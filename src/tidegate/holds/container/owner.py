"""Whose a container is, so that what a crash left is told from what lives (HLD-8).

The label says which process made it: the machine's start, its PID namespace, the process and when that began. A number
that was given to another process later, a machine that was started anew, and an engine shared with another machine
are all told apart.

Man page: proc_pid_stat(5), pid_namespaces(7).
"""

from __future__ import annotations

import os

_BOOT = "/proc/sys/kernel/random/boot_id"
_STARTED = 19  # the field `starttime`, counted behind the name, which may hold spaces


def me() -> str:
    """The label of what this process makes."""
    pid = os.getpid()
    return f"{_place()}/{pid}/{_started(pid)}"


def is_gone(label: str) -> bool:
    """Whether the process that a label names has ended. Of what is not from here nothing is known."""
    place, _, rest = label.rpartition("/")[0].rpartition("/")
    if not place or not _is_here(place):
        # The machine was started anew: all its processes have ended.
        return bool(place) and place.count("/") == 1 and place.split("/")[1] == _machine() and _booted() not in place
    started = label.rpartition("/")[2]
    return not rest.isdigit() or _started(int(rest)) != started


def _place() -> str:
    return f"{_booted()}.{os.stat('/proc/self/ns/pid').st_ino}/{_machine()}"


def _is_here(place: str) -> bool:
    return place == _place()


def _booted() -> str:
    with open(_BOOT, encoding="ascii") as file:
        return file.read().strip().replace("-", "")[:12]


def _machine() -> str:
    """What stays the same when this machine is started anew."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read().strip()[:12] or "machine"
    except OSError:
        return "machine"


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; '' where there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[_STARTED]
    except OSError:
        return ""
