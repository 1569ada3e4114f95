"""Times and amounts on a command line."""

from __future__ import annotations

import datetime as dt

import pytest

from tidegate.cli.terms import amount, left, until, wait
from tidegate.model.errors import UsageError

ZONE = dt.timezone(dt.timedelta(hours=2))
NOW = dt.datetime(2030, 1, 31, 18, 0, 0, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", "2030-01-31T18:01:30+02:00"),
        ("30m", "2030-01-31T18:30:00+02:00"),
        ("+2h", "2030-01-31T20:00:00+02:00"),
        ("3d", "2030-02-03T18:00:00+02:00"),
        ("18:01", "2030-01-31T18:01:00+02:00"),
        ("18:00", "2030-02-01T18:00:00+02:00"),
        ("9:05", "2030-02-01T09:05:00+02:00"),
        ("2030-01-31T18:00:01", "2030-01-31T18:00:01+02:00"),
        ("2030-01-31T18:00:00+00:00", "2030-01-31T20:00:00+02:00"),
        ("2030-02-01", "2030-02-01T00:00:00+02:00"),
    ],
)
def test_times_to_come(text: str, at: str) -> None:
    """ASK-7: spans, times of the day to come, and dates, in the time zone of the person."""
    assert until(text, NOW) == dt.datetime.fromisoformat(at).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0s",
        "2030-01-31T18:00:00",
        "2029-12-31",
        "24:00",
        "18:60",
        "1w",
        "2 h",
        "\u0663h",
        "1e9h",
        "999999999d",
        "-1h",
    ],
)
def test_what_is_no_time_to_come(text: str) -> None:
    """ASK-7: what is over, or no time, is refused with what to write."""
    with pytest.raises(UsageError) as caught:
        until(text, NOW)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("5000", 5000), ("200k", 204800), ("10M", 10 << 20), ("2GiB", 2 << 30), ("1T", 1 << 40)],
)
def test_amounts(text: str, size: int) -> None:
    """ASK-7: plain numbers, and powers of 1024."""
    assert amount(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "10 M", "M", "1X", "9007199254740992", "9999999T", "\u0663"])
def test_what_is_no_amount(text: str) -> None:
    """ASK-7: zero, fractions and what is too large are refused with what to write."""
    with pytest.raises(UsageError) as caught:
        amount(text)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0:00"), (0.9, "0:00"), (42, "0:42"), (899, "14:59"), (3599, "59:59"), (28740, "7:59:00")],
)
def test_time_that_is_left(seconds: float, shown: str) -> None:
    """ASK-1: as people read a clock."""
    assert left(seconds) == shown


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("1m", 60), ("90s", 90), ("15m", 900), ("8h", 28800)])
def test_a_wait_is_a_span(text: str, seconds: int) -> None:
    """ASK-2: from 1 minute to 8 hours."""
    assert wait(text) == seconds


@pytest.mark.parametrize("text", ["59s", "28801s", "9h", "1d", "0m", "", "15", "m", "-5m", "1.5h", "18:30", "٣m"])
def test_what_is_no_wait_is_refused(text: str) -> None:
    """ASK-2: it cannot be turned off, and its text is one span."""
    with pytest.raises(UsageError, match="cannot wait"):
        wait(text)
