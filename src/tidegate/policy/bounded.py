"""What a remembered answer lets through is bounded by the rule that asked (POL-5, ASK-8).

Rules of the file: an answer says that a host may be reached, and nothing of methods, paths or bytes. It names one host
and port, and so it would govern in place of almost every rule; without this it would loosen the narrowest of them.
"""

from __future__ import annotations

from tidegate.model.destination import parse_authority
from tidegate.model.rule import Layer
from tidegate.model.verdict import Phase
from tidegate.policy.decide import decide
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import LAYER, LIMITS, PHASE, limits_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.rule import Rule
    from tidegate.policy.rows import Row

_REMEMBERED = int(Layer.REMEMBERED)


def bounded(rows: list[Row]) -> list[Row]:
    """Return the rows, those of remembered answers with the limits of what would govern without them."""
    answers = [row for row in rows if row[LAYER] == _REMEMBERED]
    others = [row for row in rows if row[LAYER] != _REMEMBERED] if answers else []
    if not any(row[LIMITS] for row in others):
        return rows
    policy = make_policy(others)
    return others + [_bounded(row, decide(policy, parse_authority(row[0]), Phase(row[PHASE])).rule) for row in answers]


def _bounded(row: Row, rule: Rule | None) -> Row:
    return row if rule is None else (*row[:LIMITS], limits_row(rule.limits))
