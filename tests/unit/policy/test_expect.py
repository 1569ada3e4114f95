"""Expected verdicts."""

from __future__ import annotations

from tests.unit.policy.written import policy, to
from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.decision import Decision
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.expect import Expectation, run_expectations


def test_met_and_missed() -> None:
    """Each expectation gets its decision, in order, and one line that says whether it is met (POL-14)."""
    said = policy(["a.test"], default=Verdict.ASK, closed_phases=frozenset({Phase.INSTALL}))
    outcomes = run_expectations(
        said,
        [
            Expectation(to("a.test"), Verdict.ALLOW),
            Expectation(to("b.test"), Verdict.DENY, source="t.yaml:3:1"),
            Expectation(to("a.test"), Verdict.DENY, Phase.INSTALL),
        ],
    )
    assert [outcome.met for outcome in outcomes] == [True, False, True]
    assert str(outcomes[0]).startswith("allow, as expected: a.test:443: a rule allows it")
    assert str(outcomes[1]).startswith("ask, expected deny: b.test:443: a person is asked")
    assert outcomes[1].expectation.source == "t.yaml:3:1"


def test_literals_are_judged() -> None:
    """A literal gets the verdict that the gate would give it; a name stays unresolved."""
    said = policy(["*"])

    def judge(decision: Decision) -> Decision:
        packed = decision.destination.host.packed
        assert packed is not None
        return admit(decision, (packed,), Surroundings(), said.modes)

    wanted = [Expectation(to("127.0.0.1:80"), Verdict.DENY), Expectation(to("a.test"), Verdict.ALLOW)]
    assert all(outcome.met for outcome in run_expectations(said, wanted, judge))
    assert not run_expectations(said, wanted)[0].met
