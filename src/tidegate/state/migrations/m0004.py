"""How many connections a task had, and how many were refused, once it has ended."""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE tasks ADD COLUMN connections INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tasks ADD COLUMN refused INTEGER NOT NULL DEFAULT 0",
)
