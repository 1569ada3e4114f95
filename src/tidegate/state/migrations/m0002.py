"""What the operator changed of a living task, beside the policy it began with."""

from __future__ import annotations

STATEMENTS = ("ALTER TABLE tasks ADD COLUMN operator BLOB NOT NULL DEFAULT x''",)
