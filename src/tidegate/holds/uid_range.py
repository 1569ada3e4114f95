"""Whether the range of the hold `uid` is free on this machine: no user, group or subordinate id is in it (HLD-3).

A user of the machine in the range would be fenced like a task, and a task would have its files; ids that a user may
map into namespaces of its own would be somebody's too. passwd(5), group(5), subuid(5). Users of a directory (LDAP) are
not listed by those files: each uid is asked for when it is claimed.
"""

from __future__ import annotations

from tidegate.holds.uid_table import FIRST, LAST
from tidegate.model.errors import StartError

_IDS = (("/etc/passwd", "user"), ("/etc/group", "group"))
_SUBORDINATE = ("/etc/subuid", "/etc/subgid")


def check_range(root: str = "", first: int = FIRST, last: int = LAST) -> None:
    """See that nobody has a part of it.

    Raises:
        StartError: naming the first who does.
    """
    for path, kind in _IDS:
        for fields in _lines(root + path):
            if len(fields) > 2 and fields[2].isdigit() and first <= int(fields[2]) <= last:
                raise _taken(first, last, f"the {kind} {fields[0]!r} ({fields[2]}, {path})")
    for path in _SUBORDINATE:
        for fields in _lines(root + path):
            if len(fields) > 2 and fields[1].isdigit() and fields[2].isdigit():
                start, count = int(fields[1]), int(fields[2])
                if count and start <= last and start + count > first:
                    raise _taken(first, last, f"{fields[0]!r} ({start}-{start + count - 1}, {path})")


def known(uid: int) -> bool:
    """Whether some directory of this machine has a user with this number."""
    import pwd

    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _taken(first: int, last: int, whose: str) -> StartError:
    return StartError(
        f"the hold uid has the ids {first} to {last} for its tasks, and {whose} has some of them",
        fix="give that one other ids; or --hold netns, which needs none",
        code="uid-range",
    )


def _lines(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [line.rstrip("\n").split(":") for line in file if ":" in line and not line.startswith("#")]
    except OSError:
        return []
