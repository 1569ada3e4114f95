"""Whether the sinks of the action log have come as far as the log, read from what they keep (JRN-6, SRV-5).

Rules of the file: nothing is sent and nothing is made; no row where no sink is set. It works beside a server and
without one. What a server says of a sink that cannot send now is in `tidegate sinks`.
"""

from __future__ import annotations

import os

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.model.errors import StartError
from tidegate.runtime.state import key_folder, sinks_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

BEHIND = 1000  # lines: a server that runs is that far behind only while a receiver takes nothing


def check_sinks(environ: Mapping[str, str]) -> list[Check]:
    """Return a row for each sink."""
    try:
        state = state_folder(environ)
    except StartError:
        return []  # the row of the state folder says it
    folder = sinks_folder(state)
    if not os.path.isdir(folder):
        return []
    from tidegate.server.sinks import read_definitions

    said: list[str] = []
    definitions = read_definitions(folder, said.append)
    head = _head(key_folder(state))
    rows = [_row(folder, one.name, f"{one.kind} at {one.host}", head) for one in definitions]
    return [*rows, *(Check("sinks", FAIL, line, "tidegate sinks set NAME URL sets it anew") for line in said)]


def _row(folder: str, name: str, what: str, head: int) -> Check:
    from tidegate.journal.sinks.keeping import Keeper

    kept, damage = Keeper(folder, name, _write_nothing).load()
    title = f"sink {name}"
    if damage:
        return Check(title, WARN, f"{what}: {damage}", "tidegate sinks shows it once it has sent something")
    if kept.lost:
        gaps = ", ".join(f"{first}-{last}" for first, last in kept.gaps)
        return Check(
            title, WARN, f"{what}: {kept.lost} lines were gone before it had them ({gaps})", "tidegate log verify"
        )
    if kept.aside:
        where = os.path.join(folder, f"{name}.aside")
        return Check(title, WARN, f"{what}: it refused {kept.aside} lines", f"{where} says which and why")
    if kept.error:
        return Check(title, WARN, f"{what}: {kept.error}, when it tried last", "tidegate sinks says since when")
    behind = max(0, head - kept.seq)
    if behind > BEHIND:
        return Check(title, WARN, f"{what}: {behind} lines behind", "tidegate sinks says why")
    return Check(title, OK, what)


def _head(keys: str) -> int:
    from tidegate.journal.heads import newest_head, read_key

    try:
        head = newest_head(keys, read_key(keys))
    except StartError:
        return 0  # the row of the action log says it
    return head.seq if head is not None else 0


def _write_nothing(path: str, _content: bytes) -> None:
    raise AssertionError(path)
