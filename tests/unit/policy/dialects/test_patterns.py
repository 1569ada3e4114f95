"""Host patterns that dialects share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import NAMES
from tidegate.model.destination import parse_authority
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.dialects.patterns import (
    NEVER,
    OTHER,
    OWN,
    PRIVATE,
    Meeting,
    below,
    is_address,
    kind_of,
    plain,
    split,
)
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_row
from tidegate.policy.rules import RuleError


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("localhost", OWN), ("a.LocalHost.", OWN), ("127.0.0.1", OWN), ("[::1]", OWN), ("127.255.0.1", OWN),
        ("169.254.169.254", NEVER), ("[fe80::1]", NEVER), ("0.0.0.0", NEVER), ("224.0.0.1", NEVER),
        ("100.100.100.200", NEVER), ("255.255.255.255", NEVER), ("168.63.129.16", NEVER), ("[fd00:ec2::254]", NEVER),
        ("10.0.0.1", PRIVATE), ("100.64.0.1", PRIVATE), ("[fd00::1]", PRIVATE),
        ("8.8.8.8", OTHER), ("[2600::1]", OTHER), ("a.test", OTHER), ("localhost.test", OTHER), ("127.1", OTHER),
    ],
)  # fmt: skip
def test_what_a_host_part_can_lead_to(host: str, kind: str) -> None:
    """ADR-1, ADR-2: said beforehand, so that an entry for it can say why."""
    assert kind_of(host) == kind


def test_parts() -> None:
    """POL-1: a host and its port, IPv6 in brackets, any depth below a name."""
    assert split("a.test:443") == ("a.test", ":443")
    assert split("[::1]:80") == ("[::1]", ":80")
    assert split("a.test") == ("a.test", "")
    assert (below("*.a.test:1"), below("a.test")) == ("**.a.test:1", "a.test")
    assert plain("A.Test.") == "a.test"
    assert [is_address(host) for host in ("1.2.3.4", "[::1]", "1.2", "a.test")] == [True, True, True, False]


RULES = st.builds(
    lambda star, name: star + name, st.sampled_from(("", "**.")), st.sampled_from((*NAMES, "test", "8.8.8.8"))
)


def _covers(text: str, place: str) -> bool:
    try:
        row = rule_row(text, Verdict.ALLOW, Phase.RUNTIME, "n", "s", Origin.WRITTEN, Layer.COMMAND_LINE)
    except RuleError:
        return False
    return decide(make_policy([row]), parse_authority(place), Phase.RUNTIME).verdict is Verdict.ALLOW


@given(RULES.filter(lambda rule: rule != "**.8.8.8.8"), st.lists(RULES, max_size=3))
def test_rules_that_match_the_same_place_meet(one: str, others: list[str]) -> None:
    """POL-15: exactly those of which a name or address exists that both match; what is no rule meets nothing."""
    names = (*NAMES, "8.8.8.8", *(f"z.{name}" for name in NAMES), "z.test", "test")
    both = any(_covers(one, f"{name}:443") and _covers(other, f"{name}:443") for name in names for other in others)
    assert Meeting(others).meets(one) is both
