"""Tasks, questions and rules as the API and the bus give them: JSON with Unix seconds for times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.questions.shape import question_shape as question_shape  # noqa: PLC0414  where the others are

if TYPE_CHECKING:
    from typing import Any

    from tidegate.state.store import RuleRecord, TaskRecord


def place(host: str, port: int) -> str:
    """Return `name:port`, an IPv6 address in brackets, as the action log has it (JRN-3)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def task_shape_of_record(record: TaskRecord) -> dict[str, Any]:
    """Return a task of which only the record is left."""
    return {
        "id": record.id,
        "name": record.name,
        "folder": record.folder.path,
        "command": list(record.command),
        "phase": record.phase.value,
        "state": "living" if record.ended_at is None else "ended",
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "outcome": record.outcome,
        "hold": record.hold,
        "network": record.network,
        "wait_seconds": record.wait_seconds,
        "paused": False,
        "execs": [],
        "connections": record.connections,
        "refused": record.refused,
        "questions": 0,
        "by": record.by,
        "warnings": [],
    }


def rule_shape(rule: RuleRecord) -> dict[str, Any]:
    """Return a remembered host."""
    return {
        "id": rule.id,
        "folder": rule.folder.path,
        "host": rule.host,
        "port": rule.port,
        "phase": rule.phase.value,
        "at": rule.at,
        "by": rule.by,
    }
