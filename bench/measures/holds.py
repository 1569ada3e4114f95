"""The tunnel figures and the launch of each hold beside `netns`, and what its engine does alone (HLD-2 to HLD-4).

The load generator runs inside, as in `inside`, by the proxy of the environment. Launching is `true` from fork to the
end of the whole command. docker and podman are started by the bench, with an image of busybox alone; a hold that this
machine cannot have is named with its reason and left out.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench import sandboxes
from bench.engines import Engine
from bench.loads import Load
from bench.measures.inside import compare, starting
from bench.measures.startup import time_once
from bench.processes import BenchError

if TYPE_CHECKING:
    from bench.context import Context
    from bench.sandboxes import Sandbox

_WARMUP = 0.5
_MOST_LAUNCHES = 11
_HOLDS: tuple[type[Sandbox], ...] = (
    sandboxes.InTidegate,
    sandboxes.InUid,
    sandboxes.InLandlock,
    sandboxes.InDocker,
    sandboxes.InPodman,
)
_BARE: tuple[type[Sandbox], ...] = (sandboxes.BareDocker, sandboxes.BarePodman)
_LOADS = (
    ("hold_tunnels_1", "tunnels from inside the hold, 1 at once", Load("tunnels", clients=1)),
    ("hold_tunnels_32", "tunnels from inside the hold, 32 at once", Load("tunnels", clients=32)),
    ("hold_up_1", "throughput up from inside the hold, one tunnel", Load("up", port="sink")),
    ("hold_down_1", "throughput down from inside the hold, one tunnel", Load("down", port="source")),
)
_QUICK = frozenset({"hold_tunnels_32"})


def measure_holds(context: Context) -> None:
    """Compare the holds that this machine can have. No bound is about them."""
    if context.bounds_only:
        return
    variables: dict[str, dict[str, str]] = {}
    with ExitStack() as engines:
        for name in ("docker", "podman"):
            try:
                engine = Engine(name, context.folder)
            except BenchError as error:
                context.failed(name, error)
                continue
            engines.callback(engine.stop)
            variables[name] = engine.environment
        kinds = [kind for kind in (*_HOLDS, *_BARE) if not kind.engine or kind.engine in variables]
        with starting(context, kinds, variables) as working:
            held = [one for one in working if type(one) in _HOLDS]
            loads = [load for load in _LOADS if load[0] in _QUICK] if context.quick else _LOADS
            compare(context, held, loads, frozenset(), warmup=_WARMUP)
            _launch(context, working)


def _launch(context: Context, working: list[Sandbox]) -> None:
    rounds = 1 if context.quick else min(max(3, context.rounds), _MOST_LAUNCHES)
    context.say(f"launch of each hold, {rounds} rounds")
    measure = context.results.measure("hold_launch", "run true", "ms", more_is_better=False)
    broken: set[str] = set()
    for _ in range(rounds):
        for sandbox in working:
            if sandbox.name in broken:
                continue
            try:
                with context.sampling():
                    time_once(measure.of(sandbox.name), sandbox.command(["true"]), sandbox.environment())
            except BenchError as error:
                broken.add(sandbox.name)
                context.failed(f"{sandbox.name}: launch", error)
