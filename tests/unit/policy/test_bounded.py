"""Remembered answers and the limits of the rules that asked."""

from __future__ import annotations

import pytest

from tidegate.model.destination import parse_authority
from tidegate.model.rule import NO_LIMITS, Layer, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.bounded import bounded
from tidegate.policy.decide import decide
from tidegate.policy.layers import join, remembered_layer
from tidegate.policy.loader import load_policy
from tidegate.policy.scope import is_read

ANSWER = remembered_layer([("a.test", 443, Phase.RUNTIME, "rule 1")])


@pytest.mark.parametrize(
    "rule",
    [
        "ask: [{host: a.test, methods: [GET]}]",
        "ask: [{host: '**.test', methods: [GET]}]",
        "allow: [{host: a.test, methods: [GET]}]",
        "allow: [{host: '**.test', methods: [GET]}, b.test]",
    ],
)
def test_an_answer_loosens_no_rule(rule: str) -> None:
    """POL-5, ASK-8: the host is allowed for good, with the methods of the rule that named it, and read inside TLS."""
    written = load_policy(f"network: {{runtime: {{{rule}}}}}".encode(), "p", Layer.USER)
    policy = join(written, ANSWER)
    decision = decide(policy, parse_authority("a.test:443"), Phase.RUNTIME)
    assert decision.verdict is Verdict.ALLOW
    assert decision.rule is not None
    assert decision.rule.text == "a.test:443"
    assert decision.rule.limits.requests == only(("GET",))
    assert is_read(decision, policy)


def test_an_answer_without_such_a_rule_is_a_host() -> None:
    """ASK-8: where no rule with limits names the host, it has none; a rule for another port does not count."""
    written = load_policy(
        b"network: {runtime: {ask: [{host: 'a.test:8443', methods: [GET]}, a.test]}}", "p", Layer.USER
    )
    decision = decide(join(written, ANSWER), parse_authority("a.test:443"), Phase.RUNTIME)
    assert decision.rule is not None
    assert decision.rule.limits is NO_LIMITS
    rows = list(ANSWER.rows)
    assert bounded(rows) is rows
