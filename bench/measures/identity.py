"""What it costs to find out whose a connection is, with ten, a thousand and ten thousand sockets open (GAT-2).

The gate's own question (gate/identity.py) about connections of this process, both ends of which count as sockets: as
they are, and redirected by a rule of nftables, where connection tracking has an entry for each. One of them after the
other is asked about, so that no answer is lying ready. Sizes are interleaved: each round opens more and more.
"""

from __future__ import annotations

import resource
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

from bench import network
from bench.processes import BenchError
from bench.sandboxes import TIDEGATE

if TYPE_CHECKING:
    from bench.context import Context
    from tidegate.gate.identity import Peers

SIZES = (10, 1_000, 10_000)
REDIRECTED = f"{TIDEGATE}, redirected"
_ASKED = 500
_SPARE = 200  # descriptors of everything else
_TABLE = "tidegate-bench"
_FROM = 3128
_RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # struct linger {1, 0}: nothing of it waits for stray packets


def measure_identity(context: Context) -> None:
    """Time the question at each size, in each way that there is here."""
    try:
        from tidegate.gate.identity import Peers
    except ImportError as error:
        raise BenchError(f"the gate cannot be imported: {error}") from None
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < SIZES[-1] + _SPARE:
        raise BenchError(f"{SIZES[-1]:,} sockets need as many descriptors, and this user has {most:,}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    context.say("identity")
    try:
        peers = Peers()
    except OSError as error:
        raise BenchError(f"the kernel cannot be asked: {error}") from None
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        for way, where in ((TIDEGATE, port), (REDIRECTED, _FROM)):
            if way == REDIRECTED and not _redirect(context, port):
                break
            for _ in range(context.rounds):
                with context.sampling():
                    _round(context, peers, listener, way, where)
    peers.close()
    if network.inside():
        subprocess.run(["nft", "delete", "table", "ip", _TABLE], check=False, stderr=subprocess.DEVNULL)


def _redirect(context: Context, port: int) -> bool:
    # Only where the network is the bench's own.
    chain = f"type nat hook output priority -100; tcp dport {_FROM} redirect to :{port}"
    rule = f"table ip {_TABLE} {{\n chain c {{\n  {chain}\n }}\n}}\n"
    if not network.inside() or shutil.which("nft") is None:
        context.failed(REDIRECTED, "there is no nft here, or no network of the bench's own")
        return False
    done = subprocess.run(["nft", "-f", "-"], input=rule, text=True, capture_output=True, check=False)
    if done.returncode:
        context.failed(REDIRECTED, f"nft: {done.stderr.strip()[:200]}")
    return not done.returncode


def _round(context: Context, peers: Peers, listener: socket.socket, way: str, where: int) -> None:
    accepted: list[tuple[socket.socket, Any]] = []
    clients: list[socket.socket] = []
    try:
        for size in SIZES:
            while 2 * len(clients) < size:
                clients.append(socket.create_connection(("127.0.0.1", where), 10))
                accepted.append(listener.accept())
            key = f"identity_{size}"
            measure = context.results.measure(
                key, f"whose a connection is, {size:,} sockets", "us", more_is_better=False
            )
            measure.of(way).add(_seconds(peers, accepted) * 1e6)
    finally:
        for sock in (*clients, *(one for one, _ in accepted)):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.close()


def _seconds(peers: Peers, accepted: list[tuple[socket.socket, Any]]) -> float:
    """Return the best of five passes: what is measured is the question, not who else wanted the processor."""
    step = max(1, len(accepted) // _ASKED)
    passes = []
    for number in range(5):
        asked = [accepted[(number + at * step) % len(accepted)] for at in range(_ASKED)]
        began = time.perf_counter()
        for sock, peer in asked:
            peers.owner(sock, peer)
        passes.append((time.perf_counter() - began) / _ASKED)
    return min(passes)
