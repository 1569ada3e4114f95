"""Which holds can be had here: each is built around nothing and ended at once (HLD-12)."""

from __future__ import annotations

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.holds.hold import find_hold

HOLDS = ("netns", "landlock", "uid", "offline", "open")


def check_holds() -> list[Check]:
    """Build each hold and say what is in the way."""
    found: list[Check] = []
    for name in HOLDS:
        if name == "uid":
            continue  # root's, and more than a hold to build: users.py
        error = find_hold(name).probe()
        # Nobody needs `landlock` where `netns` can be had.
        state = WARN if name == "landlock" and found[0].state == OK else FAIL
        found.append(Check(f"hold {name}", state, error.what, error.fix) if error else Check(f"hold {name}", OK))
    return found
