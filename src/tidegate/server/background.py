"""What the server starts and does not wait for; the only place that makes asyncio tasks.

A task that fails is reported by asyncio's own exception handler, which the server sets; none is lost, and a reference
to each is kept until it ends. Blocking work (the store, the action log) runs in a few threads, so that a slow disk
never holds up the loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

_T = TypeVar("_T")
_running: set[asyncio.Task[Any]] = set()


def start(coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    """Run a coroutine beside everything else. Whoever starts it ends it (`cancel`) where it does not end by itself."""
    task = asyncio.create_task(coroutine, name=name)  # noqa: TID251 - this is the helper
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        task.get_loop().call_exception_handler(
            {"message": f"{task.get_name()} failed", "exception": error, "task": task}
        )


async def in_thread(call: Callable[..., _T], *arguments: Any) -> _T:
    """Return what `call` returns; it may block, and runs in a thread.

    Raises:
        What `call` raises.
    """
    return await asyncio.to_thread(call, *arguments)
