"""Times and amounts as people write them on a command line: `--until 18:30`, `--until 2h`, `--bytes 10M`."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from tidegate.model.errors import UsageError
from tidegate.state.settings import LONGEST_WAIT, SHORTEST_WAIT

_SPAN = re.compile(r"\+?(\d{1,9})(s|m|h|d)\Z", re.ASCII)
_SPANS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\Z", re.ASCII)
_AMOUNT = re.compile(r"(\d{1,15})(?:([kKMGT])i?)?B?\Z", re.ASCII)
_AMOUNTS: Final = {None: 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def until(text: str, now: dt.datetime) -> float:
    """Return the Unix time that `text` names, seen from `now` (which has a time zone).

    A span (`90s`, `30m`, `2h`, `3d`), a time of the day to come (`18:30`), or a date and time of ISO 8601.

    Raises:
        UsageError: when it is none of them, or is in the past.
    """
    span = _SPAN.match(text)
    clock = _CLOCK.match(text)
    try:
        if span:
            at = now + dt.timedelta(seconds=int(span[1]) * _SPANS[span[2]])
        elif clock:
            at = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            at += dt.timedelta(days=1) if at <= now else dt.timedelta()
        else:
            at = dt.datetime.fromisoformat(text)
            at = at if at.tzinfo else at.replace(tzinfo=now.tzinfo)
        unix = at.timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a time", fix="write 30m, 2h, 18:30 or 2030-01-31T18:30") from None
    if at <= now:
        raise UsageError(f"{text!r} is in the past", fix="give a later time")
    return unix


def wait(text: str) -> int:
    """Return the seconds for which a question of a task may wait, such as `30m` (ASK-2).

    Raises:
        UsageError: when it is no time, or not from 1 minute to 8 hours.
    """
    span = _SPAN.match(text)
    seconds = int(span[1]) * _SPANS[span[2]] if span else 0
    if not SHORTEST_WAIT <= seconds <= LONGEST_WAIT:
        raise UsageError(f"a question cannot wait for {text!r}", fix="write 1m to 8h, such as 90s, 15m or 2h")
    return seconds


def amount(text: str) -> int:
    """Return the bytes that `text` names: a number, with k, M, G or T for powers of 1024.

    Raises:
        UsageError: when it is none, or is zero.
    """
    found = _AMOUNT.match(text)
    size = int(found[1]) * _AMOUNTS[found[2]] if found else 0
    if not 1 <= size < 1 << 53:
        raise UsageError(f"{text!r} is not a number of bytes", fix="write 5000, 200k, 10M or 2G")
    return size


def left(seconds: float) -> str:
    """Return how long that is, for people: `0:42`, `14:05`, `7:59:00`."""
    whole = max(0, int(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
