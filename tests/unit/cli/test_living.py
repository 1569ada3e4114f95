"""`tidegate allow|deny|pause|resume|cut` against a whole server."""

from __future__ import annotations

import pytest

from tests.unit.server.api.running import Whole
from tidegate.cli.living import title
from tidegate.cli.main import main


def _changes(whole: Whole) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = whole.get("/api/log?type=task.changed")["lines"]
    return lines


def test_a_living_task_is_changed_by_its_name(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-8: each command says what it did to which task, does it, and it is recorded."""
    task = whole.task(name="build", hosts=[])
    assert main(["allow", "a.test:443", "*.b.test", "--task", "build"]) == 0
    assert capsys.readouterr().out == f"build ({task['id']}): allow a.test:443, *.b.test, until it ends\n"
    assert main(["deny", "c.test", "--task", task["id"]]) == 0
    assert main(["pause", "--task", "bui"]) == 0
    assert whole.get(f"/api/tasks/{task['id']}")["paused"] is True
    assert main(["resume"]) == 0
    assert whole.get(f"/api/tasks/{task['id']}")["paused"] is False
    capsys.readouterr()
    assert main(["cut", "a.test:443"]) == 0
    assert main(["cut"]) == 0
    assert main(["cut", "--connection", "7"]) == 0
    assert capsys.readouterr().out == f"0 connections of build ({task['id']}) closed\n" * 3
    assert len(_changes(whole)) >= 4


@pytest.mark.parametrize(
    "words",
    [
        ["allow", "https://a.test"],
        ["allow"],
        ["deny", "*a.test"],
        ["cut", "a.test:0"],
        ["cut", "a b"],
        ["cut", "::1"],
        ["cut", "--connection", "0"],
        ["cut", "--connection", "one"],
        ["pause", "--task", "other"],
    ],
)
def test_a_mistake_changes_nothing(whole: Whole, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """POL-2, HLD-16: what is no rule, no place or no task is refused with one line, and the task stays as it was."""
    whole.task(name="build")
    assert main(words) in {1, 2}
    assert capsys.readouterr().err.count("\n") == 1
    assert _changes(whole) == []


def test_the_task_has_to_be_clear(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-8: with none living, or several that are meant, nothing is changed and the line says which there are."""
    assert main(["pause"]) == 2
    assert "no task is living" in capsys.readouterr().err
    for name in ("one", "other"):
        whole.task(name=name)
    assert main(["pause"]) == 2
    assert main(["pause", "--task", "o"]) == 2
    said = capsys.readouterr().err
    assert "one (" in said
    assert "other (" in said
    assert main(["pause", "--task", "one"]) == 0


def test_a_task_s_name_is_printed_safely() -> None:
    """ASK-6: a name with control characters does not reach the screen."""
    assert title({"id": "t1", "name": "a\x1b[2J"}) == "a\\x1b[2J (t1)"
    assert title({"id": "t1", "name": ""}) == "t1"
