"""Expected verdicts, for `policy test` in CI (POL-14): a list of destinations, each with what the policy has to say."""

from __future__ import annotations

from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Expectation(Value):
    """One line of a test: a destination, and the verdict it has to get. `source` says where the line stands."""

    destination: Destination
    verdict: Verdict
    phase: Phase = Phase.RUNTIME
    source: str = ""


class Outcome(Value):
    """What the policy said to one expectation."""

    expectation: Expectation
    decision: Decision

    @property
    def met(self) -> bool:
        """Whether the verdict is the one that was expected."""
        return self.decision.verdict is self.expectation.verdict

    def __str__(self) -> str:
        wanted = self.expectation.verdict.value
        got = self.decision.verdict.value
        said = f"{got}, as expected" if self.met else f"{got}, expected {wanted}"
        return f"{said}: {self.decision.sentence()}"


def run_expectations(
    policy: Policy,
    expectations: Sequence[Expectation],
    judge: Callable[[Decision], Decision] | None = None,
) -> tuple[Outcome, ...]:
    """Return the outcome of each expectation, in their order.

    `judge` is applied to decisions about literals, which the gate judges at once (addresses.admit).
    """
    outcomes = []
    for expectation in expectations:
        decision = decide(policy, expectation.destination, expectation.phase)
        if judge is not None and expectation.destination.host.is_literal:
            decision = judge(decision)
        outcomes.append(Outcome(expectation, decision))
    return tuple(outcomes)
