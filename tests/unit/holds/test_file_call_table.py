"""Every call that the filter hands on because it changes files is in the table, with a man page's arguments."""

from __future__ import annotations

from tidegate.holds.file_call_table import FILE_CALLS
from tidegate.holds.seccomp import HANDED


def test_the_table_has_what_is_handed_on() -> None:
    """Nothing that is handed to the watcher is left unanswered; what it makes is in test_file_calls.py (HLD-15)."""
    assert set(HANDED) - set(FILE_CALLS) == {"bind", "creat"}
    assert set(FILE_CALLS) <= set(HANDED)
