"""tidegate.runtime.tool_link: the keeper that a front begins and ends. Whole runs are in tests/holds/test_tools.py."""

from __future__ import annotations

from pathlib import Path

from tidegate.runtime.tool_link import lines_of


def test_what_was_called_is_said_in_lines(tmp_path: Path) -> None:
    """SRV-6: a line for each tool, with what did not go well; where to read what programs said."""
    log = tmp_path / "tools.log"
    counts = {"b": {"ok": 2, "failed": 1, "busy": 1}, "a": {"ok": 1}}
    assert lines_of(counts, str(log)) == ["tool: a · 1 call", "tool: b · 4 calls (1 busy, 1 failed)"]
    log.touch()
    assert lines_of(counts, str(log))[-1] == f"tool: what they said on standard error is in {log}"
    assert lines_of({}, str(log)) == []
