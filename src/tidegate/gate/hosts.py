"""The hosts file: names that this machine knows by itself (hosts(5)).

Read anew for each question, because whoever edits it expects that, and bounded, because it is only a file.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

PATH = "/etc/hosts"
MOST = 1 << 20  # bytes; block lists of 30,000 hosts fit


def hosts_addresses(name: str, path: str = PATH) -> tuple[bytes, ...]:
    """Return the packed addresses that the file gives `name` (lower case, no final dot), in the file's order."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST)
    except OSError:
        return ()
    wanted = name.encode("ascii", "replace")
    if wanted not in text.lower():
        return ()
    found: list[bytes] = []
    for line in text.splitlines():
        words = line.partition(b"#")[0].lower().split()
        if wanted in words[1:]:
            packed = _packed(words[0])
            if packed is not None and packed not in found:
                found.append(packed)
    return tuple(found)


def _packed(word: bytes) -> bytes | None:
    text = word.decode("ascii", "replace").partition("%")[0]
    for family in (AF_INET6, AF_INET):
        try:
            return inet_pton(family, text)
        except (OSError, ValueError):
            continue
    return None
