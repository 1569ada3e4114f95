"""What the test runs' reports (JUnit XML) say together; scripts/test asks it twice.

    verdict.py look-again REPORT.xml      prints the tests that get a second look, a line each; status 1: there are none
    verdict.py sum STATUS REPORT.xml …    the last lines of a run; NAME-again.xml is the second look of NAME.xml

Why there is a second look, and which failures never get one, is in docs/decisions/0016.
"""

from __future__ import annotations

import os
import re
import sys
import xml.etree.ElementTree as ET
from typing import NamedTuple

MOST = 5  # failures: more are no accident of timing
FINAL = ("tests/holds/escapes/", "tests/fuzz/")
"""Here an attempt that got through once is a hole, and an input that broke a parser once breaks it."""
AGAIN = "-again.xml"
_GROUP = re.compile(r"(?P<name>[^\[]*\[.*\]|[^\[@]*)@[^\]]+")  # xdist's loadgroup adds its group to the name


class Report(NamedTuple):
    """One run by the names of its tests, as pytest takes them."""

    tests: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]


def read(path: str) -> Report:
    """Return what a report says. A test that failed, and then in its tear-down, counts once.

    Raises:
        OSError, ET.ParseError: for a run that ended before it wrote its report.
    """
    found: dict[str, set[str]] = {"tests": set(), "failed": set(), "skipped": set()}
    for case in ET.parse(path).getroot().iter("testcase"):  # noqa: S314  # our own pytest wrote it
        name = _name(case)
        found["tests"].add(name)
        if case.find("failure") is not None or case.find("error") is not None:
            found["failed"].add(name)
        elif case.find("skipped") is not None:
            found["skipped"].add(name)
    return Report(frozenset(found["tests"]), frozenset(found["failed"]), frozenset(found["skipped"] - found["failed"]))


def _name(case: ET.Element) -> str:
    name, file, group = case.get("name", ""), case.get("file", ""), case.get("classname", "")
    if match := _GROUP.fullmatch(name):
        name = match["name"]
    module = file.removesuffix(".py").replace("/", ".")
    inner = group.removeprefix(module).strip(".").replace(".", "::") if file else group
    return "::".join(part for part in (file, inner, name) if part)


def second_look(report: Report) -> list[str]:
    """Return the failures that may be accidents of timing on a loaded machine; none where they cannot all be."""
    if len(report.failed) > MOST or any(name.startswith(FINAL) or ".py::" not in name for name in report.failed):
        return []
    return sorted(report.failed)


def summary(paths: list[str], status: int) -> list[str]:
    """Return the lines that end a run; a test that passed on its second look alone is named."""
    reports = {path: read(path) for path in paths}
    first = {path: report for path, report in reports.items() if not path.endswith(AGAIN)}
    unsteady: list[str] = []
    bad = 0
    for path, report in first.items():
        again = reports.get(path.removesuffix(".xml") + AGAIN)
        passed = again.tests - again.failed - again.skipped if again else frozenset()
        unsteady += sorted(report.failed & passed)
        bad += len(report.failed - passed)
    lines = [f"scripts/test: failed beside others, passed alone: {name}" for name in unsteady]
    if status and not bad:
        lines.append("scripts/test: no test failed, but the checks or a test run did: see above")
    skipped = sum(len(report.skipped) for report in first.values())
    good = sum(len(report.tests) for report in first.values()) - bad - skipped
    return [*lines, f"{good} passed, {bad} failed, {skipped} skipped"]


def main(arguments: list[str]) -> int:
    """Run one of the two commands."""
    match arguments:
        case ["look-again", path]:
            names = second_look(read(path)) if os.path.exists(path) else []
            sys.stdout.writelines(f"{name}\n" for name in names)
            return 0 if names else 1
        case ["sum", status, *paths]:
            sys.stdout.writelines(f"{line}\n" for line in summary(paths, int(status)))
            return 0
    sys.stderr.write(__doc__ or "")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
