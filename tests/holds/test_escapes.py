"""The table of escapes, tried inside each hold, as root and as an ordinary user (HLD-11, HLD-13).

How a row is added: src/tidegate/doctor/escapes/__init__.py.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.holds import held
from tidegate.doctor.escapes import rows
from tidegate.doctor.escapes.table import TABLE

COLUMNS = ("netns", "captured", "offline", "open")
THEMES = rows.__all__
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
    wishes = {"capture": "on", "gate": "real", "table": hold} if hold == "captured" else {}
    return held.hold("netns" if hold == "captured" else hold, [held.PYTHON, "-I", held.TABLE], user=user, **wishes)


@pytest.mark.xdist_group("escapes")
@pytest.mark.parametrize(("user", "hold", "name"), CASES)
def test_each_row_ends_as_it_must(user: str, hold: str, name: str) -> None:
    """An escape fails with its errno, a neighbour passes (HLD-13, HLD-14, B71, B77, B79, B80, B83, B85, B86)."""
    answer = answers(user, hold)
    assert "error" not in answer, answer["error"]
    assert answer.get("status") == 0, answer
    row = TABLE[name]
    found = json.loads(answer["out"])[name]
    assert found in row.expected[hold], f"{row.proves} ended with {found}"


@pytest.mark.xdist_group("escapes")
@pytest.mark.parametrize("user", held.USERS)
@pytest.mark.parametrize("hold", COLUMNS)
def test_nobody_outside_heard_anything(user: str, hold: str) -> None:
    """While the whole table was tried, not one listener of the machine was reached (HLD-1, HLD-14, B83, B85)."""
    assert answers(user, hold)["heard"] == []


def test_every_theme_is_in_the_table() -> None:
    """No file of rows is left out: each theme has rows, and the names of rows are one each."""
    assert {row.theme for row in TABLE.values()} == set(THEMES)
