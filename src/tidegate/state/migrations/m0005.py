"""Which task has, or last had, which user of the hold `uid`, and since when that one has been free."""

from __future__ import annotations

STATEMENTS = (
    """CREATE TABLE uids (
        uid INTEGER PRIMARY KEY, task TEXT NOT NULL, taken_at REAL NOT NULL, released_at REAL
    ) STRICT""",
    "CREATE INDEX uids_by_rest ON uids (released_at)",
)
