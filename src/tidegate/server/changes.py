"""What the operator and remembered answers add to the policy of a living task (POL-8, ASK-2). Pure.

* The operator's rules are written rules of the nearest layer. They replace an `ask` for the same host and port; a deny
  of the task's policy stays what it is, whatever the operator allows: deny wins (POL-5).
* A locked policy takes denies only.
* Remembered answers let a host and port pass, and admit no private address (ADR-2). Those that the task began with
  give way to those of now: what was forgotten is asked about again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.errors import UsageError
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.bounded import bounded
from tidegate.policy.index import RuleIndex
from tidegate.policy.layers import remembered_layer
from tidegate.policy.rows import KEY, LAYER, PHASE, PORT, SHAPE, VERDICT, rule_row
from tidegate.policy.rules import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.policy.policy import Policy
    from tidegate.policy.rows import Row

    Remembered = tuple[str, int, Phase]

OPERATOR = "operator"
_ASK = Verdict.ASK.value
_REMEMBERED = int(Layer.REMEMBERED)


def canonical(text: str) -> str:
    """Return the canonical spelling of a rule.

    Raises:
        UsageError: when it is none.
    """
    try:
        return rule_row(text, Verdict.DENY, Phase.RUNTIME, "", "", Origin.WRITTEN, Layer.COMMAND_LINE)[0]
    except RuleError as error:
        raise UsageError(f"{ascii(text)[:80]}: {error.what}", fix=error.advice, code="rule") from None


def changed(policy: Policy, operator: Mapping[str, Verdict], remembered: Iterable[Remembered] = ()) -> Policy:
    """Return the policy with what was added to it; itself where that is nothing.

    `operator` has rule texts, each with allow or deny; `remembered` host, port and phase of each answer.
    """
    rows: list[Row] = []
    for text, verdict in operator.items():
        if policy.locked and verdict is not Verdict.DENY:
            continue
        source = f"tidegate {verdict.value}"
        rows += [
            rule_row(text, verdict, phase, OPERATOR, source, Origin.WRITTEN, Layer.COMMAND_LINE) for phase in Phase
        ]
    replaced = {(row[SHAPE], row[KEY], row[PORT]) for row in rows}
    if not policy.locked:
        answers = ((host, port, phase, "this folder") for host, port, phase in remembered)
        rows += [row for row in remembered_layer(answers).rows if Phase(row[PHASE]) not in policy.closed_phases]
    kept = [row for row in policy.index.rows if row[LAYER] != _REMEMBERED and not _is_replaced(row, replaced)]
    if not rows and len(kept) == len(policy.index.rows):
        return policy
    return policy.replace(index=RuleIndex(tuple(bounded([*kept, *rows]))))


def _is_replaced(row: Row, replaced: set[tuple[str, str, int | None]]) -> bool:
    return row[VERDICT] == _ASK and (row[SHAPE], row[KEY], row[PORT]) in replaced
