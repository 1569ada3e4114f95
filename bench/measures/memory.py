"""What an idle proxy holds, and what each idle tunnel adds: memory and descriptors.

RSS and PSS come from smaps_rollup of the proxy's whole tree. The cost of a tunnel is the growth of PSS from none to
`COUNTS[-1]` open tunnels, divided; memory of the kernel's socket buffers is not in it, for nobody.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench import processes
from bench.loads import Idle, Load, TlsLoad
from bench.processes import BenchError

if TYPE_CHECKING:
    from bench.context import Context
    from bench.peers import Peer

COUNTS = (1000, 2000)
SETTLE = 1.0


def measure_memory(context: Context) -> None:
    """Idle size, and size and descriptors per idle tunnel, of each proxy."""
    results = context.results
    idle_rss = results.measure("idle_rss", "memory idle, RSS", "MB", more_is_better=False)
    idle_pss = results.measure("idle_pss", "memory idle, PSS", "MB", more_is_better=False)
    per_tunnel = results.measure(
        "tunnel_bytes", f"memory per idle tunnel, {COUNTS[-1]} open", "B", more_is_better=False
    )
    descriptors = results.measure("tunnel_fds", "descriptors per idle tunnel", "", more_is_better=False)
    context.say("memory idle and per idle tunnel")
    with context.running("idle", context.peers) as peers:
        for peer in peers:
            time.sleep(SETTLE)
            empty = processes.footprint(peer.pids())
            idle_rss.of(peer.name).add(empty.rss / 1e6)
            idle_pss.of(peer.name).add(empty.pss / 1e6)
            for count in COUNTS:
                try:
                    full = hold(peer, Load("idle", clients=count))
                except BenchError as error:
                    context.failed(f"{peer.name}: {count} idle tunnels", error)
                    continue
                if count == COUNTS[-1]:
                    per_tunnel.of(peer.name).add((full.pss - empty.pss) / count)
                    descriptors.of(peer.name).add((full.descriptors - empty.descriptors) / count)


def hold(peer: Peer, load: Load | TlsLoad) -> processes.Footprint:
    """Return what the proxy holds while a load of the mode `idle` has everything open.

    Raises:
        BenchError: when not all of it opens.
    """
    idle = Idle(load, peer.origin, peer.address)
    try:
        if idle.open < load.clients:
            raise BenchError(f"only {idle.open} of {load.clients} opened ({idle.first_error})")
        time.sleep(SETTLE)
        return processes.footprint(peer.pids())
    finally:
        idle.stop()
