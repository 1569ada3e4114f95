"""Reading a task's log again: for `tidegate events`, and for the `net:` lines of a task whose gate was killed.

A line that is no JSON object (torn by a crash, or not ours) is counted and passed over, never fatal.
Not imported by `run` unless the gate was lost: it needs `json`.
"""

from __future__ import annotations

import json

from tidegate.journal.files import NoFileError, open_regular
from tidegate.journal.summary import FIELDS, KINDS, Row

_BLOCK = 65536  # read at once from the end

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
        OSError: when the file cannot be read, or is none: a person may have named a pipe.
    """
    counts: dict[tuple[Any, ...], list[int]] = {}
    more = 0
    with open_regular(path) as file:
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


def newest_lines(path: str, limit: int, before: int | None = None) -> tuple[list[dict[str, Any]], int | None]:
    """Return the last lines of a log, newest first, and where the next page ends; None where there is none.

    `before` is such a place, which is a number of bytes from the start: lines are only ever added, so it stays what it
    is until the log is begun anew. A page that was asked for across that is empty. There may be no file yet, or
    none that can be read again: a person may have named a pipe.

    Raises:
        OSError: when the file cannot be read.
    """
    found: list[dict[str, Any]] = []
    try:
        file = open_regular(path)
    except (FileNotFoundError, NoFileError):
        return [], None
    with file:
        end = file.seek(0, 2)
        at = end if before is None else min(before, end)
        held = b""
        while at > 0 and len(found) < limit:
            size = min(_BLOCK, at)
            start = at - size
            file.seek(start)
            block = file.read(size) + held
            # What stands before the first newline of the block goes on in the one before it.
            first = block.find(b"\n") + 1 if start else 0
            lines = block[first:].splitlines(keepends=True)
            at = start + first
            if not lines and start:
                at, held = start, block
                continue
            held = b""
            position = start + len(block)
            for raw in reversed(lines):
                position -= len(raw)
                line = next(lines_of((raw,))) if raw.endswith(b"\n") else None
                if line is not None:
                    found.append(line)
                    if len(found) == limit:
                        at = position
                        break
        return found, at if at > 0 and found else None
