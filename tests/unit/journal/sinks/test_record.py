"""tidegate.journal.sinks.record: what a line says of itself, and who wants it."""

from __future__ import annotations

import json

import pytest

from tidegate.journal.chain import Head, SealedLine, make_line, read_line
from tidegate.journal.sinks.record import SEVERITIES, Position, Record, Wanted, anew, gap, record_of, wanted
from tidegate.model.errors import UsageError

KEY = b"k" * 32
AT = 1795910400.125


def record(kind: str = "net.blocked", **fields: object) -> Record:
    """Return a record of a line as the log has it."""
    line, _ = make_line(Head(), KEY, AT, kind, "t1", dict(fields))
    found = record_of(read_line(line.rstrip(b"\n"), KEY), line.rstrip(b"\n"))
    assert found is not None
    return found


def test_a_line_keeps_its_bytes_and_its_hash() -> None:
    """JRN-6: a receiver can follow the chain; the id is the same each time and tells logs apart."""
    one = record(host="h.test:443")
    assert json.loads(one.raw)["host"] == "h.test:443"
    assert one.id == f"1-{one.hash[:16]}"
    assert (one.kind, one.task, one.at) == ("net.blocked", "t1", "2026-11-29T00:00:00.125Z")


def test_what_is_not_sealed_is_no_record() -> None:
    """JRN-6: a forged line is not passed on."""
    assert record_of(SealedLine("00", None), b"{}") is None


def test_a_gap_has_its_range() -> None:
    """JRN-6: as plain JSON, with an id of its own; a log that was begun anew is said too."""
    one = gap(3, 7, AT)
    assert (one.id, one.seq, one.first) == ("gap-3-7", 7, 3)
    fields = json.loads(one.raw)
    assert (fields["type"], fields["first"], fields["last"], fields["count"]) == ("sink.gap", 3, 7, 5)
    other = anew(9, Position(4, "ab"), AT)
    assert (json.loads(other.raw)["before"], other.seq, other.id) == (9, 4, "anew-9-4")


@pytest.mark.parametrize(
    ("filter_", "kind", "passes"),
    [
        (Wanted(), "task.created", True),
        (Wanted(("net.*",)), "net.blocked", True),
        (Wanted(("net.*",)), "network.x", False),
        (Wanted(("net.blocked",)), "net.blocked", True),
        (Wanted(("net.blocked",)), "task.created", False),
        (Wanted((), "warning"), "net.blocked", True),
        (Wanted((), "warning"), "task.created", False),
        (Wanted((), "error"), "journal.broken", True),
        (Wanted((), "notice"), "question.opened", True),
        (Wanted((), "warning"), "question.opened", False),
    ],
)
def test_filters(filter_: Wanted, kind: str, passes: bool) -> None:
    """JRN-6: by type, by family and by severity."""
    assert filter_(record(kind)) is passes


def test_gaps_are_always_wanted() -> None:
    """JRN-6: a filter never hides that something is missing."""
    assert Wanted(("task.created",), "critical")(gap(1, 2, AT))
    assert Wanted(("task.created",), "critical")(anew(1, Position(), AT))


@pytest.mark.parametrize(
    ("kinds", "least"),
    [(["net.*"], "loud"), (["Net"], "info"), (["*"], "info"), (["a.*.b"], "info"), (["x"] * 51, "info")],
)
def test_filters_that_cannot_be(kinds: list[str], least: str) -> None:
    """JRN-6: a severity that is none, a type that cannot be, too many."""
    with pytest.raises(UsageError):
        wanted(kinds, least)


def test_each_severity_has_a_number_of_syslog() -> None:
    """JRN-6: RFC 5424, 6.2.1."""
    assert list(SEVERITIES.values()) == [2, 3, 4, 5, 6]
    assert wanted(["net.blocked", "task.*"], "notice").least == "notice"
