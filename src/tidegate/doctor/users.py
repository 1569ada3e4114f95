"""The hold `uid` on this machine: its range, its table, and what is left of users that are nobody's (HLD-3, HLD-8).

Nothing is loaded into this machine to find out: whether the table can be is tried in a network namespace of its own.
For root only, whose tasks those are; that this hold cannot be had is a warning, since another one can.
"""

from __future__ import annotations

import os

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.holds import uid_claims, uid_fence, uid_range
from tidegate.holds.uid import prepare
from tidegate.holds.uid_remains import remains
from tidegate.holds.uid_table import FAMILY, TABLE
from tidegate.model.errors import StartError

_HOLD, _TABLE, _USERS = "hold uid", "uid table", "uid users"
_MOST_NAMED = 3


def check_users() -> list[Check]:
    """Return the rows, none for an ordinary user."""
    if os.geteuid() != 0:
        return []
    try:
        uid_range.check_range()
        wanted = uid_fence.reference()
    except uid_fence.NftError as error:
        why = uid_fence.cannot_load(str(error))
        return [Check(_HOLD, WARN, why.what, why.fix)]
    except StartError as error:
        return [Check(_HOLD, WARN, error.what, error.fix)]
    found = [Check(_HOLD, OK)]
    try:
        now = uid_fence.rules()
        if now is not None:
            found.append(_table(whole=now == wanted))
        found.append(_left())
    except (uid_fence.NftError, StartError) as error:
        found.append(Check(_TABLE, WARN, str(error)))
    return found


def _table(*, whole: bool) -> Check:
    if whole:
        return Check(_TABLE, OK)
    what = f"the table {FAMILY} {TABLE} is not as this version of tidegate makes it"
    if uid_fence.living():
        return Check(_TABLE, FAIL, f"{what}, and tasks live by it", "end the tasks of the hold uid, then doctor --fix")
    return Check(_TABLE, FAIL, what, "tidegate doctor --fix loads it again", mend=prepare)


def _left() -> Check:
    """Users that no task has: what is in the table for them, and what keeps them from being used again."""
    dead, kept = [], []
    for uid in uid_claims.used():
        if uid_claims.is_held(uid):
            continue
        if uid_claims.has_place(uid):
            dead.append(uid)
        left = remains(uid)
        if left:
            kept.append(f"{uid} ({left})")
    if dead:
        named = ", ".join(map(str, dead[:_MOST_NAMED]))
        return Check(
            _USERS, WARN, f"runs that were killed left places in the table: {named}",
            "tidegate doctor --fix removes them, as the next start of a server does", mend=_sweep,
        )  # fmt: skip
    if kept:
        return Check(
            _USERS, WARN, f"not used again while something is theirs: {', '.join(kept[:_MOST_NAMED])}",
            "end or remove what is named",
        )  # fmt: skip
    return Check(_USERS, OK)


def _sweep() -> None:
    uid_claims.sweep()
