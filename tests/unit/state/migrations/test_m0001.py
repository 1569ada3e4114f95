"""The first step of the schema."""

from __future__ import annotations

import hashlib

from tidegate.state.migrations.m0001 import STATEMENTS


def test_a_published_step_is_never_edited() -> None:
    """SRV-4: files out there have this schema; a change is a new step, and this hash stays."""
    text = " ".join("\n".join(STATEMENTS).split())
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "5be5b61ce836bc6a87011eae774296e573c7c7ccc3d5e4e2e6f40e5fd1cb98f2"
    )
