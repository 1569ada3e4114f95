"""Which answers the action log has as well: one that was only half saved when the server was killed does not count."""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE answers ADD COLUMN noted INTEGER NOT NULL DEFAULT 0",
    "UPDATE answers SET noted = 1",
    "CREATE INDEX answers_not_noted ON answers (question) WHERE noted = 0",
)
