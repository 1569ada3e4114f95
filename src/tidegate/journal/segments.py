"""The files of an action log, and its lines read forwards and backwards.

    actions.0000000001.jsonl, actions.0000210344.jsonl, ..., actions.jsonl

An older file is named by the number of its first line, so the order of names is the order of lines. Reading takes no
lock: a writer only ever adds whole lines, and the reader leaves what is not whole.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

from tidegate.journal.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from io import BufferedReader
    from typing import Any

LIVE_NAME = "actions.jsonl"
TORN_NAME = "actions.torn"
LOCK_NAME = "actions.lock"
_DIGITS = 10
_BLOCK = 65536  # read at once from the end


def segment_name(first: int) -> str:
    """Return the name of an older file whose first line has this number."""
    return f"actions.{first:0{_DIGITS}d}.jsonl"


def first_of(name: str) -> int:
    """Return the number in the name of an older file, 0 where it is no such name."""
    digits = name.removeprefix("actions.").removesuffix(".jsonl")
    first = int(digits) if len(digits) >= _DIGITS and digits.isascii() and digits.isdigit() else 0
    return first if name == segment_name(first) else 0


def older_segments(folder: str) -> list[str]:
    """Return the paths of the older files, oldest first; empty where there is no folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [os.path.join(folder, name) for name in sorted(names, key=first_of) if first_of(name)]


def segments(folder: str) -> list[str]:
    """Return the paths of all files, oldest first; the last is the one that is written to."""
    live = os.path.join(folder, LIVE_NAME)
    return older_segments(folder) + ([live] if os.path.lexists(live) else [])


def read(folder: str, *, after: int = 0, kinds: Collection[str] = (), task: str = "") -> Iterator[dict[str, Any]]:
    """Yield the lines with a number above `after`, oldest first; of these kinds and this task where they are named.

    Files that begin or go while this reads change nothing but its ends.

    Raises:
        OSError: when a file cannot be read, or is none.
    """
    with _opened(folder) as (older, live):
        for number, path in enumerate(older, 1):
            following = first_of(os.path.basename(older[number])) if number < len(older) else 0
            if following and following <= after + 1:
                continue  # all of its lines are older
            try:
                file = open_regular(path)
            except FileNotFoundError:
                continue  # the oldest make room
            with file:
                yield from _above(file, after, kinds, task)
        if live is not None:
            yield from _above(live, after, kinds, task)


def newest(folder: str, *, before: int = 0, kinds: Collection[str] = (), task: str = "") -> Iterator[dict[str, Any]]:
    """Yield the lines with a number below `before` (all, where it is 0), newest first. Otherwise as `read`."""
    with _opened(folder) as (older, live):
        if live is not None:
            yield from _below(backwards_in(live), before, kinds, task)
        for path in reversed(older):
            if before and first_of(os.path.basename(path)) >= before:
                continue
            try:
                yield from _below(backwards(path), before, kinds, task)
            except FileNotFoundError:
                continue  # as above


@contextmanager
def _opened(folder: str) -> Iterator[tuple[list[str], BufferedReader | None]]:
    """Yield the paths of the older files, and the one that is written to, open.

    It may be put among the older ones at any moment. So it is opened first: its lines are then in what is open, and
    those that come later in a file that nobody asked for.
    """
    try:
        live = open_regular(os.path.join(folder, LIVE_NAME))
    except FileNotFoundError:
        yield older_segments(folder), None
        return
    with live:
        own = os.fstat(live.fileno())
        yield [path for path in older_segments(folder) if not _is(path, own)], live


def _is(path: str, own: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), own)
    except FileNotFoundError:
        return False


def _above(file: BufferedReader, after: int, kinds: Collection[str], task: str) -> Iterator[dict[str, Any]]:
    for raw in file:
        line = _wanted(raw, kinds, task) if raw.endswith(b"\n") else None
        if line is not None and line["seq"] > after:
            yield line


def _below(raws: Iterator[bytes], before: int, kinds: Collection[str], task: str) -> Iterator[dict[str, Any]]:
    for raw in raws:
        line = _wanted(raw, kinds, task)
        if line is not None and (not before or line["seq"] < before):
            yield line


def _wanted(raw: bytes, kinds: Collection[str], task: str) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(line, dict) or not isinstance(line.get("seq"), int):
        return None
    wanted = (not kinds or line.get("type") in kinds) and (not task or line.get("task") == task)
    return line if wanted else None


def backwards(path: str) -> Iterator[bytes]:
    """Yield the whole lines of a file without their newlines, newest first."""
    with open_regular(path) as file:
        yield from backwards_in(file)


def backwards_in(file: BufferedReader) -> Iterator[bytes]:
    """Yield the whole lines of an open file as `backwards` does."""
    at = file.seek(0, os.SEEK_END)
    held = b""
    whole = False  # what stands behind the last newline is no line yet
    while at > 0:
        size = min(_BLOCK, at)
        at = file.seek(at - size)
        pieces = (file.read(size) + held).split(b"\n")
        held = pieces[0]
        for piece in reversed(pieces[1:]):
            if whole:
                yield piece
            whole = True
    if whole:
        yield held
