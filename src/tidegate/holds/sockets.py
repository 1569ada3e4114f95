"""Listening places of the machine that are still in sight: each is covered (HLD-14).

A task's own /tmp, /run and runtime folder hide most of them. What is bound elsewhere (in a home folder, /var/lib, the
workspace) is listed by the kernel in /proc/net/unix of the namespace outside and gets an empty file on top, so that
connecting fails like to a socket nobody listens on. Abstract names end at the network namespace.

What it does not do: a socket made *after* the start in a folder the task can see, one bound by a relative path and
one of another network namespace (a container's, in a folder that is shared with it) are not covered. They are the
watcher's (watcher.py) in every hold but `open`.
"""

from __future__ import annotations

UNIX = "/proc/net/unix"
_PATH_COLUMN = 7


def listed_sockets(file: str = UNIX) -> tuple[str, ...]:
    """The absolute paths of all bound sockets of this network namespace, each once."""
    with open(file, encoding="utf-8", errors="surrogateescape") as lines:
        return parse_sockets(lines.read())


def parse_sockets(text: str) -> tuple[str, ...]:
    """The absolute paths that this text lists. A path may hold spaces; the kernel does not escape them."""
    found: dict[str, None] = {}
    for line in text.split("\n")[1:]:
        fields = line.split(None, _PATH_COLUMN)
        if len(fields) > _PATH_COLUMN and fields[_PATH_COLUMN].startswith("/"):
            found[fields[_PATH_COLUMN]] = None
    return tuple(found)
