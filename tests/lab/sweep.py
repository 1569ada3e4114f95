"""Removes what test runs that were killed left in /tmp and /var/tmp: folders of the tests' own kinds, a day old."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time

KINDS = (
    *("attach-test", "captive", "conformance", "container-test", "files", "frozen", "hold", "inside", "kills", "lab"),
    *("relay-escapes", "relay-test", "relays", "rootless", "test-registries", "test-server", "uid", "watched"),
)
"""`tidegate-KIND-…`; the engines' stores are not among them, whose mounts tests/engines.py takes apart."""
AGE = 24 * 3600.0  # seconds: longer than any run


def sweep(places: tuple[str, ...] = (), now: float | None = None) -> list[str]:
    """Remove them, as far as they are this user's, and return their paths; links stay, and what cannot be removed."""
    oldest = (time.time() if now is None else now) - AGE  # noqa: TID251
    removed = []
    for place in places or (tempfile.gettempdir(), "/var/tmp"):
        for name in os.listdir(place):
            path = os.path.join(place, name)
            if not name.startswith(tuple(f"tidegate-{kind}-" for kind in KINDS)):
                continue
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if found.st_mtime >= oldest or found.st_uid != os.geteuid():
                continue
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(path, ignore_errors=True)
            elif stat.S_ISREG(found.st_mode):
                try:
                    os.unlink(path)
                except OSError:
                    continue
            else:
                continue
            removed.append(path)
    return removed
