"""tidegate.journal.verify."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.journal.actions_log import Written
from tests.unit.journal.not_files import NOT_FILES, put, word
from tidegate.journal.chain import Head, line_hash, make_line
from tidegate.journal.heads import HEAD_NAME, read_key
from tidegate.journal.segments import older_segments
from tidegate.journal.verify import MAX_FINDINGS

Lines = list[bytes]


@pytest.fixture
def log(tmp_path: Path) -> Written:
    """A log of ten lines."""
    written = Written(tmp_path)
    written.write(10)
    return written


def test_an_untouched_log_is_whole(log: Written) -> None:
    """JRN-2: nothing is found where nothing is wrong."""
    found = log.verify()
    assert (found.ok, found.lines, found.head, found.more, found.unfinished) == (True, 10, 10, 0, False)


def edited(at: int, old: bytes, new: bytes) -> Callable[[Lines], Lines]:
    """Return what changes one line."""
    return lambda lines: [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]


@pytest.mark.parametrize(
    ("tamper", "findings"),
    [
        (edited(4, b"h4.test", b"h5.test"), [(5, "changed or forged: its seal is not this log's")]),
        (lambda lines: lines[:4] + lines[5:], [(5, "line 5 is missing before this one (line 6)")]),
        (lambda lines: lines[:4] + lines[7:], [(5, "lines 5 to 7 are missing before this one (line 8)")]),
        (
            lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]],
            [(5, "line 5 is missing before this one (line 6)"), (6, "out of its place: line 5 stands behind line 6")],
        ),
        (lambda lines: lines[:7], [(7, "the end was cut: the sealed head is line 10, the last one here is 7")]),
        (lambda lines: [*lines[:6], lines[1], *lines[6:]], [(7, "out of its place: line 2 stands behind line 6")]),
        (lambda lines: lines[1:], [(1, "line 1 is missing before this one (line 2)")]),
        (
            lambda lines: [*lines, lines[-1].replace(b'"seq":10', b'"seq":11')],
            [(11, "changed or forged: its seal is not this log's")],
        ),
    ],
)
def test_what_was_done_to_a_log_is_found_and_named(
    log: Written, tamper: Callable[[Lines], Lines], findings: list[tuple[int, str]]
) -> None:
    """JRN-2: change, gap, swap, cut tail and forged line, each with its file and line and nothing else."""
    log.live.write_bytes(b"".join(tamper(log.lines())))
    assert log.found() == findings
    assert {one.file for one in log.verify().findings} == {str(log.live)}


def test_a_forged_line_in_between_is_one_finding(log: Written) -> None:
    """JRN-2: the lines behind a forged one are in their places."""
    forged = b'{"seq":5,"type":"question.answered","prev":"00"}\n'
    log.live.write_bytes(b"".join([*log.lines()[:4], forged, *log.lines()[4:]]))
    assert [line for line, _ in log.found()] == [5]


def test_a_whole_chain_of_another_key_is_a_replaced_file(log: Written) -> None:
    """JRN-2: a file that was made elsewhere is named as such, not line by line."""
    head, lines = Head(), []
    for number in range(MAX_FINDINGS + 50):
        line, head = make_line(head, bytes(32), 0.0, "net.blocked", f"t{number}", {})
        lines.append(line)
    log.live.write_bytes(b"".join(lines))
    what = f"none of its {len(lines)} lines is sealed with this log's key: the file was replaced"
    assert log.found()[0] == (0, what)
    assert log.verify().more == 0


def test_an_older_state_of_the_log_shows(tmp_path: Path) -> None:
    """JRN-2: a copy from yesterday put back is a cut tail."""
    written = Written(tmp_path)
    written.write(4)
    yesterday = written.live.read_bytes()
    written.write(4)
    written.live.write_bytes(yesterday)
    assert written.found() == [(4, "the end was cut: the sealed head is line 8, the last one here is 4")]


def test_lines_written_by_who_has_no_key_but_the_hashes_are_found(log: Written) -> None:
    """JRN-2: a chain of plain hashes could be made anew behind a change; the seals cannot."""
    lines = log.lines()
    head = Head(seq=4, hash=line_hash(lines[3][:-1]))
    for number in range(4, 10):
        lines[number], head = make_line(head, bytes(32), 0.0, "net.blocked", "forged", {})
    log.live.write_bytes(b"".join(lines))
    assert [line for line, _ in log.found()] == [5, 6, 7, 8, 9, 10]


def test_a_head_that_is_gone_or_changed_is_found(log: Written) -> None:
    """JRN-2: without the head a cut tail could not be seen, so its loss is a finding."""
    path = log.keys / HEAD_NAME
    path.write_bytes(path.read_bytes().replace(b'"head":', b'"haed":'))
    assert [line for line, _ in log.found()] == [0]
    path.unlink()
    assert "it was removed" in log.found()[0][1]


def test_a_line_replaced_by_its_own_key_shows_by_its_hash(log: Written) -> None:
    """JRN-2: even sealed, a line that was written anew does not fit between its neighbours."""
    key = read_key(str(log.keys))
    lines = log.lines()
    lines[4], _ = make_line(Head(seq=4, hash="0" * 64), key, 0.0, "net.blocked", "t", {})
    log.live.write_bytes(b"".join(lines))
    assert [line for line, _ in log.found()] == [5, 6]


def test_older_files_belong_to_the_chain(tmp_path: Path) -> None:
    """JRN-2: a removed, renamed or swapped older file is found like a line."""
    written = Written(tmp_path)
    written.write(60, max_bytes=3000)
    older = [Path(path) for path in older_segments(str(written.folder))]
    assert written.verify().ok
    text = older[1].read_bytes()
    older[1].write_bytes(text.replace(b".test", b".tset", 1))
    assert {one.file for one in written.verify().findings} == {str(older[1])}
    older[1].write_bytes(text)
    aside = tmp_path / "aside"
    older[1].rename(aside)
    assert [one.file for one in written.verify().findings] == [str(older[2])]
    aside.rename(written.folder / "actions.0000000002.jsonl")
    assert "the file's name says" in written.found()[0][1]


def test_findings_are_bounded(tmp_path: Path) -> None:
    """A log full of faults names the first and counts the rest."""
    written = Written(tmp_path)
    written.write(MAX_FINDINGS + 50)
    lines = written.lines()
    written.live.write_bytes(b"".join([lines[0], *(b"x" + line for line in lines[1:])]))
    found = written.verify()
    assert (len(found.findings), found.more) == (MAX_FINDINGS, 49)


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_file_is_named_and_not_waited_for(log: Written, kind: str) -> None:
    """JRN-2: whatever stands in the place of the log is one finding, with its path; what follows from it is none."""
    put(kind, log.live)
    found = log.verify()
    assert [(one.file, one.line, one.what) for one in found.findings] == [(str(log.live), 0, word(kind))]
    assert not found.ok
    assert found.lines == 0


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_stands_in_the_place_of_an_older_file_hides_nothing_behind_it(tmp_path: Path, kind: str) -> None:
    """JRN-2: the files after it are looked at as they are, and a line that was changed there is found too."""
    log = Written(tmp_path)
    log.write(12, max_bytes=900)
    first, *others = (Path(path) for path in older_segments(str(log.folder)))
    assert others
    put(kind, first)
    assert log.found() == [(0, word(kind))]
    log.live.write_bytes(log.live.read_bytes().replace(b"h11.test", b"h99.test"))
    assert [what for _, what in log.found()] == [word(kind), "changed or forged: its seal is not this log's"]


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_head_that_is_no_file_is_a_head_that_was_removed(log: Written, kind: str) -> None:
    """JRN-2: reading it is not waited for either."""
    put(kind, log.keys / HEAD_NAME)
    assert [what[:22] for _, what in log.found()] == ["there is no sealed hea"]
