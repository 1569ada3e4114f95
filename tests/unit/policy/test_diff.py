"""What one policy lets through that another does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.written import policy, row, to
from tidegate.model.address_class import Admission
from tidegate.model.rule import Layer, Origin, RuleLimits, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide, matches_host
from tidegate.policy.diff import diff
from tidegate.policy.layers import PolicyLayer, command_line, join
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.presets.compiled import READS
from tidegate.policy.rows import rule_row
from tidegate.policy.rules import RuleError, parse_rule

if TYPE_CHECKING:
    from tidegate.model.destination import Destination


def lines(before: Policy, after: Policy) -> list[tuple[list[str], list[str], str]]:
    """Return hosts, exceptions and change of each difference."""
    found = diff(before, after).hosts
    return [
        (list(one.hosts), list(one.exceptions), one.also or f"{one.before.value} {one.after.value}") for one in found
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (policy(["a.test"]), policy(["a.test"]), []),
        (policy(["**.test"]), policy(["a.test", "*.test"]), []),
        (policy(["*"]), policy(["**"]), []),
        (policy(), policy(["a.test"]), [(["a.test"], [], "deny allow")]),
        (policy(["a.test"]), policy(["**.test"], deny=["b.test"]), [(["**.test"], ["a.test", "b.test"], "deny allow")]),
        (policy(["*.test"]), policy(["**.test"]), [(["**.test"], ["*.test"], "deny allow")]),
        (policy(["*.test:443"]), policy(["*.test"]), [(["*.test (other ports)"], [], "deny allow")]),
        (policy(), policy(["a.test:443"]), [(["a.test:443"], [], "deny allow")]),
        (policy(["a.test"]), policy(["a.test"], deny=["b.test"]), []),
        (policy(["a.test"], deny=["a.test"]), policy(["a.test"]), [(["a.test"], [], "deny allow")]),
        (policy(ask=["a.test"]), policy(["a.test"]), [(["a.test"], [], "ask allow")]),
        (policy(["a.test"]), policy(ask=["a.test"]), []),
        (policy(), policy(["1.2.3.4:22", "[fd00::1]"]),
         [(["1.2.3.4:22"], [], "deny allow"), (["[fd00::1]"], [], "deny allow")]),
        (policy(["x.b.test"]), policy(["**.test"], deny=["**.b.test"]),
         [(["**.test"], ["x.b.test", "*.b.test", "**.b.test"], "deny allow")]),
    ],
)  # fmt: skip
def test_by_host(before: Policy, after: Policy, expected: list[tuple[list[str], list[str], str]]) -> None:
    """New hosts are named as patterns; what is inside a pattern and not new is an exception (POL-14)."""
    assert lines(before, after) == expected


def test_the_default() -> None:
    """A wider default is a difference for every name, with the rules that already stood as exceptions."""
    before, after = policy(["a.test"]), policy(["a.test"], default=Verdict.ASK)
    assert lines(before, after) == [(["*"], [], "deny ask"), (["*"], ["a.test"], "deny ask")]
    assert {one.phase for one in diff(before, after).hosts} == set(Phase)
    assert lines(after, before) == []


def test_audit_is_wide() -> None:
    """A profile that allows everything shows as everything, public addresses as well."""
    tunnel = PolicyLayer(Layer.USER, "u", registries="tunnel")
    found = diff(join(tunnel), join(command_line(profile="audit")))
    runtime = [one for one in found.hosts if one.phase is Phase.RUNTIME]
    assert [one.hosts for one in runtime] == [("*",), ("every other public address",)]
    assert "pypi.org:443" in runtime[0].exceptions
    assert "and 9 more: ask → allow (profile audit)" in str(runtime[0])


def test_what_lifts_read_only_registries_is_wide() -> None:
    """INS-7, POL-14: the same hosts with more requests; the other way nothing is more."""
    read, tunnel = (join(PolicyLayer(Layer.USER, "u", registries=word)) for word in ("read", "tunnel"))
    found = [one for one in diff(read, tunnel).hosts if one.phase is Phase.RUNTIME]
    assert {host for one in found for host in one.hosts} == {f"{host}:443" for host in READS if "google" not in host}
    assert {one.also for one in found} == {"more methods", "more requests"}
    assert not diff(tunnel, read)


def test_wider_than_a_verdict() -> None:
    """With the same verdict, looser limits and addresses newly admitted are still more (POL-5, ADR-2)."""

    def limited(*limits: RuleLimits) -> Policy:
        return make_policy(
            [
                rule_row("a.test:1", Verdict.ALLOW, Phase.RUNTIME, "policy", "x", Origin.WRITTEN, Layer.USER, one)
                for one in limits
            ]
        )

    few = RuleLimits(10, 5, only(("GET",), ("/a",)))
    assert lines(limited(few), limited(RuleLimits())) == [
        (["a.test:1"], [], "more methods, more paths, more bytes up, more connections per minute")
    ]
    assert lines(limited(few), limited(RuleLimits(20, 5, only(("GET", "PUT"), ("/a",))))) == [
        (["a.test:1"], [], "more methods, more bytes up")
    ]
    assert lines(limited(RuleLimits()), limited(few)) == []
    assert lines(policy(["a.test:1"], own=Admission.NEVER, private=Admission.NEVER), policy(["a.test:1"])) == [
        (["a.test:1"], [], "may lead to private addresses, may lead to own addresses")
    ]
    preset = make_policy([row("a.test:1", origin=Origin.PRESET)])
    assert lines(preset, policy(["a.test:1"], own=Admission.NEVER)) == [
        (["a.test:1"], [], "may lead to private addresses")
    ]
    assert lines(policy(["a.test"]), policy(["a.test"], private=Admission.EXACT_HOST)) == [
        (["a.test"], [], "may lead to private addresses")
    ]


def test_settings() -> None:
    """Settings that let more through whatever the host are named, and only in that direction."""
    strict = policy(tls="strict", protected_ports=[80, 90])
    loose = policy(upstream_resolve="skip", protected_ports=[90])
    found = diff(strict, loose)
    assert [line.split(":")[0] for line in found.settings] == ["tls", "upstream.resolve", "protected_ports"]
    assert found
    assert not diff(loose, strict)


TEXTS = st.sampled_from(
    ["a.test", "a.test:1", "*.test", "*.test:2", "**.test", "**.b.test", "x.b.test", "*", "*:1", "1.2.3.4", "test"]
)
POLICIES = st.builds(
    policy,
    st.lists(TEXTS, max_size=3),
    st.lists(TEXTS, max_size=2),
    st.lists(TEXTS, max_size=2),
    default=st.sampled_from([Verdict.DENY, Verdict.ASK]),
)
TARGETS = st.sampled_from(
    ["a.test:1", "a.test:2", "q.test:1", "q.test:9", "x.b.test:1", "y.b.test:2", "q.q.b.test:9", "test:1", "other:1",
     "other.name:9", "1.2.3.4:1", "9.9.9.9:1"]
)  # fmt: skip
WEIGHT = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}


def covers(pattern: str, destination: Destination) -> bool:
    """Whether a pattern of the result covers a destination, read as a rule."""
    if pattern.startswith("every other public address"):
        return destination.host.is_literal
    bare = pattern.removesuffix(" (other ports)")
    try:
        parsed = parse_rule(bare)
    except RuleError:  # the host `1.2.3.4` under a pattern for names
        return False
    if parsed.text == "*" and destination.host.is_literal:
        return False
    rule = policy([bare]).rules[0]
    return matches_host(rule, destination) and parsed.port in {None, destination.port}


@given(POLICIES, POLICIES, TARGETS)
def test_nothing_is_missed(before: Policy, after: Policy, target: str) -> None:
    """Whatever B lets through and A does not is covered by a pattern of the result, for any two policies (POL-14)."""
    destination = to(target)
    was = decide(before, destination, Phase.RUNTIME).verdict
    now = decide(after, destination, Phase.RUNTIME).verdict
    if WEIGHT[now] > WEIGHT[was]:
        found = [one for one in diff(before, after).hosts if one.phase is Phase.RUNTIME and one.after is now]
        assert any(covers(pattern, destination) for one in found for pattern in one.hosts)


@given(POLICIES)
def test_no_policy_differs_from_itself(one: Policy) -> None:
    """The same policy lets nothing new through."""
    assert not diff(one, one)
