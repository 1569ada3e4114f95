"""Tunnels, requests, refusals and bytes a second through each proxy.

CPU per operation stands beside each rate: what the proxy's processes used, in microseconds. It moves less than the
rate does when the machine has other work, so it is the figure to look at where rounds differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import processes
from bench.context import DIRECT
from bench.loads import Load, Origin, TlsLoad, run_load
from bench.processes import BenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.context import Context
    from bench.peers import Peer
    from bench.results import Measure

PER_SECOND = "1/s"
RATE = "MB/s"
CLIENTS = (1, 32, 256)
BOUND_CLIENTS = 32
STREAMS = (1, 16)


def measure_tunnels(context: Context) -> None:
    """A new connection each: CONNECT to a literal, 64 bytes there and back (or nothing), close."""
    loads = [
        (
            context.results.measure(f"tunnels_{clients}", f"tunnels, {clients} at once", PER_SECOND),
            Load("tunnels", clients=clients, seconds=context.seconds),
        )
        for clients in ((BOUND_CLIENTS,) if context.bounds_only else CLIENTS)
    ]
    empty = context.results.measure("tunnels_32_empty", "tunnels closed at once, 32 at once", PER_SECOND)
    loads.append((empty, Load("tunnels", clients=BOUND_CLIENTS, seconds=context.seconds, payload=0)))
    _compare(context, loads, "tunnels")


def measure_names(context: Context) -> None:
    """The same by name, and with a ClientHello as the exchange."""
    if context.bounds_only:
        return
    if not context.by_name:
        context.say("no hosts file of our own: nothing by name")
        return
    measure = context.results.measure("tunnels_32_name", "tunnels by name with a ClientHello, 32 at once", PER_SECOND)
    load = Load("tunnels", clients=32, seconds=context.seconds, by_name=True, hello=True)
    _compare(context, [(measure, load)], "names")


def measure_requests(context: Context) -> None:
    """Absolute-form GET on kept connections, 128 bytes of body."""
    measure = context.results.measure("get_32", "keep-alive requests, 32 at once", PER_SECOND)
    _compare(context, [(measure, Load("get", port="http", clients=32, seconds=context.seconds))], "get")


def measure_refusals(context: Context) -> None:
    """CONNECT to a destination that no rule names; a new connection each."""
    measure = context.results.measure("refuse_32", "refusals, 32 at once", PER_SECOND)
    _compare(context, [(measure, Load("refuse", clients=32, seconds=context.seconds))], "refuse")


def measure_throughput(context: Context) -> None:
    """Bulk data through open tunnels, counted where it arrives."""
    loads = []
    for streams in STREAMS[:1] if context.bounds_only else STREAMS:
        for mode, port in (("up", "sink"), ("down", "source")):
            many = "one tunnel" if streams == 1 else f"{streams} tunnels"
            measure = context.results.measure(f"{mode}_{streams}", f"throughput {mode}, {many}", RATE)
            loads.append((measure, Load(mode, port=port, clients=streams, seconds=context.seconds)))
    _compare(context, loads, "throughput")


def _compare(context: Context, loads: list[tuple[Measure, Load]], mode: str) -> None:
    origin = Origin()
    try:
        with context.running(mode, context.peers) as peers:
            for measure, load in loads:
                context.say(f"{measure.title}, {context.rounds} rounds")
                rounds(context, measure, load, peers, origin)
    finally:
        origin.stop()


def rounds(context: Context, measure: Measure, load: Load | TlsLoad, peers: Sequence[Peer], origin: Origin) -> None:
    """Take samples of a load through each peer in turn, and of the load without one to `origin` beside them."""
    broken: set[str] = set()
    compared = -1
    for number, peer in context.turns(peers):
        if load.compares_directly and number != compared:
            compared = number
            with context.sampling():
                _sample(measure, DIRECT, load, origin, None)
        if peer.name in broken:
            continue
        try:
            with context.sampling():
                _sample(measure, peer.name, load, peer.origin, peer)
        except BenchError as error:
            broken.add(peer.name)
            context.failed(f"{peer.name}: {measure.title}", error)


def _sample(measure: Measure, name: str, load: Load | TlsLoad, origin: Origin, peer: Peer | None) -> None:
    before = processes.cpu_seconds(peer.pids()) if peer else 0.0
    said = run_load(load, origin, peer.address if peer else None)
    used = processes.cpu_seconds(peer.pids()) - before if peer else 0.0
    bulk = measure.unit == RATE
    value = said["bytes_per_second"] / 1e6 if bulk else said["per_second"]
    # The generator counts after its warm-up, the clock of the proxy from the start.
    seconds = said["seconds"] + load.warmup
    amount = value * seconds
    more = {"cpu_us": used * 1e6 / amount} if peer and amount else {}
    if not bulk:
        more |= {"p50_us": said["p50_us"], "p99_us": said["p99_us"]}
    measure.of(name).add(value, errors=said["errors"], first_error=said["first_error"], **more)
