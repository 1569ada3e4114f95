"""Tasks, questions and rules as the API and the bus give them: JSON with Unix seconds for times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidegate.questions.shape import question_shape as question_shape  # noqa: PLC0414  where the others are
from tidegate.server.task_secrets import TaskSecrets

if TYPE_CHECKING:
    from typing import Any

    from tidegate.gate.open_now import Glance
    from tidegate.server.living import Living
    from tidegate.state.store import RuleRecord, TaskRecord


def task_shape(task: Living | TaskRecord, **rest: Any) -> dict[str, Any]:
    """Return what a living task and a record are alike in, and `rest`."""
    return {
        "id": task.id,
        "name": task.name,
        "folder": task.folder.path,
        "command": list(task.command),
        "phase": task.phase.value,
        "created_at": task.created_at,
        "hold": task.hold,
        "network": task.network,
        "wait_seconds": task.wait_seconds,
        "by": task.by,
    } | rest


def task_shape_of_record(record: TaskRecord) -> dict[str, Any]:
    """Return a task of which only the record is left."""
    return task_shape(
        record,
        state="living" if record.ended_at is None else "ended",
        ended_at=record.ended_at,
        outcome=record.outcome,
        paused=False,
        execs=[],
        connections=record.connections,
        refused=record.refused,
        questions=0,
        secrets=_secrets_of(record),
        tools=_tools_of(record),
        warnings=[],
    )


def _secrets_of(record: TaskRecord) -> list[dict[str, Any]]:
    try:
        return TaskSecrets.of_record(json.loads(record.operator or b"{}").get("secrets")).shown()
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # a record of another version


def _tools_of(record: TaskRecord) -> list[str]:
    try:
        return [str(name) for name in json.loads(record.operator or b"{}").get("tools", ())]
    except (ValueError, TypeError, AttributeError):
        return []  # likewise


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


def open_shape(one: Glance) -> dict[str, Any]:
    """Return a connection that is open now."""
    entry, decision = one.entry, one.decision
    assert decision is not None, "only what was decided is looked at"
    return {
        "id": entry.number,
        "host": decision.destination.host.text,
        "port": decision.destination.port,
        "verdict": decision.verdict.value,
        "rule": "" if decision.rule is None else decision.rule.text,
        "name": decision.name,
        "source": decision.source,
        "phase": decision.phase.value,
        "state": one.state,
        "how": one.how,
        "method": entry.method,
        "address": entry.address or decision.address,
        "since": entry.at,
        "bytes_up": one.up,
        "bytes_down": one.down,
    }
