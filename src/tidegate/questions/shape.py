"""A question as JSON has it: for the API, for whoever watches, and for the terminal. Times are Unix seconds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.model.question import Question


def question_shape(question: Question, task_name: str) -> dict[str, Any]:
    """Return a question as plain values."""
    decision = question.decision
    return {
        "id": question.id,
        "task": question.task,
        "task_name": task_name,
        "folder": question.folder,
        "host": question.host,
        "label": question.label,
        "port": question.port,
        "phase": question.phase.value,
        "rule": decision.rule_text,
        "rule_name": decision.name,
        "source": decision.source,
        "opened_at": question.opened_at,
        "deadline_at": question.deadline_at,
        "waiting": question.waiting,
        "state": question.state.value,
        "answer": question.answer.value if question.answer is not None else None,
        "answered_at": question.answered_at,
        "by": question.by,
        "group": question.group,
        "warnings": list(question.warnings),
        "no_remember": question.no_remember,
        "problem": question.problem,
    }
