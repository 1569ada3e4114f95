"""The fifth step of the schema."""

from __future__ import annotations

import sqlite3

from tidegate.state.migrations import STEPS, m0005


def test_no_user_of_the_hold_uid_is_leased_at_first() -> None:
    """SRV-4, HLD-3: a file of the fourth schema is taken over, and every uid is free."""
    db = sqlite3.connect(":memory:")
    for statements in STEPS[: STEPS.index(m0005.STATEMENTS) + 1]:
        for statement in statements:
            db.execute(statement)
    assert db.execute("SELECT * FROM uids").fetchall() == []
    db.execute("INSERT INTO uids VALUES (30000, 't1', 1.0, NULL)")
    db.close()
