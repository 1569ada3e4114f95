"""What this process has open, for tests of what is given back: `assert descriptors() <= before`.

Not a number: what an earlier test left to a thread or to the garbage may be closed meanwhile, and would count as less.
"""

from __future__ import annotations

import contextlib
import gc
import os


def descriptors() -> frozenset[tuple[str, str]]:
    """Return the number and the inode of each open descriptor."""
    gc.collect()
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that the list was read by
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return frozenset(found)
