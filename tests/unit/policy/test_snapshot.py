"""A policy as plain data and back."""

from __future__ import annotations

import json
import marshal

import pytest

from tests.unit.policy.written import row, say
from tidegate.model.address_class import Admission
from tidegate.model.limits import Limits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.layers import command_line, join
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.snapshot import FORMAT, from_plain, to_plain

FULL = make_policy(
    [row("a.test:443"), row("**.b.test", Verdict.DENY, Phase.INSTALL), row("[fd00::1]:22", Verdict.ASK)],
    default=Verdict.ASK,
    default_source="p.yaml:2:1",
    profile="careful",
    closed_phases=frozenset({Phase.INSTALL}),
    private=Admission.EXACT_HOST,
    own=Admission.NEVER,
    protected_ports=(1, 65535),
    locked=True,
    tls="strict",
    upstream_resolve="skip",
    limits=Limits(connections=7, idle_seconds=2.5),
    setup=("npm", "ci"),
    notes=("a note",),
    never_inspected=(row("*.pinned.test"),),
    guarded=(("api.anthropic.com", 443),),
)


@pytest.mark.parametrize("policy", [make_policy(), join(), join(command_line(allow=["a.test"], deny=["b.test"])), FULL])
def test_there_and_back(policy: Policy) -> None:
    """The gate's process gets the policy that the front joined, every field of it (POL-8)."""
    data = to_plain(policy)
    assert from_plain(marshal.loads(marshal.dumps(data))) == policy
    for target in ("a.test", "b.test", "pypi.org"):
        assert say(from_plain(data), target) == say(policy, target)


def test_it_is_plain() -> None:
    """Nothing in it needs our code to be read."""
    assert json.loads(json.dumps(to_plain(FULL)))[0] == FORMAT


def test_another_format() -> None:
    """A snapshot of another version is refused, not guessed at."""
    data = to_plain(FULL)
    with pytest.raises(ValueError, match=f"format {FORMAT + 1}"):
        from_plain((FORMAT + 1, *data[1:]))


def test_rules_stay_rows() -> None:
    """Loading makes no Rule objects, so that 10,000 rules load fast (POL-4)."""
    loaded = from_plain(to_plain(make_policy([row(f"h{i}.test") for i in range(100)])))
    assert loaded.index._made == {}
    assert say(loaded, "h7.test").allowed
    assert len(loaded.index._made) == 1
