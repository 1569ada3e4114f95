"""Which hold a name stands for, as this user's tasks have it: what one of them needs beside is loaded only for that."""

from __future__ import annotations

from tidegate.holds.hold import find_hold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.hold import Hold


def choose_hold(name: str, state: str, clock: Callable[[], float]) -> Hold:
    """Return the hold of this name. `state` is the state folder, `clock` gives Unix time in seconds.

    Raises:
        KeyError: when there is none.
    """
    hold = find_hold(name)
    if name != "uid":
        return hold
    from tidegate.runtime.leases import LeasedHold

    return LeasedHold(hold, state, clock)
