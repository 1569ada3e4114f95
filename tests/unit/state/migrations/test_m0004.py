"""The fourth step of the schema."""

from __future__ import annotations

import sqlite3

from tidegate.state.migrations import m0001, m0002, m0003, m0004


def test_tasks_of_before_have_no_counts() -> None:
    """SRV-4: a file of the third schema is taken over; what it holds stays, and nothing was counted."""
    db = sqlite3.connect(":memory:")
    for statement in (*m0001.STATEMENTS, *m0002.STATEMENTS, *m0003.STATEMENTS):
        db.execute(statement)
    values = "'t1', x'2f', '1', '2', 1.0, x'00', '', '[]', 'runtime', 900, '', '', '', 0, NULL, '', x'00'"
    db.execute(f"INSERT INTO tasks VALUES ({values})")
    for statement in m0004.STATEMENTS:
        db.execute(statement)
    assert db.execute("SELECT id, operator, connections, refused FROM tasks").fetchall() == [("t1", b"\0", 0, 0)]
    db.close()
