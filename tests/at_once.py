"""Calls that begin together in threads: for what two commands of a person may do at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def at_once(*calls: Callable[[], object], rounds: int = 1) -> None:
    """Make all calls together, so many times, and wait for them; what one of them raises is raised here."""
    barrier = threading.Barrier(len(calls))

    def work(call: Callable[[], object]) -> None:
        for _ in range(rounds):
            barrier.wait(60)
            try:
                call()
            except BaseException:
                barrier.abort()  # the others need not wait for it
                raise

    with ThreadPoolExecutor(len(calls)) as pool:
        running = [pool.submit(work, call) for call in calls]
    raised = [error for error in (one.exception() for one in running) if error is not None]
    for error in raised:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    assert not raised, raised
