"""The tunnel figures as a task sees them: the load generator runs in the sandbox, the origin outside.

The generator takes the proxy from the environment that the sandbox gives it, so that what is measured is the way a
task's traffic really goes: in tidegate straight to the gate's listener in the task's own namespace, in
sandbox-runtime through socat, a unix socket, socat again and its proxy. The warm-up is long because sandbox-runtime
starts the command before its relays listen. Destinations are literals. A second column is tidegate without a proxy: the
generator connects to the origin itself, and arrives at the gate by capture.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench import sandboxes
from bench.loads import Load, Origin, finish_load
from bench.processes import BenchError
from bench.sandboxes import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bench.context import Context

_WARMUP = 1.5
_LOADS = (
    ("inside_tunnels_1", "tunnels from inside, 1 at once", Load("tunnels", clients=1)),
    ("inside_tunnels_32", "tunnels from inside, 32 at once", Load("tunnels", clients=32)),
    ("inside_tunnels_256", "tunnels from inside, 256 at once", Load("tunnels", clients=256)),
    (
        "inside_tunnels_32_empty",
        "tunnels from inside closed at once, 32 at once",
        Load("tunnels", clients=32, payload=0),
    ),
    ("inside_up_1", "throughput up from inside, one tunnel", Load("up", port="sink")),
    ("inside_down_1", "throughput down from inside, one tunnel", Load("down", port="source")),
    ("inside_up_16", "throughput up from inside, 16 tunnels", Load("up", port="sink", clients=16)),
    ("inside_down_16", "throughput down from inside, 16 tunnels", Load("down", port="source", clients=16)),
)
_BOUND = frozenset({"inside_tunnels_32", "inside_tunnels_32_empty", "inside_up_1", "inside_down_1"})


def measure_inside(context: Context) -> None:
    """Run each load in tidegate's hold and in sandbox-runtime, in turn."""
    kinds = (sandboxes.InTidegate, sandboxes.InTidegateByCapture, sandboxes.InSandboxRuntime)
    with starting(context, kinds) as working:
        if working:
            compare(context, working, _LOADS, _BOUND, warmup=_WARMUP)


def compare(
    context: Context,
    working: list[Sandbox],
    loads: Iterable[tuple[str, str, Load]],
    bound: frozenset[str],
    *,
    warmup: float,
) -> None:
    """Take samples of each load (key, title, load) in each sandbox, in turn; `bound` are keys of bounds."""
    rounds = max(2, context.rounds // 2 + 1)
    context.say(f"from inside, {rounds} rounds")
    broken: set[tuple[str, str]] = set()
    for key, title, load in loads:
        if context.bounds_only and key not in bound:
            continue
        context.say(title)
        unit = "MB/s" if load.mode in {"up", "down"} else "1/s"
        measure = context.results.measure(key, title, unit)
        for number in range(rounds):
            for sandbox in working if number % 2 else reversed(working):
                if (key, sandbox.name) in broken:
                    continue
                try:
                    with context.sampling():
                        said = _run(sandbox, replace(load, seconds=context.seconds, warmup=warmup))
                except BenchError as error:
                    broken.add((key, sandbox.name))
                    context.failed(f"{sandbox.name}: {title}", error)
                    continue
                value = said["bytes_per_second"] / 1e6 if unit == "MB/s" else said["per_second"]
                more = {"p50_us": said["p50_us"], "p99_us": said["p99_us"]} if unit == "1/s" else {}
                measure.of(sandbox.name).add(
                    value, errors=said["errors"], first_error=said["first_error"] if said["errors"] else "", **more
                )


@contextmanager
def starting(
    context: Context, kinds: Iterable[type[Sandbox]], variables: dict[str, dict[str, str]] | None = None
) -> Iterator[list[Sandbox]]:
    """Yield those sandboxes that work here, each with an origin; `variables` are what finds an engine, by its name."""
    working: list[Sandbox] = []
    try:
        for kind in kinds:
            if kind.name in context.missing:
                continue
            try:
                origin = Origin(kind.address)
            except BenchError as error:
                context.failed(f"{kind.name}: its origin", error)
                continue
            sandbox = kind(context.folder, origin)
            working.append(sandbox)
            sandbox.variables = (variables or {}).get(kind.engine, {})
            if why := sandbox.works():
                context.failed(f"{kind.name}: inside", why)
                working.remove(sandbox)
                origin.stop()
                continue
            context.note(kind.name, kind.version, kind.settings)
        yield working
    finally:
        for sandbox in working:
            if sandbox.origin:
                sandbox.origin.stop()


def _run(sandbox: Sandbox, timed: Load) -> dict[str, Any]:
    if sandbox.origin is None:
        raise BenchError("a load needs an origin")
    # Two source addresses: the namespace inside remembers every closed connection for a minute, and ports run out.
    inside = [*timed.arguments(sandbox.origin), "--sources", str(sandbox.sources), *sandbox.way]
    return finish_load(sandbox.command(inside), timed, env=sandbox.environment(), cwd=sandbox.cwd)
