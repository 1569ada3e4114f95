"""Everything `policy explain` says of one destination, as a value (POL-14). Nothing is resolved and nothing is asked.

The verdict is that of `decide`; what the gate would add once it knows addresses comes in as `judge`, a function made of
addresses.admit, because this room does not know addresses.
"""

from __future__ import annotations

from tidegate.model.address_class import AddressClass
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.model.rule import Origin, Rule
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import also_matched, decide
from tidegate.policy.policy import Policy
from tidegate.policy.scope import why_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Explanation(Value):
    """One decision with what is behind it.

    `also_matched` are the rules that match too, each with why it lost. `inspected` says whether the gate would read
    inside TLS, `inspected_why` why. `policy_line` is the line of a policy that would allow it, '' where it is allowed
    or nothing would; `decision.fix` is the same as an option of the command line.
    """

    decision: Decision
    also_matched: tuple[tuple[Rule, str], ...]
    inspected: bool
    policy_line: str
    inspected_why: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the keys of `policy explain --json`."""
        decision = self.decision
        return {
            "verdict": decision.verdict.value,
            "rule": decision.rule_text or None,
            "name": decision.name,
            "source": decision.source,
            "phase": decision.phase.value,
            "host": decision.destination.host.text,
            "port": decision.destination.port,
            "reason": decision.reason.word,
            "address": decision.address or None,
            "address_class": decision.address_class.value if decision.address_class is not None else None,
            "inspected": self.inspected,
            "inspected_why": self.inspected_why,
            "fix": decision.fix or None,
            "policy_line": self.policy_line or None,
            "also_matched": [
                {
                    "verdict": rule.verdict.value,
                    "rule": rule.text,
                    "name": rule.name,
                    "source": rule.source,
                    "why": why,
                }
                for rule, why in self.also_matched
            ],
        }


def explain(
    policy: Policy,
    destination: Destination,
    phase: Phase,
    judge: Callable[[Decision], Decision] | None = None,
) -> Explanation:
    """Return what the policy says of a destination, and why.

    `judge` turns the decision into what its addresses leave of it: give it where the destination is a literal, or where
    the addresses of the name are known.
    """
    by_name = decide(policy, destination, phase)
    lost = also_matched(policy, destination, phase)
    decision = by_name
    if judge is not None:
        decision = judge(by_name)
        if decision.address_class is None:
            decision = decision.replace(address_class=AddressClass.PUBLIC)
        if by_name.rule is not None and decision.rule is not by_name.rule:
            lost = ((by_name.rule, "a deny rule names the address it leads to"), *lost)
    inspected, why = why_read(decision, policy)
    return Explanation(decision, lost, inspected=inspected, policy_line=_policy_line(decision), inspected_why=why)


def shadowed(policy: Policy) -> tuple[str, ...]:
    """Return one warning for each deny rule that takes everything from rules a person wrote (CASES B13)."""
    warnings: list[str] = []
    for phase in Phase:
        index = policy.index.phase(phase)
        if not index.denies:
            continue
        beaten: dict[Rule, list[str]] = {}
        for rule in policy.index.rules(phase):
            if rule.verdict is not Verdict.DENY and rule.origin is Origin.WRITTEN:
                deny = index.denies.covering(rule)
                if deny is not None:
                    beaten.setdefault(deny, []).append(f"{rule.text!r} ({rule.source})")
        for deny, rules in beaten.items():
            some = ", ".join(rules[:_SOME]) + (f" and {len(rules) - _SOME} more" if len(rules) > _SOME else "")
            line = f"the deny rule {deny.text!r} ({deny.source}) wins over every allow; nothing is left of {some}"
            if line not in warnings:
                warnings.append(line)
    return tuple(warnings)


_SOME = 5  # as many rules a warning names


def _policy_line(decision: Decision) -> str:
    if not decision.fix or decision.reason in {Reason.ALLOWED, Reason.ALLOWED_BY_DEFAULT}:
        return ""
    return f'network: {{{decision.phase.value}: {{allow: ["{decision.destination}"]}}}}'
