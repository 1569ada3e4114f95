"""tidegate.model.event."""

from __future__ import annotations

from tidegate.model.event import Event


def test_an_event_has_no_place_for_values() -> None:
    """JRN-5: no header, query, body or credential can be in a journal line, because an event has no field for one."""
    assert set(Event._fields) == {
        "at", "task", "phase", "verdict", "rule", "name", "source", "host", "port", "reason", "how", "address",
        "status", "bytes_up", "bytes_down", "duration", "method", "count", "fix", "detail", "kept", "seen", "path",
    }  # fmt: skip
