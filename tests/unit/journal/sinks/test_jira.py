"""tidegate.journal.sinks.jira: one comment a task, in which nothing of the task's is markup."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.sinks.receivers import Jira, until
from tests.sinks.rig import Log, rig, wall
from tidegate.journal.sinks.definition import Definition, Keys, World, make
from tidegate.journal.sinks.jira import HOSTS, JiraSink, told
from tidegate.journal.sinks.record import Position
from tidegate.journal.sinks.sink import TAKEN
from tidegate.journal.sinks.tail import Tail
from tidegate.journal.sinks.target import Target

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.journal.sinks.record import Record

EVIL = [
    "{code}", "{noformat}h1. pwned", "[~admin]", "[click|https://evil.test]", "!https://evil.test/x.png!", "@admin",
    "https://evil.test/", "||a||", "{color:red}", "\n\nh1. x", "\r", "\x1b[2J", "\u202e", "&lt;", "x" * 1_000_000,
]  # fmt: skip


def end_of(log: Log) -> Record:
    """Return the newest end of a task."""
    tail = Tail(log.folder, log.key, Position(), head=log.head, wall=wall)
    found = [record for record in tail.read(10_000, 1 << 30) if record.kind == "task.ended"]
    tail.close()
    return found[-1]


def sink(jira: Jira, log: Log, *, cloud: bool) -> JiraSink:
    """Return a sink of either kind at this tracker."""
    url = jira.url.partition("+")[2]
    return JiraSink(Target(url, b""), {}, log.folder, cloud=cloud)


def texts(value: Any) -> list[str]:
    """Return the texts of a document."""
    if isinstance(value, dict):
        return (
            [value["text"]] if value.get("type") == "text" else [one for part in value.values() for one in texts(part)]
        )
    return [one for part in value for one in texts(part)] if isinstance(value, list) else []


def kinds(value: Any) -> set[str]:
    """Return the types of a document's nodes."""
    if isinstance(value, dict):
        return {str(value.get("type", ""))} | {one for part in value.values() for one in kinds(part)}
    return {one for part in value for one in kinds(part)} if isinstance(value, list) else set()


def test_one_comment_says_what_became_of_a_task(tmp_path: Path) -> None:
    """JRN-6: how it ended, refusals folded by place with the most first, and questions."""
    log = Log(tmp_path / "a")
    log.log.append("task.created", "t1", issue="ABC-7", hold="netns")
    log.log.append("net.blocked", "t2", host="not-its-own.test:1", reason="no-rule")
    log.log.append("net.blocked", "t1", host="a.test:443", reason="no-rule")
    log.log.append("net.blocked", "t1", host="b.test:443", reason="deny-rule", count=4)
    log.log.append("question.opened", "t1", host="c.test:443")
    log.log.append("task.ended", "t1", outcome="exit 1")
    with Jira() as jira, rig(log, jira):
        until(lambda: jira.comments.get("ABC-7"))
    (comment,) = jira.comments["ABC-7"]
    assert re.fullmatch(
        r"\{noformat\}\ntask t1 has ended: exit 1\nbegan \S+, ended \S+; hold netns\n"
        r"refused: 5 connections to 2 places\n"
        r"  4 x b\.test:443 deny-rule\n  1 x a\.test:443 no-rule\nquestions: 1\ntidegate 6-[0-9a-f]{16}\n\{noformat\}",
        comment,
    ), comment


@pytest.mark.parametrize("cloud", [False, True])
def test_nothing_of_a_task_is_markup(tmp_path: Path, cloud: bool) -> None:
    """JRN-6, JRN-5: macros, mentions, links, images and escapes in hosts and outcomes are text, of a bounded length."""
    log = Log(tmp_path / "a")
    log.log.append("task.created", "t1", issue="ABC-7", hold="netns")
    for host in EVIL:
        log.log.append("net.blocked", "t1", host=host, reason=host)
    log.log.append("task.ended", "t1", outcome="{noformat} [~admin]")
    with Jira() as jira:
        assert sink(jira, log, cloud=cloud).send([end_of(log)]).state == TAKEN
    (comment,) = jira.comments["ABC-7"]
    assert len(json.dumps(comment)) < 6000
    if cloud:
        assert kinds(comment) == {"doc", "codeBlock", "text", ""}
        (text,) = texts(comment)
        assert re.fullmatch(r"[ -~\n]*", text)
    else:
        head, *lines, foot = comment.split("\n")
        assert (head, foot) == ("{noformat}", "{noformat}")
        assert all(re.fullmatch(r"[A-Za-z0-9 .:_,;?-]*", line) for line in lines)


def test_places_are_folded(tmp_path: Path) -> None:
    """JRN-6: however many hosts a task tries, the comment names a bounded number."""
    log = Log(tmp_path / "a")
    log.log.append("task.created", "t1", issue="ABC-7", hold="netns")
    for number in range(HOSTS + 30):
        log.log.append("net.blocked", "t1", host=f"h{number}.test:1", reason="no-rule")
    log.log.append("task.ended", "t1", outcome="exit 0")
    issue, lines = told(log.folder, end_of(log))
    assert issue == "ABC-7"
    assert len(lines) == HOSTS + 4
    assert lines[-1] == "  and 30 more"


def test_a_task_without_an_issue_says_nothing(tmp_path: Path) -> None:
    """JRN-6: no comment, no request; one with a text that is no key neither. One whose beginning is gone is said."""
    log = Log(tmp_path / "a")
    log.tasks(2, issue="")
    log.tasks(1, issue="../../x")
    log.log.append("task.ended", "never-created", outcome="")
    wanted = log.tasks(1, issue="ABC-1")
    with Jira() as jira, rig(log, jira) as follows:
        until(lambda: jira.seqs == wanted)
        until(lambda: follows.follower.state.kept.aside == 1)
        assert "is no more in the log" in follows.aside()
    assert {path.split("/")[5] for _, path, _, _ in jira.got} == {"ABC-1"}


def test_an_issue_that_is_not_there_holds_up_no_other(tmp_path: Path) -> None:
    """JRN-6: its record is set aside, the next task's comment is made."""
    log = Log(tmp_path / "a")
    log.tasks(1, issue="NONE-1")
    wanted = log.tasks(1)
    with Jira() as jira, rig(log, jira) as follows:
        until(lambda: jira.seqs == wanted)
        until(lambda: follows.follower.state.kept.aside == 1)
        assert "it answers 404" in follows.aside()


@pytest.mark.parametrize(
    ("url", "key", "version", "header"),
    [
        ("jira+https://acme.atlassian.net", b"me@acme.test:token", 3, "Basic bWVAYWNtZS50ZXN0OnRva2Vu"),
        ("jira+https://jira.acme.test/base/", b"token", 2, "Bearer token"),
    ],
)
def test_the_cloud_and_a_server(url: str, key: bytes, version: int, header: str) -> None:
    """JRN-6: the cloud takes documents and a user with a token, a server of one's own markup and a bearer token."""
    made = make(Definition("j", url), Keys(key), World("", "", wall))
    assert isinstance(made, JiraSink)
    assert made._base.endswith(f"/rest/api/{version}/issue")
    assert made._headers["Authorization"] == header
