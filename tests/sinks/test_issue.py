"""A task's issue, from the command line to the tracker (JRN-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.product import Product
from tests.served import Served
from tests.sinks.receivers import Jira, until
from tests.sinks.test_kill import words_for

if TYPE_CHECKING:
    from pathlib import Path


def test_each_way_to_a_task_leads_to_one_comment(tmp_path: Path) -> None:
    """JRN-6: `run` behind a server, `run` alone while it is there, and a created task; none without `--issue`.

    What the tasks were refused is in the comment; the first one reached nothing and was refused nothing.
    """
    product = Product(tmp_path, user=False)
    with Jira() as jira, Served(product) as server:
        assert server.tidegate(*words_for(jira, tmp_path)).returncode == 0
        assert product.run("--issue", "RUN-1", "--", "true").returncode == 0
        assert product.run("--issue", "ALONE-1", "--no-server", "--", "true").returncode == 0
        assert product.run("--", "true").returncode == 0
        done = server.tidegate("task", "create", "--issue", "TASK-1", "--profile", "closed")
        assert done.returncode == 0, done.stderr
        task = done.stdout.split()[0]
        ran = server.tidegate("exec", task, "--", "curl", "-s", "http://a.test/")
        assert ran.returncode in (0, 22), ran
        assert server.tidegate("task", "end", task).returncode == 0
        until(lambda: set(jira.comments) >= {"RUN-1", "ALONE-1", "TASK-1"}, lambda: (jira.comments, jira.got))
        assert {issue: len(texts) for issue, texts in jira.comments.items() if texts} == {
            "RUN-1": 1, "ALONE-1": 1, "TASK-1": 1,
        }  # fmt: skip
        (text,) = jira.comments["TASK-1"]
        assert "x a.test:80 no-rule" in text
        (text,) = jira.comments["RUN-1"]
        assert "refused: 0 connections" in text


@pytest.mark.parametrize("words", [["run", "--issue", "abc-1", "--", "true"], ["task", "create", "--issue", "../x"]])
def test_what_is_no_key_is_refused(tmp_path: Path, words: list[str]) -> None:
    """JRN-6, HLD-16: one line that says what a key looks like, and exit 2; nothing has begun."""
    done = Product(tmp_path, user=False).tidegate(*words)
    assert done.returncode == 2
    assert "is no key of an issue" in done.stderr
    assert "--issue ABC-123" in done.stderr
