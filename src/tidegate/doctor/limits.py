"""Limits of this machine that tasks run into: descriptors of the gate, namespaces of a user."""

from __future__ import annotations

import resource

from tidegate.doctor.check import FAIL, OK, WARN, Check

DESCRIPTORS = 1024  # two for each of a task's 256 connections, and room for look-ups, pipes and the journal
NAMESPACES = 64  # each run takes one of five kinds
_KINDS = ("user", "mnt", "net", "pid", "ipc")


def check_limits(folder: str = "/proc/sys/user") -> list[Check]:
    """Return one row for descriptors and one for namespaces."""
    return [_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[1]), _namespaces(folder)]


def _descriptors(hard: int) -> Check:
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        what = f"a process may have {hard} open, a gate under load needs {DESCRIPTORS}"
        return Check("open files", WARN, what, "raise it: ulimit -Hn, LimitNOFILE= or /etc/security/limits.conf")
    return Check("open files", OK)


def _namespaces(folder: str) -> Check:
    for kind in _KINDS:
        name = f"max_{kind}_namespaces"
        try:
            with open(f"{folder}/{name}", encoding="ascii") as file:
                most = int(file.read())
        except (OSError, ValueError):
            continue  # the rows of the holds say whether it works
        if most < NAMESPACES:
            state = FAIL if most == 0 else WARN
            return Check("namespaces", state, f"user.{name} is {most}", f"sysctl user.{name}=10000")
    return Check("namespaces", OK)
