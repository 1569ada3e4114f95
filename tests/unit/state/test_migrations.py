"""The schema as steps."""

from __future__ import annotations

import sqlite3

from tidegate.state.migrations import STEPS, VERSION


def test_the_steps_make_the_schema_on_an_empty_file() -> None:
    """SRV-4: each step runs on what the one before left, and the version is their number."""
    assert len(STEPS) == VERSION
    connection = sqlite3.connect(":memory:")
    for statements in STEPS:
        for statement in statements:
            connection.execute(statement)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    connection.close()
    assert tables >= {"tasks", "answers", "grants", "rules", "trust", "tokens", "settings", "numbers"}
