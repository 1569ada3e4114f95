"""What a row of the table is, and how one is added.

A row is a function that runs inside a hold, in a process of its own. An escape must end with one of its errnos, at
once. A neighbour is the same thing done within the rules, and must pass. What the machine outside has set up comes in
as JSON in `HELD`. Standard library only, and nothing else of tidegate: this runs where tidegate may not be in sight.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Attempt = Callable[[], object]
    Needs = Callable[[], str]

# Columns of the table: the holds, and `netns` with its connections captured as a column of its own. `uid` captures too,
# and is root's; inside, its task is as ordinary as any.
NETNS, CAPTURED, OFFLINE, OPEN, UID = "netns", "captured", "offline", "open", "uid"
ALL = (NETNS, CAPTURED, OFFLINE, OPEN, UID)
FENCED = (NETNS, CAPTURED, OFFLINE, UID)
NETWORKED = (NETNS, CAPTURED, OPEN, UID)
LANDLOCK = "landlock"  # what its rows give is in without_namespaces.py
CAPTURING = (CAPTURED, UID)
HOMED = (NETNS, CAPTURED, OFFLINE, OPEN)
"""Where the task is the person, with that one's home; in `uid` it has its own, and sees nothing of the person's."""
UNSEEN = ("ENOENT", "EACCES")
"""What it gets there."""

GATED = (NETNS, CAPTURED, UID)
NO_FAMILY = "EAFNOSUPPORT"
PASSED = "passed"
HELD: dict[str, Any] = json.loads(os.environ.get("HELD", "{}"))


class Row:
    """One row: what is tried, in which holds, by whom, and what may come of it there."""

    def __init__(
        self,
        run: Attempt,
        holds: tuple[str, ...],
        expected: dict[str, tuple[str, ...]],
        who: str,
        needs: Needs | None,
    ) -> None:
        self.name = run.__name__
        self.theme = run.__module__.rpartition(".")[2]
        self.run = run
        self.holds = holds
        self.expected = expected
        self.who = who
        self.needs = needs
        self.proves = (run.__doc__ or "").strip()

    def is_for(self, hold: str, user: str) -> bool:
        """Whether it is tried in this hold by this user, `root` or `ordinary`."""
        if hold == UID:
            return hold in self.holds and user == "root" and self.who in ("both", "ordinary")
        return hold in self.holds and self.who in ("both", user)

    def missing(self) -> str:
        """What this kernel lacks of what the row is about; empty where it lacks nothing. To be asked outside a hold."""
        return self.needs() if self.needs else ""


TABLE: dict[str, Row] = {}


def escape(
    *expected: str,
    holds: tuple[str, ...] = ALL,
    offline: str = "",
    captured: str = "",
    uid: tuple[str, ...] = (),
    only: bool = True,
    who: str = "both",
    needs: Needs | None = None,
) -> Callable[[Attempt], Attempt]:
    """Add an attempt that must end with one of these errnos; `offline` and `captured` are what those give instead.

    What `captured` gives `uid` gives too, or what `uid` names; and that something is not in sight is as good there.

    `needs` is asked outside: it returns what this kernel lacks, so that the attempt could not be made by anyone.
    """

    def add(run: Attempt) -> Attempt:
        if only:
            if run.__name__ in TABLE:
                raise ValueError(f"two rows are called {run.__name__}")
            answers = dict.fromkeys(holds, expected)
            if offline and OFFLINE in holds:
                answers[OFFLINE] = (offline,)
            if captured and CAPTURED in holds:
                answers[CAPTURED] = (captured,)
            if UID in holds:
                answers[UID] = uid or ((captured,) if captured else expected)
                if expected != (PASSED,):
                    answers[UID] += UNSEEN
            TABLE[run.__name__] = Row(run, holds, answers, who, needs)
        return run

    return add


def neighbour(*, holds: tuple[str, ...] = ALL, only: bool = True, who: str = "both") -> Callable[[Attempt], Attempt]:
    """Add something a task needs: it must pass."""
    return escape(PASSED, holds=holds, only=only, who=who)


def named(run: Attempt, name: str, proves: str) -> Attempt:
    """Give a function that was made in a loop its name and what it proves."""
    run.__name__, run.__doc__ = name, proves
    return run
