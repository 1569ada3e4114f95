"""The table people read, in Markdown: the machine, the bounds, every figure, and the profile of what was missed."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

from bench.bounds import ORDER

if TYPE_CHECKING:
    from bench.results import Measure, Results

_TARGET_RATIO = ("squid", "tinyproxy", "sandbox-runtime")


def machine() -> dict[str, Any]:
    """Return what class of machine this is, in words that name no machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    release = ".".join(platform.release().split("-")[0].split(".")[:2])
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory),
        "kernel": release,
        "python": platform.python_version(),
        "architecture": platform.machine(),
    }


def number(value: float | None) -> str:
    """Return a figure with three digits that count."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _rows(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join(" --- " if i == 0 else " ---: " for i in range(len(header))) + "|",
    ]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _columns(results: Results, measures: list[Measure]) -> list[str]:
    here = {peer for measure in measures for peer in measure.series}
    known = [peer for peer in ORDER if peer in here]
    return known + [peer for peer in results.peers() if peer in here and peer not in known]


def _cell(measure: Measure, peer: str) -> str:
    series = measure.series.get(peer)
    if series is None or series.median is None:
        return "–"
    flaw = f" ({series.errors} errors)" if series.errors else ""
    return number(series.median) + flaw


def _table(results: Results, measures: list[Measure]) -> list[str]:
    columns = _columns(results, measures)
    rows = [
        [f"{measure.title} ({measure.unit})" if measure.unit else measure.title]
        + [_cell(measure, peer) for peer in columns]
        for measure in measures
    ]
    return _rows(["", *columns], rows)


def _cpu_table(results: Results, measures: list[Measure]) -> list[str]:
    rows = []
    columns = [peer for peer in _columns(results, measures) if peer != ORDER[1]]
    for measure in measures:
        figures = {}
        for peer in columns:
            series = measure.series.get(peer)
            more = series.plain().get("more", {}) if series else {}
            if "cpu_us" in more:
                figures[peer] = more["cpu_us"]
        if figures:
            per = "MB" if measure.unit == "MB/s" else "operation"
            rows.append([f"{measure.title} (µs per {per})"] + [number(figures.get(peer)) for peer in columns])
    return _rows(["", *columns], rows) if rows else []


def bounds_table(bounds: list[dict[str, Any]]) -> list[str]:
    """Return the bounds as a table: what was asked, what was measured, met or missed."""
    rows = []
    for bound in bounds:
        word = {True: "met", False: "**missed**", None: "not measured"}[bound["met"]]
        ratio = f"{number(bound['ratio'])} x" if bound["other"] and bound["ratio"] is not None else ""
        sign = "≤" if bound["at_most"] else "≥"
        limit = f"{sign} {number(bound['limit'])}" if bound["limit"] is not None else "–"
        rows.append([bound["text"], number(bound["value"]), limit, ratio, word])
    return _rows(["bound", "measured", "needed", "ratio", ""], rows)


def _group(results: Results, *starts: str) -> list[Measure]:
    return [measure for key, measure in results.measures.items() if key.startswith(starts)]


def _machine_line(about: dict[str, Any]) -> str:
    return (
        f"Machine: {about.get('cores')} shared cores ({about.get('architecture')}), {about.get('memory_gb')} GB of"
        f" memory, kernel {about.get('kernel')}, Python {about.get('python')}. {about.get('rounds')} rounds of"
        f" {about.get('seconds')} s each, interleaved. During the samples other work used"
        f" {100 * about.get('others', 0):.0f} % of the processors (median)."
    )


def markdown(results: Results, bounds: list[dict[str, Any]], profiles: dict[str, str]) -> str:
    """Return the whole report."""
    about = results.about
    lines = [
        "# Figures of the bench",
        "",
        "Written by `scripts/bench`; `bench/README.md` says what is measured and how. Medians of one run; higher is",
        "better but for memory, descriptors and start-up. Another machine gives other figures: the ratios are what",
        "to look at.",
        "",
        _machine_line(about),
        "",
    ]
    if about.get("namespaces") is False:
        lines += ["Measured on the machine's own loopback: namespaces were not to be had.", ""]
    met = sum(bound["met"] is True for bound in bounds)
    missed = sum(bound["met"] is False for bound in bounds)
    lines += [f"## Bounds: {met} met, {missed} missed, {len(bounds) - met - missed} not measured", ""]
    lines += [*bounds_table(bounds), ""]
    groups = (
        ("Tunnels, requests and refusals per second", _group(results, "tunnels", "get", "refuse")),
        ("Throughput", _group(results, "up_", "down_")),
        ("Read inside TLS", _group(results, "inspect_")),
        ("From inside the hold", _group(results, "inside_")),
        ("In each hold", _group(results, "hold_")),
        ("Memory and descriptors", _group(results, "idle_", "tunnel_")),
        ("Start-up", _group(results, "startup")),
        ("Decisions", _group(results, "decide_", "load_")),
        ("One server, many tasks", _group(results, "server_")),
        ("Beside a task that floods", _group(results, "flood_")),
    )
    for title, measures in groups:
        if measures:
            lines += [f"## {title}", "", *_table(results, measures), ""]
    processor = _cpu_table(results, _group(results, "tunnels", "get", "refuse", "up_", "down_"))
    processor_inside = _cpu_table(results, _group(results, "inspect_"))
    if processor:
        lines += [
            "## Processor time of the proxy",
            "",
            "User and system time of the proxy's processes; it moves less than the rates when the machine is busy.",
            "",
            *processor,
            "",
        ]
    if processor_inside:
        lines += ["Of those that read inside TLS:", "", *processor_inside, ""]
    lines += ["## Versions and settings", ""]
    lines += [f"* {name} {results.versions[name]}: {results.settings.get(name, '')}" for name in results.versions]
    lines += [f"* {name}: not installed: {why}" for name, why in results.missing.items()]
    lines += [f"* {name}: not measured: {why}" for name, why in results.failed.items()]
    lines.append("")
    if profiles:
        lines += ["## Profiles of what was missed", ""]
        for name, text in profiles.items():
            lines += [f"### {name}", "", "```", text.rstrip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"
