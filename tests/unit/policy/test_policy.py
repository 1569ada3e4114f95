"""The joined policy as a value."""

from __future__ import annotations

import pytest

from tests.unit.policy.written import policy, row
from tidegate.model.address_class import Admission
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_of


def test_strictest_by_default() -> None:
    """A policy that says nothing denies everything and admits addresses by exact host and port only (ADR-2)."""
    empty = make_policy()
    assert empty.default is Verdict.DENY
    assert (empty.private, empty.own) == (Admission.EXACT_HOST_PORT, Admission.EXACT_HOST_PORT)
    assert not empty.locked
    assert empty.rules == ()
    assert empty.protected_ports == frozenset()


def test_frozen() -> None:
    """Nothing changes a policy once it is made (POL-8)."""
    said = policy(["a.test"])
    with pytest.raises(AttributeError):
        said.default = Verdict.ALLOW  # type: ignore[misc]


def test_equal_by_content() -> None:
    """Policies with the same rules and settings are the same value, made of rows or of rules."""
    rows = [row("a.test"), row("b.test", Verdict.DENY, Phase.INSTALL)]
    assert make_policy(rows) == make_policy([rule_of(one) for one in rows])
    assert make_policy(rows) != make_policy(rows, own=Admission.NEVER)
    assert [rule.text for rule in make_policy(rows).rules] == ["a.test", "b.test"]


def test_modes_carry_the_protected_ports() -> None:
    """What admission needs is in one value, so that nobody forgets the policy's own protected ports (ADR-1)."""
    said = make_policy(protected_ports=[8080, 8080, 9090], locked=True, private=Admission.NEVER)
    assert said.modes.protected_ports == said.protected_ports == frozenset({8080, 9090})
    assert said.modes.private is Admission.NEVER
    assert said.modes.locked
