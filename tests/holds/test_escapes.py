"""The table of escapes, tried inside each hold, as root and as an ordinary user (HLD-11, HLD-13).

How a row is added: src/tidegate/doctor/escapes/__init__.py.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import pytest

from tests.holds import held
from tidegate.doctor.escapes import rows
from tidegate.doctor.escapes.attempt import attempt
from tidegate.doctor.escapes.outcome import ESCAPED, results, strangers
from tidegate.doctor.escapes.table import ALL, LANDLOCK, TABLE

COLUMNS = (*ALL, LANDLOCK)
CASES = [
    (user, hold, name)
    for user in held.USERS
    for hold in COLUMNS
    for name, row in TABLE.items()
    if row.is_for(hold, user)
]


@functools.cache
def answers(user: str, hold: str) -> dict[str, Any]:
    """Try the whole table in one task."""
    held.need(hold)
    ordinary = user == "ordinary" and os.geteuid() == 0
    return attempt(hold, prefix=(sys.executable, held.AS_USER, "{base}") if ordinary else ())


@pytest.mark.xdist_group("escapes")
@pytest.mark.parametrize(("user", "hold", "name"), CASES)
def test_each_row_ends_as_it_must(user: str, hold: str, name: str) -> None:
    """An escape fails with its errno and no canary hears of it, a neighbour passes.

    HLD-13, HLD-14, B71, B77, B79, B80, B83, B85, B86.
    """
    answer = answers(user, hold)
    assert answer.get("status") == 0, answer
    (found,) = results([TABLE[name]], hold, answer)
    assert found.state != ESCAPED, f"{found.proves} ended with {found.seen}"


@pytest.mark.xdist_group("escapes")
@pytest.mark.parametrize("user", held.USERS)
@pytest.mark.parametrize("hold", COLUMNS)
def test_nobody_outside_heard_anything(user: str, hold: str) -> None:
    """While the whole table was tried, not one listener was reached by anybody (HLD-1, HLD-14, B83, B85)."""
    assert strangers(answers(user, hold)) == []


def test_every_theme_is_in_the_table() -> None:
    """No file of rows is left out: each theme has rows, and the names of rows are one each."""
    assert {row.theme for row in TABLE.values()} == set(rows.__all__)
