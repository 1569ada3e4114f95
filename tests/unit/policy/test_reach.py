"""Proves which names of a policy are worth an address (HLD-6, POL-5, POL-7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.destination import Destination
from tidegate.model.host import Host, canonical_host
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.reach import could_reach
from tidegate.policy.rows import rule_row


def policy_of(*rules: str, phase: Phase = Phase.RUNTIME, **more: Any) -> Policy:
    """Return a policy of texts: `a.test` allows, `?a.test` asks, `!a.test` denies."""
    verdicts = {"?": Verdict.ASK, "!": Verdict.DENY}
    rows = [
        rule_row(
            text.lstrip("?!"),
            verdicts.get(text[0], Verdict.ALLOW),
            phase,
            "policy",
            "test",
            Origin.WRITTEN,
            Layer.COMMAND_LINE,
        )
        for text in rules
    ]
    return make_policy(rows, **more)


@pytest.mark.parametrize(
    ("rules", "name", "reached"),
    [
        (["a.test"], "a.test", True),
        (["a.test"], "b.test", False),
        (["a.test"], "x.a.test", False),
        (["a.test"], "a.test.b", False),
        (["a.test:22"], "a.test", True),
        (["?a.test:22"], "a.test", True),
        (["*.a.test"], "x.a.test", True),
        (["*.a.test"], "a.test", False),
        (["*.a.test"], "x.y.a.test", False),
        (["**.a.test:8"], "x.y.a.test", True),
        (["**.a.test:8"], "xa.test", False),
        (["*"], "anything.test", True),
        (["*:443"], "anything.test", True),
        (["1.2.3.4"], "a.test", False),
        ([], "a.test", False),
    ],
)
def test_a_name_some_rule_lets_through_on_some_port(rules: list[str], name: str, reached: bool) -> None:
    """HLD-6, POL-1: allow and ask rules of every shape, and the names just outside."""
    assert could_reach(policy_of(*rules), Host(name), Phase.RUNTIME) is reached


@pytest.mark.parametrize(
    ("rules", "name", "reached"),
    [
        (["a.test", "!a.test"], "a.test", False),
        (["a.test", "!a.test:443"], "a.test", True),
        (["a.test:443", "!a.test:443"], "a.test", False),
        (["a.test:443", "a.test:22", "!a.test:443"], "a.test", True),
        (["a.test:443", "!a.test:22"], "a.test", True),
        (["a.test", "!**.test"], "a.test", False),
        (["x.a.test", "!*.a.test"], "x.a.test", False),
        (["x.a.test", "!*.test"], "x.a.test", True),
        (["a.test:443", "!*:443"], "a.test", False),
        (["a.test:443", "!*:80"], "a.test", True),
        (["*", "!*"], "a.test", False),
        (["*:443", "a.test:22", "!a.test:443"], "a.test", True),
        (["*:443", "!a.test:443"], "a.test", False),
        (["*:443", "!a.test:443"], "b.test", True),
    ],
)
def test_a_deny_rule_wins(rules: list[str], name: str, reached: bool) -> None:
    """POL-5: a name that is denied on every port it could have has no address; one port left is enough."""
    assert could_reach(policy_of(*rules), Host(name), Phase.RUNTIME) is reached


def test_the_default_counts_where_the_phase_is_open() -> None:
    """POL-5, POL-7: ask and allow reach every name but denied ones; a closed phase its rules only."""
    for default in (Verdict.ASK, Verdict.ALLOW):
        policy = policy_of("!b.test", "!c.test:1", default=default)
        assert could_reach(policy, Host("a.test"), Phase.RUNTIME)
        assert not could_reach(policy, Host("b.test"), Phase.RUNTIME)
        assert could_reach(policy, Host("c.test"), Phase.RUNTIME)
        closed = policy_of("a.test:1", default=default, closed_phases=frozenset({Phase.RUNTIME}))
        assert could_reach(closed, Host("a.test"), Phase.RUNTIME)
        assert not could_reach(closed, Host("b.test"), Phase.RUNTIME)
        assert could_reach(closed, Host("b.test"), Phase.INSTALL)


def test_rules_of_the_other_phase_do_not_count() -> None:
    """POL-7: what install may reach has no address at run time."""
    policy = policy_of("a.test", phase=Phase.INSTALL)
    assert could_reach(policy, Host("a.test"), Phase.INSTALL)
    assert not could_reach(policy, Host("a.test"), Phase.RUNTIME)


def test_metadata_names_and_addresses_have_none() -> None:
    """ADR-1: the names of cloud metadata never, whatever a rule says; a literal is not looked up."""
    policy = policy_of("*", "metadata.google.internal", "1.2.3.4")
    assert not could_reach(policy, Host("metadata.google.internal"), Phase.RUNTIME)
    assert could_reach(policy, Host("metadata.google.internal.a.test"), Phase.RUNTIME)
    assert not could_reach(policy, canonical_host("1.2.3.4"), Phase.RUNTIME)


_HOSTS = ["a.test", "b.test", "x.a.test", "y.x.a.test", "*.a.test", "**.a.test", "**.test", "*"]
_RULES = st.builds(
    lambda sign, host, port: f"{sign}{host}{port}",
    st.sampled_from(["", "?", "!"]),
    st.sampled_from(_HOSTS),
    st.sampled_from(["", ":1", ":2", ":3"]),
)


@given(
    st.lists(_RULES, max_size=8),
    st.sampled_from(["a.test", "b.test", "x.a.test", "y.x.a.test", "test", "metadata"]),
    st.sampled_from([Verdict.DENY, Verdict.ASK, Verdict.ALLOW]),
    st.booleans(),
)
def test_it_agrees_with_decide_on_every_port(rules: list[str], name: str, default: Verdict, closed: bool) -> None:
    """HLD-6: true exactly where `decide` lets some port through; port 4 stands for all that no rule names."""
    policy = policy_of(*rules, default=default, closed_phases=frozenset({Phase.RUNTIME} if closed else ()))
    some = any(
        decide(policy, Destination(Host(name), port), Phase.RUNTIME).verdict is not Verdict.DENY
        for port in (1, 2, 3, 4)
    )
    assert could_reach(policy, Host(name), Phase.RUNTIME) is some


def test_its_cost_does_not_grow_with_the_rules() -> None:
    """POL-4: the tables are probed, not walked: no more probes for 20,000 rules than for two."""
    probes = []
    for count in (2, 20_000):
        policy = policy_of(*(f"h{number}.test" for number in range(count)))
        matcher = policy.index.phase(Phase.RUNTIME).passes
        matcher.exact = _Counting(matcher.exact)
        assert could_reach(policy, Host("h1.test"), Phase.RUNTIME)
        assert not could_reach(policy, Host("other.test"), Phase.RUNTIME)
        probes.append(matcher.exact.count)
    assert probes[0] == probes[1]


class _Counting(dict[str, Any]):
    count = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.count += 1
        return super().get(key, default)

    def __iter__(self) -> Any:
        raise AssertionError("walked")
