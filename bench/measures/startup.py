"""How long `true` takes: bare, in bubblewrap, in tidegate's hold with and without the self-test, in sandbox-runtime.

Wall time from fork to the end of the whole command, the sandboxes in turn. The first run of each is not counted: it
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

BARE = "bare true"
_FULL, _QUICK = 21, 5
_KINDS: tuple[type[Sandbox], ...] = (
    sandboxes.InTidegate,
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
    rounds = _QUICK if context.quick else _FULL
    context.say(f"start-up, {rounds} rounds")
    for _ in range(rounds):
        measure.of(BARE).add(_milliseconds(["true"], dict(os.environ)))
        for sandbox in working:
            measure.of(sandbox.name).add(_milliseconds(sandbox.command(["true"]), sandbox.environment()))


def _milliseconds(command: list[str], env: dict[str, str]) -> float:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
        began = time.perf_counter()
        pid = os.posix_spawnp(command[0], command, env, file_actions=actions)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        took = time.perf_counter() - began
    finally:
        os.close(null)
    if status:
        raise BenchError(f"{' '.join(command)} ended with {status}")
    return took * 1000
