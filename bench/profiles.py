"""Where time goes: the gate's under one load (cProfile, and system calls per operation by strace), and the start's.

cProfile makes Python code about twice as slow and leaves system calls alone, so its table exaggerates the share of
small functions; strace makes system calls slow and shows how many there are. Read both, believe neither alone.
"""

from __future__ import annotations

import io
import os
import pstats
import re
import signal
import subprocess
import sys
import time

from bench import processes
from bench.build import ROOT, find
from bench.inspectors import InspectingTidegate
from bench.loads import Load, TlsLoad, run_load
from bench.peers import Tidegate

LOADS: dict[str, Load | TlsLoad] = {
    "tunnels": Load("tunnels", clients=32),
    "names": Load("tunnels", clients=32, by_name=True, hello=True),
    "refuse": Load("refuse", clients=32),
    "get": Load("get", port="http", clients=32),
    "up": Load("up", port="sink"),
    "down": Load("down", port="source"),
    "inspect": TlsLoad("requests", clients=32),
    "inspect_h2": TlsLoad("requests", clients=4, streams=8, protocol="h2"),
    "inspect_new": TlsLoad("connections", clients=16),
    "inspect_down": TlsLoad("down", path="/big"),
    "inspect_up": TlsLoad("up", path="/up"),
}
STARTUP = "startup"
_LINES = 25


class _Profiled(Tidegate):
    name = "profiled"

    def command(self) -> list[str]:
        return [*super().command(), "--profile", self.path("profile")]


class _ProfiledInside(_Profiled, InspectingTidegate):
    name = "profiled-inside"


def profile(name: str, folder: str) -> str:
    """Return the profile of the gate under the load `name`, or of the start of `run true`, as text.

    Raises:
        BenchError: when the gate does not start.
    """
    if name == STARTUP:
        return _of_start(folder)
    return _by_function(LOADS[name], folder) + "\n" + _by_system_call(LOADS[name], folder)


def _by_function(load: Load | TlsLoad, folder: str) -> str:
    peer = _ProfiledInside(folder) if isinstance(load, TlsLoad) else _Profiled(folder)
    try:
        peer.start()
        said = run_load(load, peer.origin, peer.address)
        if peer.process:
            os.kill(peer.process.pid, signal.SIGTERM)
            peer.process.wait(60)
    finally:
        peer.stop()
    table = io.StringIO()
    stats = pstats.Stats(peer.path("profile"), stream=table)
    stats.strip_dirs().sort_stats("tottime").print_stats(_LINES)
    rows = [line for line in table.getvalue().splitlines() if re.match(r"\s+[\d/]+\s+\d", line) or "ncalls" in line]
    done = max(1, said["operations"])
    rate = f"{done:,} operations in {said['seconds']:.1f} s"
    return "\n".join([f"cProfile, {load.clients} clients: {rate} (the profiler costs about half)", *rows])


def _by_system_call(load: Load | TlsLoad, folder: str) -> str:
    strace = find("strace")
    if strace is None:
        return "strace is not installed: no table of system calls"
    peer = InspectingTidegate(folder) if isinstance(load, TlsLoad) else Tidegate(folder)
    try:
        peer.start()
        gate = peer.pids()[-1]
        report = peer.path("strace")
        tracer = subprocess.Popen([strace, "-c", "-f", "-o", report, "-p", str(gate)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        before = processes.cpu_seconds([gate])
        said = run_load(load, peer.origin, peer.address)
        used = processes.cpu_seconds([gate]) - before
        tracer.send_signal(signal.SIGINT)
        tracer.wait(60)
    finally:
        peer.stop()
    whole = said["seconds"] + load.warmup
    done = said["operations"] * whole / said["seconds"]
    lines = [f"strace -c: {done:,.0f} operations while traced, {used:.1f} s of processor time; calls per operation:"]
    with open(report, encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if len(fields) >= 5 and fields[0][0].isdigit() and fields[-1] != "total" and done:
                calls = int(fields[3])
                if calls / done >= 0.01 or not said["operations"]:
                    lines.append(f"  {fields[-1]:<16} {calls / done:8.2f}")
    return "\n".join(lines)


def _of_start(folder: str) -> str:
    """What `run true` imports in its front, by own time, and the system calls of all its processes."""
    os.makedirs(folder, exist_ok=True)
    env = os.environ | {"XDG_STATE_HOME": os.path.join(folder, "state")}
    environment = os.path.dirname(os.path.dirname(sys.executable))
    boot = os.path.join(ROOT, "scripts", "launcher", "boot.py")
    start = [sys.executable, "-I", "-S", "-X", "importtime", boot, ROOT, environment, "run", "--", "true"]
    done = subprocess.run(start, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    lines = [line.split("|") for line in done.stderr.decode(errors="replace").splitlines() if line.count("|") == 2]
    rows = [(int(own.split(":")[1]), int(whole), name.strip()) for own, whole, name in lines if own[-2:-1].isdigit()]
    rows.sort(reverse=True)
    head = f"importtime: {len(rows)} modules, {sum(own for own, _, _ in rows) / 1000:.1f} ms in all processes; own µs:"
    found = [head, *(f"  {own:>7} {name}" for own, _, name in rows[:_LINES])]
    strace = find("strace")
    if strace is None:
        return "\n".join([*found, "strace is not installed: no table of system calls"])
    report = os.path.join(folder, "strace-start")
    command = [strace, "-c", "-f", "-o", report, os.path.join(ROOT, "tidegate"), "run", "--", "true"]
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    with open(report, encoding="utf-8") as file:
        table = [line.rstrip() for line in file]
    return "\n".join([*found, "strace -c, all processes of `run true`:", *table[: _LINES + 2], *table[-1:]])
