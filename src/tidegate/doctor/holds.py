"""Which holds can be had here: each is built around nothing and ended at once (HLD-12)."""

from __future__ import annotations

from tidegate.doctor.check import FAIL, OK, Check
from tidegate.holds.hold import find_hold

HOLDS = ("netns", "uid", "offline", "open")


def check_holds() -> list[Check]:
    """Build each hold and say what is in the way."""
    found = []
    for name in HOLDS:
        if name == "uid":
            continue  # root's, and more than a hold to build: users.py
        error = find_hold(name).probe()
        found.append(Check(f"hold {name}", FAIL, error.what, error.fix) if error else Check(f"hold {name}", OK))
    return found
