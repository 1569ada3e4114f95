"""tidegate.runtime.client_settings."""

from __future__ import annotations

from tidegate.runtime.client_settings import GIT_CONFIG, SETTINGS


def test_each_row_says_what_it_is_for_and_with_what_it_was_tried() -> None:
    """GAT-10: one table, and for each tool the version it was tried with."""
    for name, value, when, join, tool, tried in SETTINGS:
        assert name
        assert value
        assert when in {"always", "no-capture"}
        assert join in {"replace", "append", "keep"}
        assert tool
        assert tried


def test_no_row_is_there_twice() -> None:
    """One table: a second row of the same name would silently win."""
    names = [row[0] for row in SETTINGS]
    assert len(set(names)) == len(names)
    assert len({key for key, _ in GIT_CONFIG}) == len(GIT_CONFIG)
