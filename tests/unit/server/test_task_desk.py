"""tidegate.server.task_desk: what `tidegate task` says, over the real front door."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import policy, served
from tidegate.model.errors import TidegateError, UsageError
from tidegate.policy.snapshot import to_plain
from tidegate.runtime.server_link import find_server

if TYPE_CHECKING:
    from tidegate.server.serve import Server


async def _do(server: Server, verb: str, **order: Any) -> Any:
    def ask() -> Any:
        link = find_server(server.state, print)
        assert link is not None
        try:
            return link.do(verb, **order)
        finally:
            link.close()

    return await asyncio.to_thread(ask)


def test_a_task_from_beginning_to_end(tmp_path: Path) -> None:
    """HLD-5, POL-7: create, list, show, phase, end; each answer is what is in force."""

    async def act(server: Server) -> None:
        plain = to_plain(policy("a.test"))
        made = await _do(
            server, "create", folder=str(tmp_path), name="n", phase="install", policy=plain, wait_seconds=None
        )
        assert (made["state"], made["phase"], made["name"], made["wait_seconds"]) == ("living", "install", "n", 900)
        assert [one["id"] for one in await _do(server, "list", all=False, limit=9)] == [made["id"]]
        assert (await _do(server, "show", task="n"))["id"] == made["id"]
        assert (await _do(server, "wait", task="n", wait_seconds=60))["wait_seconds"] == 60
        moved = await _do(server, "phase", task=made["id"], phase="runtime", cut=False)
        assert (moved["phase"], moved["cut"]) == ("runtime", 0)
        assert (await _do(server, "end", task="n"))["id"] == made["id"]
        assert await _do(server, "list", all=False, limit=9) == []
        assert [one["state"] for one in await _do(server, "list", all=True, limit=9)] == ["ended"]
        assert (await _do(server, "show", task=made["id"]))["state"] == "ended"

    served(tmp_path, act)


@pytest.mark.parametrize(
    ("verb", "order", "why"),
    [
        ("show", {"task": "nobody"}, "no living task"),
        ("end", {"task": ""}, "no living task"),
        ("phase", {"task": "nobody", "phase": "runtime", "cut": False}, "no living task"),
        ("wait", {"task": "nobody", "wait_seconds": 60}, "no living task"),
        ("create", {"folder": "x", "name": "", "phase": "runtime", "policy": None, "wait_seconds": None}, "cannot do"),
        ("create", {}, "cannot do"),
        ("dance", {"task": "nobody"}, "no living task"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, verb: str, order: dict[str, Any], why: str) -> None:
    """HLD-16: an error with its sentence, and the server lives on."""

    async def act(server: Server) -> None:
        with pytest.raises(TidegateError, match=why):
            await _do(server, verb, **order)
        assert await _do(server, "list", all=True, limit=1) == []

    served(tmp_path, act)


def test_a_mistake_of_a_person_is_a_usage_error(tmp_path: Path) -> None:
    """HLD-16: exit 2 for a task that is not there or a wait that is none."""

    async def act(server: Server) -> None:
        with pytest.raises(UsageError):
            await _do(server, "show", task="nobody")
        with pytest.raises(UsageError, match="wait"):
            await _do(
                server,
                "create",
                folder=str(tmp_path),
                name="",
                phase="runtime",
                policy=to_plain(policy()),
                wait_seconds=1,
            )

    served(tmp_path, act)
