"""tidegate.cli.policy.records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.journal.contact_lines import line, no, written
from tests.unit.policy.written import policy, say
from tidegate.cli.policy.records import class_of, forged, judge, opened, remarks
from tidegate.journal.line import lost_line
from tidegate.model.address_class import AddressClass
from tidegate.model.errors import UsageError
from tidegate.model.reason import Reason
from tidegate.runtime.state import LOG_NAME, make_task_folder


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder with a task on record, and a current folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    (tmp_path / "state").mkdir()
    written(Path(make_task_folder(str(tmp_path / "state" / "tidegate"), "20261129-230000-aaaa"), LOG_NAME), line())
    return tmp_path


@pytest.mark.usefixtures("state")
def test_a_record_is_named_by_a_task_or_a_path() -> None:
    """JRN-7: the beginning of a task's id, or any path; the same record twice counts once."""
    written(Path("n.jsonl"), line(), no())
    found = opened(["20261129-23", "n.jsonl", "./n.jsonl", "20261129"])
    assert [named.text for named in found] == ["20261129-23", "n.jsonl"]
    assert [len(list(named.record.contacts())) for named in found] == [1, 2]


@pytest.mark.usefixtures("state")
def test_only_a_tasks_own_record_has_older_files() -> None:
    """JRN-7: what somebody rotated beside a file of --log is no part of it."""
    for name in ("n.jsonl", LOG_NAME):
        written(Path(name), line())
        written(Path(f"{name}.1"), line(), line())
    assert [len(list(named.record.contacts())) for named in opened(["n.jsonl", LOG_NAME])] == [1, 3]


def test_what_is_no_task_is_said(state: Path) -> None:
    """JRN-7: an unknown id, one that begins two tasks, and a task whose record is elsewhere."""
    with pytest.raises(UsageError, match="no task on record begins with 'x'"):
        opened(["x"])
    make_task_folder(str(state / "state" / "tidegate"), "20261129-230000-bbbb")
    with pytest.raises(UsageError, match="2 tasks on record begin with '2026'"):
        opened(["2026"])
    with pytest.raises(UsageError, match="has no record here"):
        opened(["20261129-230000-b"])


def test_what_a_record_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-7: nothing that could make a check look complete is passed over in silence, another user's record least."""
    empty = written(tmp_path / "empty")
    torn = written(tmp_path / "torn", lost_line(0, "t", 5, "ENOSPC"), no(host="*", port=0, count=9), line()[:50])
    said = []
    for named in opened([empty, torn]):
        list(named.record.contacts())
        said += remarks(named)
    assert said == [
        f"{empty} has no connection at all: nothing in it was looked at",
        f"the last line of {torn} is not whole, and was left out",
        f"{torn} lacks 5 connections: lost, or more than fits",
        f"{torn} lacks the hosts of 9 refusals: the task tried too many at once",
    ]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    (named,) = opened([written(tmp_path / "n", line())])
    list(named.record.contacts())
    assert remarks(named) == [
        f"{named.text} belongs to another user (uid {os.stat(tmp_path).st_uid}), who can have written anything into it"
    ]


@pytest.mark.usefixtures("state")
def test_without_an_action_log_nothing_is_forged() -> None:
    """JRN-7, JRN-2: a run that had nothing to seal has no action log, and a file of anywhere has none beside it."""
    written(Path("n.jsonl"), line())
    assert forged(opened(["n.jsonl", "20261129"])) == ""


def test_addresses_are_judged_as_by_the_gate() -> None:
    """JRN-7, ADR-2: classes and admission are those of the gate; what is no address says nothing."""
    find = class_of()
    assert [find(text) for text in ("8.8.8.8", "10.0.0.1", "127.0.0.1", "169.254.169.254", "fd00::5", "", "x")] == [
        AddressClass.PUBLIC, AddressClass.PRIVATE, AddressClass.OWN, AddressClass.NEVER, AddressClass.PRIVATE,
        AddressClass.PUBLIC, AddressClass.PUBLIC,
    ]  # fmt: skip
    of = policy(["**.test"])
    assert judge(of, say(of, "a.test"), "10.0.0.1").reason is Reason.PRIVATE_ADDRESS
    assert judge(of, say(of, "a.test"), "").allowed
