"""User namespaces: who the task is inside.

An ordinary user is mapped to itself and nobody else (setgroups denied, as the kernel demands). Root with the right
to set ids gets everything it has mapped to itself, so that files show their true owners; otherwise root is mapped
alone, too. Nobody becomes root by this: ids inside and outside are the same, and init drops every capability that
the namespace came with before the command is run.

Man page: user_namespaces(7).
"""

from __future__ import annotations

import os

from tidegate.holds import linux

CAP_SETGID = 6
CAP_SETUID = 7
CAP_SETFCAP = 31
EVERYTHING = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWPID


def namespaces(*, network: bool) -> int:
    """The flags of the namespaces a task gets: all of its own, its network too unless the hold is `open`."""
    return EVERYTHING | (linux.CLONE_NEWNET if network else 0)


def identity_map(outer: str) -> str:
    """The map that keeps every id as it is, from the text of the outer namespace's map.

    The first column of the outer map is what an id is called there; exactly those ids exist for a child namespace.
    """
    lines = []
    for line in outer.splitlines():
        first, _outside, count = line.split()
        lines.append(f"{first} {first} {count}")
    return "\n".join(lines) + "\n"


def may_map_all(status: str) -> bool:
    """Whether a process with this /proc/PID/status may write a map of many ids: root with the capabilities for it."""
    effective = 0
    root = False
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
        elif line.startswith("Uid:"):
            root = line.split()[2] == "0"
    wanted = 1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_SETFCAP
    return root and effective & wanted == wanted


def write_maps(pid: int, user: tuple[int, int] | None = None) -> None:
    """Write both maps of the namespace that process `pid` (of this user) has just made.

    Who writes its own has no ids any more: `user` is what they were before.

    Raises:
        OSError: when the kernel refuses; `filename` names the file.
    """
    folder = f"/proc/{pid}"
    if may_map_all(_read("/proc/self/status")):
        _write(f"{folder}/uid_map", identity_map(_read("/proc/self/uid_map")))
        _write(f"{folder}/gid_map", identity_map(_read("/proc/self/gid_map")))
        return
    uid, gid = user or (os.geteuid(), os.getegid())
    _write(f"{folder}/setgroups", "deny")
    _write(f"{folder}/uid_map", f"{uid} {uid} 1\n")
    _write(f"{folder}/gid_map", f"{gid} {gid} 1\n")


def find(init: int) -> tuple[int, int]:
    """The user namespace and the root of a task whose first process is `init`; before it closes itself to others."""
    space = os.open(f"/proc/{init}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return space, os.open(f"/proc/{init}/root", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        os.close(space)
        raise


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())  # the kernel takes a map in one write only
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
