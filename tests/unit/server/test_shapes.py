"""tidegate.server.shapes."""

from __future__ import annotations

import json

from tests.unit.server.kit import policy
from tidegate.model.destination import parse_authority
from tidegate.model.question import FolderKey, Question, State
from tidegate.model.verdict import Phase
from tidegate.policy.decide import decide
from tidegate.server.shapes import question_shape, rule_shape, task_shape_of_record
from tidegate.state.store import RuleRecord, TaskRecord

FOLDER = FolderKey("/w", 1, 2)


def test_a_record_is_shown_like_a_living_task() -> None:
    """SRV-2: one shape for both, as JSON; an ended one says when and how."""
    record = TaskRecord(
        "t1", FOLDER, 1.0, b"{}", command=("a", "b"), ended_at=2.0, outcome="done", connections=3, refused=2
    )
    shape = task_shape_of_record(record)
    assert (shape["state"], shape["ended_at"], shape["outcome"], shape["command"]) == (
        "ended",
        2.0,
        "done",
        ["a", "b"],
    )
    assert (shape["connections"], shape["refused"]) == (3, 2)
    assert json.loads(json.dumps(shape)) == shape
    assert task_shape_of_record(record.replace(ended_at=None))["state"] == "living"


def test_a_question_is_shown_with_what_made_it_wait() -> None:
    """ASK-1, POL-6: task, host, port, rule and time left, all from the one decision."""
    decision = decide(policy(ask=("a.test:443",)), parse_authority("a.test:443"), Phase.RUNTIME)
    question = Question(
        7, "t1", "/w", "a.test", 443, Phase.RUNTIME, decision, 1.0, 901.0, 2, State.OPEN, None, None, "", None,
        "a.test", (), "", "", "",
    )  # fmt: skip
    shape = question_shape(question, "hello")
    assert (shape["id"], shape["task_name"], shape["rule"], shape["waiting"]) == (7, "hello", "a.test:443", 2)
    assert (shape["state"], shape["answer"]) == ("open", None)
    assert json.loads(json.dumps(shape)) == shape


def test_a_rule_is_shown_with_when_and_by_whom() -> None:
    """ASK-8."""
    rule = RuleRecord(3, FOLDER, "a.test", 443, Phase.RUNTIME, 5.0, "me", 7)
    assert rule_shape(rule) == {
        "id": 3, "folder": "/w", "host": "a.test", "port": 443, "phase": "runtime", "at": 5.0, "by": "me",
    }  # fmt: skip
