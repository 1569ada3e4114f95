"""The types of what the API gives are what the server's own shapes have, name for name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tests.unit.server.api.running import Whole
from tidegate.server.api import answers

if TYPE_CHECKING:
    from pathlib import Path


def _same(shape: dict[str, Any], kind: type[msgspec.Struct]) -> None:
    msgspec.convert(shape, kind)
    assert set(shape) == set(kind.__struct_fields__)


def test_what_the_server_shows_is_what_the_document_says(tmp_path: Path) -> None:
    """SRV-1: tasks (living and ended), questions, rules, settings, tokens and log pages have exactly these names."""
    with Whole(tmp_path) as whole:
        task = whole.task(name="one")
        _same(task, answers.TaskAnswer)
        whole.open_question(task["id"])
        (question,) = whole.get("/api/questions")["questions"]
        _same(question, answers.QuestionAnswer)
        reply = whole.send("POST", f"/api/questions/{question['id']}/answer", {"answer": "remember"})
        _same(reply.json, answers.QuestionAnswer)
        _same(whole.get("/api/rules")["rules"][0], answers.RuleAnswer)
        _same(whole.get("/api/settings"), answers.SettingsAnswer)
        _same(whole.get("/api/health"), answers.Health)
        made = whole.send("POST", "/api/tokens", {"name": "a"}).json
        _same(made, answers.NewTokenAnswer)
        _same(made["token"], answers.TokenAnswer)
        _same(whole.get("/api/log"), answers.LogPage)
        _same(whole.get("/api/log/verify"), answers.LogVerdict)
        _same(whole.get("/api/tasks"), answers.Tasks)
        _same(whole.get(f"/api/tasks/{task['id']}/connections"), answers.Connections)
        _same(whole.send("POST", f"/api/tasks/{task['id']}/end").json, answers.TaskAnswer)
