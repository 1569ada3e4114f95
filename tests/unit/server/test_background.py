"""tidegate.server.background."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tidegate.server import background


def test_a_task_that_fails_is_reported() -> None:
    """SRV-1: nothing that the server started ends unseen."""
    reported: list[dict[str, Any]] = []

    async def fails() -> None:
        raise ValueError("why")

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
        background.start(fails(), "the name")
        other = background.start(asyncio.sleep(60), "another")
        await asyncio.sleep(0.01)
        other.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(go())
    assert [(one["message"], str(one["exception"])) for one in reported] == [("the name failed", "why")]
    assert {"the name", "another"}.isdisjoint(task.get_name() for task in background._running)


def test_what_blocks_runs_in_a_thread() -> None:
    """The loop goes on while the disk is slow; what the call raises is the caller's."""

    async def go() -> None:
        event = threading.Event()
        waiting = background.start(background.in_thread(event.wait, 10), "waits")
        await asyncio.sleep(0.01)
        event.set()
        assert await waiting
        with pytest.raises(ZeroDivisionError):
            await background.in_thread(divmod, 1, 0)

    asyncio.run(go())
