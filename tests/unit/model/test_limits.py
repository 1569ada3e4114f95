"""tidegate.model.limits."""

from __future__ import annotations

from tidegate.model.limits import DEFAULT_LIMITS


def test_the_defaults_are_the_contracts() -> None:
    """GAT-5, GAT-6: 256 connections, 64 KiB in 10 s, 10 s an address, 20 s in all; no idle clock."""
    assert DEFAULT_LIMITS.connections == 256
    assert DEFAULT_LIMITS.header_bytes == 65536
    assert (DEFAULT_LIMITS.header_seconds, DEFAULT_LIMITS.connect_seconds, DEFAULT_LIMITS.total_seconds) == (10, 10, 20)
    assert DEFAULT_LIMITS.idle_seconds == 0
