"""The interface of a store, and its records."""

from __future__ import annotations

from tidegate.state.sqlite import SqliteStore
from tidegate.state.store import Store


def test_the_sqlite_store_has_the_whole_interface() -> None:
    """SRV-4: every method of the interface is there (what each does is for tests/state)."""
    wanted = {name for name in vars(Store) if not name.startswith("_")}
    assert wanted
    assert wanted <= set(vars(SqliteStore))
