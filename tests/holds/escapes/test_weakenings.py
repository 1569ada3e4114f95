"""The table can see: for every row there is a hold, made worse on purpose, in which that row is reported as escaped."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import pytest

from tests.holds import held
from tests.holds.escapes.weakenings import IMPOSSIBLE, WEAKENINGS
from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.attempt import attempt
from tidegate.doctor.escapes.outcome import ESCAPED, results
from tidegate.doctor.escapes.table import TABLE

WEAKEN = os.path.join(held.HERE, "escapes", "weaken.py")
CASES = [
    pytest.param(number, name, marks=pytest.mark.xdist_group(f"weakening-{number}"))
    for number, weakening in enumerate(WEAKENINGS)
    for name in weakening.rows
]


@functools.cache
def answers(number: int) -> dict[str, Any]:
    """Try the rows of one weakening in it."""
    weakening = WEAKENINGS[number]
    ordinary = weakening.user == "ordinary" and os.geteuid() == 0
    return attempt(
        weakening.hold,
        rows=weakening.rows,
        prefix=(sys.executable, held.AS_USER, "{base}") if ordinary else (),
        front=(sys.executable, "-I", WEAKEN, ",".join(weakening.switches)),
    )


@pytest.mark.parametrize(("number", "name"), CASES)
def test_a_weakened_hold_fails_the_row(number: int, name: str) -> None:
    """Without what holds it, the row is reported as escaped; where the kernel lacks the way, that is said (HLD-11)."""
    weakening = WEAKENINGS[number]
    if weakening.user not in held.USERS:
        pytest.skip("this weakening needs root")
    held.need(weakening.hold)
    answer = answers(number)
    assert "error" not in answer, answer["error"]
    if name in answer["missing"]:
        pytest.skip(f"not testable here: {answer['missing'][name]}")
    (found,) = results([TABLE[name]], weakening.hold, answer)
    assert found.state == ESCAPED, f"{name} ended with {found.seen} without {weakening.switches}"


def test_every_row_has_its_weakening() -> None:
    """Each row is in one weakening, or it is said why none can exist; a new row is not forgotten."""
    named = [name for weakening in WEAKENINGS for name in weakening.rows]
    assert len(named) == len(set(named))
    assert set(named) | set(IMPOSSIBLE) == set(TABLE)
    assert not set(named) & set(IMPOSSIBLE)
    for name, reason in IMPOSSIBLE.items():
        print(f"not testable here: {name}: {reason}")


@pytest.mark.parametrize("weakening", WEAKENINGS)
def test_rows_are_tried_where_they_are_made_for(weakening: Any) -> None:
    """A weakening names rows of its column."""
    assert all(weakening.hold in TABLE[name].holds for name in weakening.rows)
