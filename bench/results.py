"""What was measured, as plain data: samples per round, their median, and the file that keeps them.

The unit of comparison is the median over rounds; rounds are interleaved, so that a slow second of the machine hits
every peer and not one of them. A sample with errors is kept and its errors are counted: a proxy that fails under a
load must not look fast.
"""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = 1


@dataclass
class Series:
    """The samples of one peer in one measure."""

    samples: list[float] = field(default_factory=list)
    errors: int = 0
    first_error: str = ""
    more: dict[str, list[float]] = field(default_factory=dict)

    def add(self, value: float, *, errors: int = 0, first_error: str = "", **more: float) -> None:
        """Take one sample; `more` holds figures beside it, such as CPU per operation."""
        self.samples.append(value)
        self.errors += errors
        self.first_error = self.first_error or first_error
        for name, figure in more.items():
            self.more.setdefault(name, []).append(figure)

    @property
    def median(self) -> float | None:
        """The median of the samples; None where there is none."""
        return statistics.median(self.samples) if self.samples else None

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data."""
        found: dict[str, Any] = {"median": self.median, "samples": self.samples, "errors": self.errors}
        if self.first_error:
            found["first_error"] = self.first_error
        if self.more:
            found["more"] = {name: statistics.median(figures) for name, figures in self.more.items()}
        return found


@dataclass
class Measure:
    """One line of the table: what, in which unit, and a series for each peer."""

    key: str
    title: str
    unit: str
    more_is_better: bool = True
    series: dict[str, Series] = field(default_factory=dict)

    def of(self, peer: str) -> Series:
        """Return the series of a peer, made when first asked for."""
        return self.series.setdefault(peer, Series())


class Results:
    """All measures of a run, with what must be known to read them."""

    def __init__(self) -> None:
        self.measures: dict[str, Measure] = {}
        self.about: dict[str, Any] = {}
        self.versions: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.failed: dict[str, str] = {}

    def measure(self, key: str, title: str, unit: str, *, more_is_better: bool = True) -> Measure:
        """Return the measure with this key, made when first asked for."""
        if key not in self.measures:
            self.measures[key] = Measure(key, title, unit, more_is_better)
        return self.measures[key]

    def median(self, key: str, peer: str) -> float | None:
        """Return a median, or None where nothing was measured."""
        measure = self.measures.get(key)
        series = measure.series.get(peer) if measure else None
        return series.median if series else None

    def peers(self) -> list[str]:
        """Return the peers that have a figure, in the order in which they first got one."""
        found: dict[str, None] = {}
        for measure in self.measures.values():
            for peer in measure.series:
                found[peer] = None
        return list(found)

    def plain(self, bounds: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Return everything as JSON data; the shape is described in bench/README.md."""
        return {
            "format": FORMAT,
            "about": self.about,
            "versions": self.versions,
            "settings": self.settings,
            "missing": self.missing,
            "failed": self.failed,
            "measures": {
                measure.key: {
                    "title": measure.title,
                    "unit": measure.unit,
                    "more_is_better": measure.more_is_better,
                    "peers": {peer: series.plain() for peer, series in measure.series.items()},
                }
                for measure in self.measures.values()
            },
            "bounds": list(bounds),
        }


def write_json(path: str, data: dict[str, Any]) -> None:
    """Write the file whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)
