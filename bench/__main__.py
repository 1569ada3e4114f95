"""The command line of the bench: what to measure, in which order, and where the figures go."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import statistics
import sys
from typing import TYPE_CHECKING

from bench import build, network, profiles
from bench.bounds import judge_all
from bench.context import Context
from bench.inspectors import INSPECTORS
from bench.measures import decisions, flood, holds, identity, inside, inspection, memory, server, startup, traffic
from bench.peers import PEERS, QUICK, Tidegate
from bench.processes import BenchError
from bench.report import bounds_table, machine, markdown
from bench.results import Results, write_json
from bench.sandboxes import BUBBLEWRAP, SANDBOX_RUNTIME

if TYPE_CHECKING:
    from bench.inspectors import Inspector

MEASURES = {
    "decisions": decisions.measure_decisions,
    "identity": identity.measure_identity,
    "startup": startup.measure_startup,
    "memory": memory.measure_memory,
    "tunnels": traffic.measure_tunnels,
    "names": traffic.measure_names,
    "refusals": traffic.measure_refusals,
    "requests": traffic.measure_requests,
    "throughput": traffic.measure_throughput,
    "inspection": inspection.measure_inspection,
    "inside": inside.measure_inside,
    "holds": holds.measure_holds,
    "server": server.measure_server,
    "flood": flood.measure_flood,
}
_MISSING = "TIDEGATE_BENCH_MISSING"  # carries what could not be installed into the namespaces
_FULL = (7, 2.0)
_QUICK = (2, 0.4)


def _options() -> argparse.Namespace:
    known = ", ".join(kind.name for kind in PEERS)
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Compare tidegate with other proxies and sandboxes, side by side."
    )
    parser.add_argument("--quick", action="store_true", help="few short rounds: figures to look at, not to quote")
    parser.add_argument("--bounds", action="store_true", help="only the loads and peers that the bounds are about")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--peers", default="", metavar="A,B", help=f"only these, comma-separated, of: {known}")
    parser.add_argument("--rounds", type=int, default=0, help=f"rounds of each load ({_FULL[0]})")
    parser.add_argument("--seconds", type=float, default=0.0, help=f"seconds of each load ({_FULL[1]:g})")
    parser.add_argument(
        "--patience", type=float, default=-1.0, help="seconds a sample waits for a quiet machine (3; 0 with --quick)"
    )
    parser.add_argument("--gate-command", default="", metavar="CMD", help="another driver instead of gate_driver.py")
    parser.add_argument(
        "--profile", default="", choices=["", *profiles.LOADS, profiles.STARTUP], help="profile one load, or the start"
    )
    parser.add_argument("--json", default=os.path.join(build.HERE, "results.json"), metavar="FILE")
    parser.add_argument("--report", default="", metavar="FILE", help="RESULTS.md of a full run, else none")
    parser.add_argument("--build", action="store_true", help="only compile and install")
    options = parser.parse_args()
    if unknown := set(options.only) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))} (there are {', '.join(MEASURES)})")
    if unknown := set(_peers_named(options.peers)) - {kind.name for kind in PEERS}:
        parser.error(f"no such peer: {', '.join(sorted(unknown))} (there are {known})")
    if not 0 <= options.rounds <= 50 or not 0 <= options.seconds <= 30:
        parser.error("at most 50 rounds of 30 seconds")
    return options


def _peers_named(text: str) -> list[str]:
    """Split `a,b`; the comma of a variant such as `squid, no log` has a blank behind it."""
    return [name for name in re.split(r",(?! )", text) if name]


def _inspectors(options: argparse.Namespace) -> tuple[type[Inspector], ...]:
    """Return what reads inside TLS and is compared; with --quick not mitmproxy, which takes long to start."""
    named = _peers_named(options.peers) or (["tidegate", "squid"] if options.quick else [])
    return tuple(kind for kind in INSPECTORS if not named or kind.name in named)


def _prepare(wanted: set[str], options: argparse.Namespace) -> None:
    """Compile and install, then go on inside the namespaces where there are some."""
    build.compile_native()
    sandboxed = not options.only or {"startup", "inside"} & set(options.only)
    packages = {kind.package for kind in PEERS if kind.name in wanted and kind.package}
    if sandboxed and not options.profile:
        packages |= {SANDBOX_RUNTIME, BUBBLEWRAP}
    if not options.only or "inspection" in options.only or options.profile.startswith("inspect"):
        packages |= {"nginx", *(kind.package for kind in _inspectors(options) if kind.package)}
    os.environ[_MISSING] = json.dumps(build.install_peers(packages))
    if not options.build:
        network.enter(sys.argv[1:])


def _measure(context: Context, names: list[str]) -> None:
    for name in names:
        try:
            MEASURES[name](context)
        except BenchError as error:
            context.failed(name, error)


def _print(results: Results, bounds: list[dict[str, object]]) -> None:
    for measure in results.measures.values():
        print(f"{measure.title} [{measure.unit}]")
        for peer, series in measure.series.items():
            plain = series.plain()
            more = "  ".join(f"{name} {figure:,.1f}" for name, figure in plain.get("more", {}).items())
            flaw = f"  {series.errors} errors: {series.first_error}" if series.errors else ""
            print(f"    {peer:<24} {plain['median']:>14,.2f}  {more}{flaw}")
    for name, why in results.missing.items():
        print(f"{name}: not installed: {why}")
    print("\n".join(bounds_table([bound for bound in bounds if bound["met"] is not None])))


def _run(options: argparse.Namespace, wanted: set[str]) -> None:
    rounds, seconds = _QUICK if options.quick else _FULL
    results = Results()
    results.missing |= json.loads(os.environ.get(_MISSING, "{}"))
    context = Context(
        peers=tuple(kind for kind in PEERS if kind.name in wanted),
        rounds=options.rounds or rounds,
        seconds=options.seconds or seconds,
        folder=os.path.join(build.RUN, str(os.getpid())),
        results=results,
        inspectors=_inspectors(options),
        by_name=network.inside(),
        quick=options.quick,
        bounds_only=options.bounds or (options.quick and not options.only),
        patience=options.patience if options.patience >= 0 else 0.0 if options.quick else 3.0,
    )
    results.about |= machine() | {"rounds": context.rounds, "seconds": context.seconds}
    results.about["namespaces"] = network.inside()
    results.about["load_before"] = round(os.getloadavg()[0], 1)
    _measure(context, options.only or list(MEASURES))
    results.about["load_after"] = round(os.getloadavg()[0], 1)
    results.about["others"] = round(statistics.median(context.others), 2) if context.others else 0.0
    bounds = judge_all(results)
    profiled: dict[str, str] = {}
    full = not (options.quick or options.bounds or options.only or options.peers)
    report = options.report or (os.path.join(build.HERE, "RESULTS.md") if full else "")
    if report:
        for name in dict.fromkeys(b["profile"] for b in bounds if b["met"] is False and b["profile"]):
            context.say(f"profile of {name}")
            try:
                profiled[name] = profiles.profile(name, build.RUN)
            except BenchError as error:
                context.failed(f"profile of {name}", error)
        with open(report, "w", encoding="utf-8") as file:
            file.write(markdown(results, bounds, profiled))
    write_json(options.json, results.plain(bounds))
    _print(results, bounds)


def main() -> int:
    """Build, enter the namespaces, measure, report."""
    options = _options()
    wanted = set(_peers_named(options.peers)) or {
        kind.name for kind in (QUICK if options.quick or options.bounds else PEERS)
    }
    try:
        if network.inside():
            network.set_up()
        else:
            _prepare(wanted, options)
        if options.gate_command:
            Tidegate.override = shlex.split(options.gate_command)
        if options.profile:
            print(profiles.profile(options.profile, build.RUN))
        elif not options.build:
            _run(options, wanted)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
