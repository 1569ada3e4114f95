"""tidegate.journal.line."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.journal.events import event
from tidegate.journal.line import line_of, lost_line, timestamp

KEYS = [
    "at", "type", "task", "phase", "verdict", "rule", "name", "source", "host", "port", "reason", "address", "how",
    "method", "status", "bytes_up", "bytes_down", "duration",
]  # fmt: skip


def test_a_line_has_every_field_of_the_contract() -> None:
    """JRN-1: time, task, phase, verdict, rule, source, host, port, reason, address, how, bytes, duration, status."""
    line = json.loads(line_of(event(bytes_up=7, bytes_down=9, duration=1.23456)))
    assert list(line) == KEYS
    assert line["at"] == "2026-11-29T00:00:00.125Z"
    assert (line["bytes_up"], line["bytes_down"], line["duration"]) == (7, 9, 1.235)


def test_count_and_fix_appear_only_where_they_say_something() -> None:
    """JRN-3: a folded line carries its count; JRN-1: an ordinary line has none."""
    line = json.loads(line_of(event(count=40, fix="--allow a.test:443")))
    assert line["count"] == 40
    assert line["fix"] == "--allow a.test:443"
    assert "count" not in json.loads(line_of(event()))


def test_what_spoke_inside_a_tunnel_is_recorded() -> None:
    """GAT-9: no SNI and non-TLS are recorded."""
    assert json.loads(line_of(event(detail="tls-no-sni")))["detail"] == "tls-no-sni"


def test_the_path_of_a_refused_call_is_there_and_no_other() -> None:
    """INS-8, JRN-5: of calls to a model service."""
    assert json.loads(line_of(event(path="/v1/files")))["path"] == "/v1/files"
    assert "path" not in json.loads(line_of(event()))


@given(st.text(), st.text())
def test_any_text_is_one_ascii_line_that_reads_back(host: str, rule: str) -> None:
    """JRN-5, B07: hosts are escaped, so no text ends a line, moves a cursor or turns the writing direction."""
    data = line_of(event(host=host, rule=rule))
    assert data.isascii()
    assert data.count(b"\n") == 1
    assert b"\x1b" not in data
    line = json.loads(data)
    assert line["rule"].encode("utf-8", "replace") == rule.encode("utf-8", "replace")


def test_timestamps_are_utc_with_milliseconds() -> None:
    """JRN-2: ISO, milliseconds, Z; the cached second does not leak into another."""
    assert timestamp(0.0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(0.999) == "1970-01-01T00:00:00.999Z"
    assert timestamp(1.0) == "1970-01-01T00:00:01.000Z"
    assert timestamp(0.5) == "1970-01-01T00:00:00.500Z"


def test_lost_lines_say_how_many_and_why() -> None:
    """JRN-5: a full disk is reported in the journal itself once it can be written again."""
    assert json.loads(lost_line(0.0, "t", 12, "ENOSPC")) == {
        "at": "1970-01-01T00:00:00.000Z",
        "type": "journal.lost",
        "task": "t",
        "count": 12,
        "why": "ENOSPC",
    }


def test_what_outlived_its_phase_is_marked() -> None:
    """POL-7: only a connection that stayed open in another phase says so."""
    assert json.loads(line_of(event(kept=True)))["kept"] is True
    assert "kept" not in json.loads(line_of(event()))
