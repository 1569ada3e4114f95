"""What the answers of a trial mean: for each row held, escaped, or not testable here. Pure.

A row escaped when its answer is not one that it must get, or when a canary heard its name, whatever it answered. A row
whose mechanism this kernel lacks is never counted as held: nobody could have got out that way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes.lab import GOOD, GOOD6
from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.doctor.escapes.table import Row

OK, ESCAPED, UNTESTABLE = "ok", "ESCAPED", "not testable here"
_WORD = re.compile(r"escaped-([a-z0-9_]+)")


class Result(Value):
    """What came of one row."""

    name: str
    theme: str
    proves: str
    state: str
    seen: str


def results(rows: Iterable[Row], hold: str, answer: Mapping[str, Any]) -> list[Result]:
    """The results of these rows, given what the keeper answered."""
    told = _told(answer)
    found = []
    for row in rows:
        seen = answer["answers"].get(row.name, "no answer")
        missing = answer["missing"].get(row.name, "")
        state = OK if seen in row.expected[hold] else ESCAPED
        if row.name in told:
            state, seen = ESCAPED, f"{seen}; heard by {', '.join(sorted(told[row.name]))}"
        if state == OK and missing:
            state, seen = UNTESTABLE, missing
        found.append(Result(row.name, row.theme, row.proves, state, seen))
    return found


def strangers(answer: Mapping[str, Any]) -> list[str]:
    """Which canaries somebody came to without a word. No task comes to any, so this is an escape, whoever it was."""
    allowed = (f" {GOOD} ", f" {GOOD6} ")
    return sorted({where for where, said in answer["heard"] if not said and not any(one in where for one in allowed)})


def _told(answer: Mapping[str, Any]) -> dict[str, set[str]]:
    """Which rows were heard, and where."""
    found: dict[str, set[str]] = {}
    heard = [*answer["heard"], *(("the resolver outside", name) for name in answer["asked"])]
    for where, said in heard:
        for name in _WORD.findall(said):
            found.setdefault(name, set()).add(where)
    return found
