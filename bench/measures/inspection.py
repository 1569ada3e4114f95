"""Requests, connections and bytes that are read inside TLS, beside squid's ssl-bump and mitmproxy (INS-3).

The load generator speaks TLS to the proxy inside a CONNECT, in the same way to all of them, and to the origin itself
for `direct`. One connection of a client is one handshake with the proxy and one of the proxy with the origin; nobody
resumes a session with the generator. Latency is that of one request at a time on a kept connection; what a proxy adds
is its median (and its 99th percentile) less that of `direct` in the same round.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from bench import processes
from bench.context import DIRECT
from bench.https_origin import HttpsOrigin
from bench.inspectors import H1, H2
from bench.loads import TlsLoad, run_load
from bench.measures.memory import SETTLE, hold
from bench.measures.traffic import PER_SECOND, RATE, rounds
from bench.processes import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from bench.context import Context
    from bench.inspectors import Inspector
    from bench.results import Measure

CONNECTIONS = 250
_LOADS = (
    ("inspect_requests", "keep-alive requests, HTTP/1.1, 32 connections", TlsLoad("requests", clients=32, warmup=0.6)),
    (
        "inspect_requests_varied",
        "the same, each answer with a head of its own",
        TlsLoad("requests", clients=32, warmup=0.6, path="/varied"),
    ),
    (
        "inspect_requests_h2",
        "keep-alive requests, HTTP/2, 4 connections of 8 streams",
        TlsLoad("requests", clients=4, streams=8, warmup=0.6, protocol=H2),
    ),
    ("inspect_connections", "new connections with one request each, 16 at once", TlsLoad("connections", clients=16)),
    ("inspect_down", "throughput down, one connection", TlsLoad("down", path="/big")),
    ("inspect_up", "throughput up, one connection", TlsLoad("up", path="/up")),
    ("inspect_down_h2", "throughput down, HTTP/2, one stream", TlsLoad("down", path="/big", protocol=H2)),
)
_BOUND = frozenset({"inspect_requests", "inspect_connections"})


def measure_inspection(context: Context) -> None:
    """Compare everything that reads inside TLS here."""
    needed = [name for name in ("nginx", "tlsload") if name in context.missing]
    if needed or not context.by_name:
        why = context.missing[needed[0]] if needed else "it is asked for by name, which takes a hosts file of our own"
        context.failed("inspection", why)
        return
    origin = HttpsOrigin(os.path.join(context.folder, DIRECT))
    try:
        with context.running("inspect", context.inspectors) as inspectors:
            for key, title, load in _LOADS:
                if context.bounds_only and key not in _BOUND:
                    continue
                context.say(f"inspection: {title}, {context.rounds} rounds")
                measure = context.results.measure(key, title, RATE if load.mode in {"up", "down"} else PER_SECOND)
                able = [peer for peer in inspectors if load.protocol in peer.speaks]
                rounds(context, measure, replace(load, seconds=context.seconds), able, origin)
            _latency(context, inspectors, origin)
        with context.running("inspect", context.inspectors) as inspectors:  # afresh: nothing is left to be used again
            _memory(context, inspectors)
        with context.running("inspect", context.inspectors) as inspectors:
            _memory_h2(context, inspectors)
    finally:
        origin.stop()


def _latency(context: Context, inspectors: Sequence[Inspector], origin: HttpsOrigin) -> None:
    """What each adds to a request, against the origin itself in the same round."""
    context.say(f"inspection: latency, {context.rounds} rounds")
    load = TlsLoad("requests", seconds=context.seconds)
    measures = {
        name: context.results.measure(f"inspect_added_{name}", f"latency added, {name}", "µs", more_is_better=False)
        for name in ("p50", "p99")
    }
    broken: set[str] = set()
    base: dict[str, Any] = {}
    compared = -1
    for number, peer in context.turns(inspectors):
        if number != compared:
            compared = number
            with context.sampling():
                base = run_load(load, origin, None)
        if peer.name in broken:
            continue
        try:
            with context.sampling():
                said = run_load(load, peer.origin, peer.address)
        except BenchError as error:
            broken.add(peer.name)
            context.failed(f"{peer.name}: latency", error)
            continue
        for name, measure in measures.items():
            flaw = {"errors": said["errors"], "first_error": said["first_error"]}
            measure.of(peer.name).add(said[f"{name}_us"] - base[f"{name}_us"], direct_us=base[f"{name}_us"], **flaw)


def _memory(context: Context, inspectors: Sequence[Inspector]) -> None:
    """What an open connection of HTTP/1.1 holds in the proxy's processes: answered and kept, and in mid-answer."""
    per_connection = _bytes_per_connection(context, "inspect_bytes", "")
    for peer in inspectors:
        with _noting(context, peer):
            empty = _warm(peer, H1)
            full = hold(peer, TlsLoad("idle", clients=CONNECTIONS))
            busy = hold(peer, TlsLoad("idle", clients=CONNECTIONS, path="/slow", begun=True))
            answering = (busy.pss - empty.pss) / CONNECTIONS
            per_connection.of(peer.name).add((full.pss - empty.pss) / CONNECTIONS, answering=answering)


def _memory_h2(context: Context, inspectors: Sequence[Inspector]) -> None:
    """The same of HTTP/2: one request each, answered; no stream is open any more."""
    per_connection = _bytes_per_connection(context, "inspect_bytes_h2", "HTTP/2, ")
    for peer in inspectors:
        if H2 in peer.speaks:
            with _noting(context, peer):
                empty = _warm(peer, H2)
                full = hold(peer, TlsLoad("idle", clients=CONNECTIONS, protocol=H2))
                per_connection.of(peer.name).add((full.pss - empty.pss) / CONNECTIONS)


def _bytes_per_connection(context: Context, key: str, protocol: str) -> Measure:
    context.say(f"inspection: memory of {CONNECTIONS} open connections, {protocol or 'HTTP/1.1, '}answered")
    title = f"memory per open connection, {protocol}{CONNECTIONS} open"
    return context.results.measure(key, title, "B", more_is_better=False)


@contextmanager
def _noting(context: Context, peer: Inspector) -> Iterator[None]:
    try:
        yield
    except BenchError as error:
        context.failed(f"{peer.name}: {CONNECTIONS} open connections", error)


def _warm(peer: Inspector, protocol: str) -> processes.Footprint:
    """What it holds after the first connection: what is made for that alone is no part of what each of them costs."""
    run_load(TlsLoad("requests", seconds=0.2, warmup=0.0, protocol=protocol), peer.origin, peer.address)
    time.sleep(SETTLE)
    return processes.footprint(peer.pids())
