"""The holds of containers: a row for each engine that is installed, with its transport (HLD-4, SRV-5).

A real holder is made, entered and ended, as a start would. An engine that does not answer is a warning: the other holds
do without; and one whose containers nobody can watch is one.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tidegate.doctor.check import OK, WARN, Check
from tidegate.holds.container.choice import choose
from tidegate.holds.container.engine import ENGINES, Engine
from tidegate.holds.container.watching import UNWATCHED, why_not
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_engines(environ: Mapping[str, str]) -> list[Check]:
    """Return those rows."""
    return [_row(Engine(name, environ)) for name in ENGINES if shutil.which(name, path=environ.get("PATH"))]


def _row(engine: Engine) -> Check:
    name = f"hold {engine.name}"
    try:
        facts = engine.facts()
        transport = choose(engine)
        error = transport.probe(engine)
        unwatched = why_not(engine)
    except StartError as found:
        error = found
    if error is not None:
        return Check(name, WARN, error.what, error.fix)
    kind = "rootless" if facts.rootless else "in a virtual machine" if facts.in_vm else "root's"
    what = f"transport {transport.name}, {kind}, version {facts.version}"
    if unwatched:
        return Check(
            name, WARN, f"{what}; {UNWATCHED} ({unwatched})", "tidegate as root, or a rootless engine of your own"
        )
    return Check(name, OK, what)
