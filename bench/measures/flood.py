"""What a task waits for a tunnel while another task floods, interleaved with that task idle and that task computing.

Both are real `./tidegate run`s: behind one server (one gate for two tasks), and each with a gate of its own
(`--no-server`). What is compared is a flood with a task that only computes, because on a busy machine any
neighbour costs something; the bound is about the server, where the gate is shared. The programs inside are
inside_flood.py's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from bench import processes
from bench.build import ROOT
from bench.inside_flood import KINDS
from bench.loads import Origin
from bench.processes import BenchError
from bench.sandboxes import TIDEGATE
from bench.server import Server

if TYPE_CHECKING:
    from bench.context import Context

APART = "tidegate, a gate each"
_PYTHON = os.path.realpath(sys.executable)
_TITLES = {
    "off": "idle", "spin": "only computing", "refused": "refused connections", "literal": "captured ones, refused",
    "names": "look-ups of ever new names", "udp": "datagrams",
}  # fmt: skip


def measure_flood(context: Context) -> None:
    """Measure each kind of flood in each round, both ways."""
    origin = Origin()
    served = Server(os.path.join(context.folder, "flood"))
    pairs: dict[str, _Pair] = {}
    try:
        served.start()
        for name, options in ((TIDEGATE, ()), (APART, ("--no-server",))):
            try:
                pairs[name] = _Pair(served, origin, options)
            except BenchError as error:
                context.failed(f"{name}: flood", error)
        for number in range(max(2, context.rounds)):
            context.say(f"beside a task that floods, round {number + 1}")
            kinds = [*KINDS] if number % 2 else [*reversed(KINDS)]
            for kind in kinds:
                for name, pair in pairs.items():
                    with context.sampling():
                        p50, p95, count = pair.sample(kind, context.seconds)
                    measure = context.results.measure(
                        f"flood_{kind}", f"a tunnel, the other task {_TITLES[kind]}", "µs", more_is_better=False
                    )
                    measure.of(name).add(p50, p95=p95, per_second=count / context.seconds)
    finally:
        for pair in pairs.values():
            pair.stop()
        served.stop()
        origin.stop()


class _Pair:
    """A task that measures and one that floods."""

    def __init__(self, served: Server, origin: Origin, options: tuple[str, ...]) -> None:
        program = shutil.copy(os.path.join(ROOT, "bench", "inside_flood.py"), served.folder)
        target = f"{origin.address}:{origin.ports['echo']}"
        command = [os.path.join(ROOT, "tidegate"), "run", "--quiet", *options]

        def start(*words: str) -> subprocess.Popen[bytes]:
            return processes.start(
                [*command, "--allow", target, "--", _PYTHON, "-I", program, *words],
                log=os.path.join(served.folder, f"{words[0]}.output"),
                env=served.environment,
                cwd=served.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )

        self._probe, self._flood = start("probe", target), start("flood")
        for process, first in ((self._probe, "0.1"), (self._flood, "off 0.1")):
            _say(process, first)
            _hear(process)

    def sample(self, kind: str, seconds: float) -> tuple[float, float, int]:
        """Return median and 95th percentile of a tunnel in microseconds, and how often the other did its thing."""
        _say(self._flood, f"{kind} {seconds}")
        _say(self._probe, str(seconds))
        found = json.loads(_hear(self._probe))
        return found["p50"], found["p95"], int(_hear(self._flood))

    def stop(self) -> None:
        """End both."""
        for process in (self._probe, self._flood):
            processes.stop(process)


def _say(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None, "it was started with a pipe"
    process.stdin.write(line.encode("ascii") + b"\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None, "it was started with a pipe"
    line = process.stdout.readline()
    if not line:
        raise BenchError(f"a task of the flood ended early ({process.args})")
    return line
