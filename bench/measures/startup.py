"""How long `true` takes: bare, in bubblewrap, in tidegate as it is, without capture or self-test, in sandbox-runtime.

Wall time from fork to the end of the whole command, the sandboxes in turn; beside it the processor time of all its
processes that were waited for. The first run of each is not counted: it
warms caches, and it says whether the sandbox works here at all.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench import sandboxes
from bench.processes import BenchError
from bench.sandboxes import Sandbox

if TYPE_CHECKING:
    from bench.context import Context
    from bench.results import Series

BARE = "bare true"
_FULL, _QUICK = 21, 7
_KINDS: tuple[type[Sandbox], ...] = (
    sandboxes.InTidegate,
    sandboxes.InTidegateWithoutCapture,
    sandboxes.InTidegateWithoutSelftest,
    sandboxes.InBubblewrap,
    sandboxes.InSandboxRuntime,
)


def measure_startup(context: Context) -> None:
    """Time `true` in every sandbox that works here."""
    measure = context.results.measure("startup", "run true", "ms", more_is_better=False)
    working: list[Sandbox] = []
    for kind in _KINDS:
        if kind.name in context.missing:
            continue
        sandbox = kind(context.folder, None)
        if why := sandbox.works():
            context.failed(f"{kind.name}: start", why)
            continue
        working.append(sandbox)
        context.note(kind.name, kind.version, kind.settings)
    rounds = _QUICK if context.quick or context.bounds_only else _FULL
    context.say(f"start-up, {rounds} rounds")
    for _ in range(rounds):
        with context.sampling():
            time_once(measure.of(BARE), ["true"], dict(os.environ))
            for sandbox in working:
                time_once(measure.of(sandbox.name), sandbox.command(["true"]), sandbox.environment())


def time_once(series: Series, command: list[str], env: dict[str, str]) -> None:
    """Add the time that a command takes from fork to its end, in ms.

    Raises:
        BenchError: when it fails.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
        began = time.perf_counter()
        pid = os.posix_spawnp(command[0], command, env, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        took = time.perf_counter() - began
    finally:
        os.close(null)
    if status:
        raise BenchError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    series.add(took * 1000, cpu_ms=(usage.ru_utime + usage.ru_stime) * 1000)
