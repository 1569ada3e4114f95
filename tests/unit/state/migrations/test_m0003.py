"""tidegate.state.migrations.m0003."""

from __future__ import annotations

import sqlite3

from tidegate.state.migrations import m0001, m0003


def test_answers_from_before_count_as_they_did() -> None:
    """JRN-5: none of an older file is taken back at the next start; new ones need their mark."""
    connection = sqlite3.connect(":memory:")
    for statement in m0001.STATEMENTS:
        connection.execute(statement)
    insert = (
        'INSERT INTO answers (question, task, folder, dev, ino, host, port, phase, answer, "by", at) '
        "VALUES (?, 't1', x'2f', '1', '1', 'a.test', 443, 'runtime', 'deny', 'me', 1.0)"
    )
    connection.execute(insert, (1,))
    for statement in m0003.STATEMENTS:
        connection.execute(statement)
    connection.execute(insert, (2,))
    assert connection.execute("SELECT question FROM answers WHERE noted = 0").fetchall() == [(2,)]
    connection.close()
