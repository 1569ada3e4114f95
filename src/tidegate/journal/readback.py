"""Reading a task's log again: for `tidegate events`, and for the `net:` lines of a task whose gate was killed.

A line that is no JSON object (torn by a crash, or not ours) is counted and passed over, never fatal.
Not imported by `run` unless the gate was lost: it needs `json`.
"""

from __future__ import annotations

import json

from tidegate.journal.summary import FIELDS, KINDS, Row

_KIND = FIELDS.index("count")  # what comes before tells kinds apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


def lines_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield each line as a dictionary, None for one that is not a JSON object."""
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            yield None
            continue
        yield value if isinstance(value, dict) else None


def rows_of(path: str) -> tuple[list[Row], int]:
    """Return the rows of a log file and how many connections did not fit the bound of kinds.

    Raises:
        OSError: when the file cannot be read.
    """
    counts: dict[tuple[Any, ...], list[int]] = {}
    more = 0
    with open(path, "rb") as file:
        for line in lines_of(file):
            if line is None or line.get("type") != "net.connection":
                continue
            kind = tuple(line.get(field, "") for field in FIELDS[:_KIND])
            bucket = counts.get(kind)
            if bucket is None:
                if len(counts) >= KINDS:
                    more += int(line.get("count", 1))
                    continue
                counts[kind] = bucket = [0, 0, 0]
            bucket[0] += int(line.get("count", 1))
            bucket[1] += int(line.get("bytes_up", 0))
            bucket[2] += int(line.get("bytes_down", 0))
    rows: list[Any] = [(*kind, *bucket) for kind, bucket in counts.items()]
    return rows, more
