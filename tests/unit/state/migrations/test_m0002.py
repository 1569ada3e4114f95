"""The second step of the schema."""

from __future__ import annotations

import sqlite3

from tidegate.state.migrations import m0001, m0002


def test_tasks_of_before_have_no_changes() -> None:
    """SRV-4: a file of the first schema is taken over; what it holds stays, and nothing was changed by the operator."""
    db = sqlite3.connect(":memory:")
    for statement in m0001.STATEMENTS:
        db.execute(statement)
    values = "'t1', x'2f', '1', '2', 1.0, x'00', '', '[]', 'runtime', 900, '', '', '', 0, NULL, ''"
    db.execute(f"INSERT INTO tasks VALUES ({values})")
    for statement in m0002.STATEMENTS:
        db.execute(statement)
    assert db.execute("SELECT id, operator FROM tasks").fetchall() == [("t1", b"")]
    db.close()
