"""What `tidegate task` asks of the server over the front door: one verb, one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.errors import UsageError
from tidegate.model.verdict import Phase
from tidegate.policy.snapshot import from_json

if TYPE_CHECKING:
    from typing import Any

    from tidegate.server.tasks import Registry

BY = "the command line"


async def do(registry: Registry, verb: str, order: dict[str, Any]) -> Any:
    """Do it, and return what is to be shown.

    Raises:
        TidegateError: when it cannot be done.
    """
    if verb == "create":
        task = await registry.create(
            folder=order["folder"],
            policy=from_json(order["policy"]),
            name=order["name"],
            phase=Phase(order["phase"]),
            wait_seconds=order["wait_seconds"],
            hold=order.get("hold", ""),
            container=order.get("container"),
            secrets=order.get("secrets", ()),
            tools=order.get("tools", ()),
            issue=order.get("issue", ""),
            by=BY,
        )
        return registry.view(task)
    if verb == "list":
        return await registry.records(living=None if order["all"] else True, limit=order["limit"])
    if verb == "show":
        return await registry.record(order["task"])
    task = registry.get(order["task"])
    if verb == "container":
        return {"hold": task.hold, **(task.container or {})} if task.container or task.hold == "uid" else None
    if verb == "given":
        return await registry.given(task, order["environ"])
    if verb == "connections":
        return await registry.look(task)
    if verb == "phase":
        count = await registry.set_phase(task, Phase(order["phase"]), cut=order["cut"], by=BY)
        return registry.view(task) | {"cut": count}
    if verb == "wait":
        await registry.set_wait(task, order["wait_seconds"], by=BY)
        return registry.view(task)
    if verb == "end":
        view = registry.view(task)
        await registry.end(task, by=BY)
        return view
    raise UsageError(f"a task cannot be told to {ascii(verb)[:40]}", code="front")
