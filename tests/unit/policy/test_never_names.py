"""Names of cloud metadata."""

from __future__ import annotations

import pytest

from tests.unit.policy.written import policy, say
from tidegate.model.host import canonical_host
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict
from tidegate.policy.layers import command_line, join
from tidegate.policy.never_names import NEVER_NAMES


@pytest.mark.parametrize("name", sorted(NEVER_NAMES))
def test_no_rule_opens_them(name: str) -> None:
    """Metadata names are refused although a rule names them exactly, and under audit; no fix is offered (ADR-1)."""
    for said in (policy([f"{name}:80", "*"]), join(command_line(profile="audit", allow=[f"{name}:80"]))):
        decision = say(said, f"{name.upper()}.:80")
        assert decision.verdict is Verdict.DENY
        assert decision.reason is Reason.NEVER_ALLOWED
        assert decision.fix == ""


@pytest.mark.parametrize("name", ["metadata.example.com", "xmetadata.google.internal", "google.internal"])
def test_neighbours_follow_the_rules(name: str) -> None:
    """A name that only looks like one of them is an ordinary name."""
    assert say(policy(["*"]), name).allowed


def test_canonical() -> None:
    """The list is written as requests are compared (POL-3)."""
    assert all(canonical_host(name).text == name for name in NEVER_NAMES)
