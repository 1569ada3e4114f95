"""tidegate.questions.shape: a question in plain values."""

from __future__ import annotations

import json

from tidegate.model.destination import parse_authority
from tidegate.model.question import Answer, Question, State
from tidegate.model.verdict import Phase
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line, join
from tidegate.questions.shape import question_shape


def test_a_question_is_plain_and_whole() -> None:
    """ASK-1, SRV-2: all that people are shown, as JSON and marshal can carry it."""
    policy = join(command_line(ask=("*.test",), profile="closed"))
    decision = decide(policy, parse_authority("a.test:443", 443), Phase.RUNTIME)
    question = Question(3, "t1", "/w", "a.test", 443, Phase.RUNTIME, decision, 10.0, 910.0, waiting=2)
    shape = question_shape(question, "name")
    assert json.loads(json.dumps(shape)) == shape
    assert (shape["id"], shape["task"], shape["task_name"], shape["host"], shape["port"]) == (
        3,
        "t1",
        "name",
        "a.test",
        443,
    )
    assert (shape["rule"], shape["state"], shape["answer"], shape["waiting"]) == ("*.test", "open", None, 2)
    answered = question.replace(state=State.ANSWERED, answer=Answer.DENY_TASK, by="terminal", answered_at=20.0)
    assert question_shape(answered, "")["answer"] == "deny-task"
