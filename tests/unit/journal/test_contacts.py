"""tidegate.journal.contacts."""

from __future__ import annotations

import json
import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.journal.contact_lines import AT, line, no, written
from tests.unit.journal.events import event
from tidegate.journal import contacts
from tidegate.journal.contacts import Record
from tidegate.journal.line import lost_line
from tidegate.journal.report import report_text
from tidegate.journal.summary import row_of
from tidegate.journal.tasklog import TaskLog
from tidegate.model.contact import Contact
from tidegate.model.errors import UsageError
from tidegate.model.verdict import How, Phase

if TYPE_CHECKING:
    from pathlib import Path


def test_a_line_is_read_as_it_was_written(tmp_path: Path) -> None:
    """JRN-7: what the gate wrote comes back, whole and in order, and the record says that nothing is missing."""
    record = Record(written(tmp_path / "n", line(how=How.INSPECTED, method="GET"), no(count=3)))
    assert list(record.contacts()) == [
        Contact(AT, Phase.RUNTIME, "a.test", 443, How.INSPECTED, "allowed", "policy", "p.yaml:3:5", "1.2.3.4", "GET"),
        Contact(
            AT, Phase.RUNTIME, "b.test", 443, How.REFUSED, "no-rule", "no-rule", "profile closed", "", "CONNECT", 3
        ),
    ]
    assert (record.lines, record.lost, record.folded, record.torn, record.empty, record.cut) == (
        2,
        0,
        0,
        False,
        False,
        False,
    )
    assert record.owner == os.geteuid()


def test_a_report_is_read_too(tmp_path: Path) -> None:
    """JRN-7: a file of `run --report` names the same places, and how many did not fit; it knows no times."""
    rows = [row_of(event(), 4, 1, 2)]
    path = written(tmp_path / "r.json", report_text(rows, 7, exit_status=0).encode())
    record = Record(path)
    (found,) = record.contacts()
    assert (found.host, found.port, found.count, found.at, found.how) == ("a.test", 443, 4, "", How.TUNNELED)
    assert record.lost == 7
    assert not list(Record(written(tmp_path / "e.json", report_text([], 0, exit_status=0).encode())).contacts())
    compact = json.dumps(json.loads(report_text(rows, 0, exit_status=0)), separators=(",", ":")).encode()
    assert [one.host for one in Record(written(tmp_path / "c.json", compact)).contacts()] == ["a.test"]


def test_rotated_files_come_first(tmp_path: Path) -> None:
    """JRN-7, JRN-5: a record that was rotated is one record, the oldest line first."""
    for name, host in (("n.2", "a.test"), ("n.1", "b.test"), ("n", "c.test")):
        written(tmp_path / name, line(host=host))
    record = Record(str(tmp_path / "n"))
    assert [one.host for one in record.contacts()] == ["a.test", "b.test", "c.test"]
    assert (record.files, record.cut) == (3, False)
    assert [one.host for one in Record(str(tmp_path / "n"), rotated=False).contacts()] == ["c.test"]
    written(tmp_path / "n.3", line(host="0.test"))
    record = Record(str(tmp_path / "n"))
    assert len(list(record.contacts())) == 4
    assert record.cut


def test_a_rotation_meanwhile_makes_nothing_come_twice(tmp_path: Path) -> None:
    """JRN-7: between the opening of two files the log may move on; a file that comes again is the same."""
    written(tmp_path / "n", line(host="a.test"))
    os.link(tmp_path / "n", tmp_path / "n.1")
    written(tmp_path / "n.2", line(host="b.test"))
    assert [one.host for one in Record(str(tmp_path / "n")).contacts()] == ["b.test", "a.test"]


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    """JRN-7: a gate that was killed while it wrote leaves half a line; the whole ones count."""
    record = Record(written(tmp_path / "n", line(), no()[:40]))
    assert [one.host for one in record.contacts()] == ["a.test"]
    assert record.torn
    record = Record(written(tmp_path / "m", line()[:-1]))  # whole but for its end
    assert [one.host for one in record.contacts()] == ["a.test"]
    assert not record.torn


def test_what_is_missing_is_counted(tmp_path: Path) -> None:
    """JRN-7: lines that a full disk lost and refusals that a flood folded have no host, and are no pass."""
    record = Record(written(tmp_path / "n", lost_line(0, "t", 5, "ENOSPC"), no(host="*", port=0, count=9)))
    assert list(record.contacts()) == []
    assert (record.lost, record.folded, record.empty) == (5, 9, False)
    record = Record(written(tmp_path / "e"))
    assert list(record.contacts()) == []
    assert record.empty


def _with(**changes: object) -> bytes:
    return _with_fields(changes)


def _with_fields(changes: dict[str, object]) -> bytes:
    return json.dumps(json.loads(line()) | changes).encode() + b"\n"


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (b"x\n", "this is not JSON"),
        (b"\xff\xfe\n", "this is not JSON"),
        (b"[" * 60_000 + b"\n", "this is not JSON"),
        (b"{" + b" " * 70_000 + b"}\n", "a line over 64 KiB"),
        (b"[]\n", "this is no line of a task's record"),
        (b"{}\n", "this is no line of a task's record"),
        (b'{"type": ["net.connection"]}\n', "this is no line of a task's record"),
        (b'{"seq":1,"type":"net.blocked"}\n', "this is no line of a task's record"),
        (b'{"type":"journal.lost","count":-1}\n', "'count' is missing, or no number"),
        (_with(phase="later"), "'phase' is none that there is"),
        (_with(how="allowed"), "'how' is none that there is"),
        (_with(at="yesterday\x1b[31m, about that"), "'at' is no time"),
        (_with(host=7), "'host' is missing, no text, or too long"),
        (_with(host="a" * 5000), "'host' is missing, no text, or too long"),
        (_with(port=True), "'port' is missing, or no number"),
        (_with(port=65536), "'port' is missing, or no number"),
        (_with(count=0), "'count' is missing, or no number"),
        (_with(count=1e30), "'count' is missing, or no number"),
    ],
)
def test_what_is_no_line_is_an_error_with_its_number(tmp_path: Path, bad: bytes, what: str) -> None:
    """JRN-7: in CI a line that cannot be read is exit status 2, and never a host that was not looked at."""
    path = written(tmp_path / "n", line(), bad, line())
    with pytest.raises(UsageError) as caught:
        list(Record(path).contacts())
    assert caught.value.what.startswith(f"{path}:2: {what}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{\n "exit": 0,\n "connections": [}\n', ":3: this is not JSON"),
        ('{\n "exit": 0}\n', ":1: this is no report"),
        ('{\n "more": 0, "connections": [1]}\n', ":1: this is no report"),
        ('{\n "connections": []}\n', ":1: 'more' is missing"),
        ('{\n "more": 0, "connections": [{"phase": "runtime"}]}\n', ": connection 1: 'how' is missing"),
        pytest.param("{\n" + '"a":[' * 1, "this is not JSON", id="cut"),
        pytest.param('{\n "a":' + "[" * 60_000, "it nests too deep", id="deep"),
    ],
)
def test_what_is_no_report_is_an_error(tmp_path: Path, text: str, what: str) -> None:
    """JRN-7: a report is held to the same."""
    path = written(tmp_path / "r", text.encode())
    with pytest.raises(UsageError) as caught:
        list(Record(path).contacts())
    assert what in caught.value.what


def test_a_report_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-7: what would be read whole is refused past its bound."""
    monkeypatch.setattr(contacts, "MAX_REPORT", 10)
    with pytest.raises(UsageError, match="over 0 MiB"):
        list(Record(written(tmp_path / "r", b"{\n" + b" " * 10)).contacts())


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """JRN-7: a link leads to what somebody else chose, a pipe would be waited for; neither is opened."""
    written(tmp_path / "n", line())
    (tmp_path / "link").symlink_to("n")
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("link", "a symbolic link"), ("pipe", "a pipe"), (".", "a folder"), ("none", "No such file")):
        with pytest.raises(UsageError, match=what):
            list(Record(str(tmp_path / name)).contacts())
    (tmp_path / "n.1").symlink_to("n")
    with pytest.raises(UsageError, match="a symbolic link"):
        list(Record(str(tmp_path / "n")).contacts())


def test_a_record_that_is_written_says_so(tmp_path: Path) -> None:
    """JRN-7: what a living task has open has no line yet, and looking takes no lock that could stop a gate."""
    path = str(tmp_path / "n")
    log = TaskLog(path, "t", clock=lambda: 0.0, warn=print)
    record = Record(path)
    assert list(record.contacts()) == []
    assert record.alive
    log.close()
    assert list(record.contacts()) == []
    assert not record.alive


def test_a_long_record_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    """JRN-7: a record is a stream: 4 MB of it are read in less than 1 MiB."""
    path = tmp_path / "n"
    chunk = line() * 2600
    with path.open("wb") as file:
        for _ in range(5):
            file.write(chunk)
    assert path.stat().st_size > 4_000_000
    tracemalloc.start()
    count = sum(one.count for one in Record(str(path)).contacts())
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 13_000
    assert peak < 1 << 20


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=200),
        st.tuples(st.integers(0, 380), st.binary(max_size=4)).map(
            lambda cut: line()[: cut[0]] + cut[1] + line()[cut[0] + len(cut[1]) :]
        ),
        st.dictionaries(
            st.sampled_from(["at", "type", "phase", "how", "host", "port", "count", "reason", "name", "more"]),
            st.one_of(st.text(max_size=9), st.integers(), st.floats(), st.none(), st.lists(st.integers(), max_size=2)),
        ).map(_with_fields),
    )
)
def test_no_bytes_are_anything_but_a_record_or_an_error(tmp_path: Path, data: bytes) -> None:
    """JRN-7: whatever a file holds, what comes out is contacts within their bounds, or an error that can be printed."""
    path = written(tmp_path / "n", line(), data)
    found, said = [], ""
    try:
        found = list(Record(path).contacts())
    except UsageError as error:
        said = str(error)
    assert said.isprintable()
    for one in found:
        assert 0 <= one.port <= 65535
        assert one.count >= 1
        assert one.at == "" or one.at.isascii()
