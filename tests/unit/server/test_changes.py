"""tidegate.server.changes."""

from __future__ import annotations

import pytest

from tests.unit.server.kit import policy
from tidegate.model.destination import parse_authority
from tidegate.model.errors import UsageError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line, join, remembered_layer
from tidegate.policy.policy import Policy
from tidegate.server.changes import OPERATOR, canonical, changed

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


def _says(rules: Policy, where: str, phase: Phase = Phase.RUNTIME) -> tuple[Verdict, str]:
    decision = decide(rules, parse_authority(where), phase)
    return decision.verdict, decision.name


def test_nothing_added_is_the_same_policy() -> None:
    """A task that nobody changed keeps its index."""
    rules = policy("a.test")
    assert changed(rules, {}) is rules


def test_the_operators_allow_opens_that_host_and_no_other() -> None:
    """POL-8: a written rule of the nearest layer, in both phases."""
    now = changed(policy(), {"a.test:443": ALLOW})
    assert _says(now, "a.test:443") == (ALLOW, OPERATOR)
    assert _says(now, "a.test:443", Phase.INSTALL)[0] is ALLOW
    assert _says(now, "a.test:80")[0] is DENY
    assert _says(now, "b.test:443")[0] is DENY


def test_a_deny_wins_over_every_allow() -> None:
    """POL-5: the operator's deny over the task's allow, and the task's deny over the operator's allow."""
    now = changed(policy("a.test", "**.b.test", deny=("x.b.test",)), {"a.test": DENY, "x.b.test": ALLOW})
    assert _says(now, "a.test:443") == (DENY, OPERATOR)
    assert _says(now, "x.b.test:443")[0] is DENY
    assert _says(now, "y.b.test:443")[0] is ALLOW


def test_an_allow_replaces_an_ask_for_the_same_place_only() -> None:
    """POL-8: among equals ask would win; the operator has been asked."""
    rules = policy(ask=("a.test:443", "a.test:80", "*.b.test"))
    now = changed(rules, {"a.test:443": ALLOW})
    assert _says(now, "a.test:443")[0] is ALLOW
    assert _says(now, "a.test:80")[0] is Verdict.ASK
    assert _says(now, "x.b.test:443")[0] is Verdict.ASK


def test_what_is_remembered_passes_in_its_phase() -> None:
    """ASK-2, ASK-8: exactly that host, port and phase, under the name people see; an IPv6 literal too."""
    now = changed(policy(), {}, [("a.test", 443, Phase.RUNTIME), ("2600:beef::1", 443, Phase.RUNTIME)])
    assert _says(now, "a.test:443") == (ALLOW, "remembered")
    assert _says(now, "[2600:beef::1]:443") == (ALLOW, "remembered")
    assert _says(now, "a.test:443", Phase.INSTALL)[0] is DENY
    assert _says(now, "a.test:444")[0] is DENY


def test_a_locked_policy_takes_denies_only() -> None:
    """POL-8: neither the operator nor an answer widens it."""
    locked = policy("a.test", "b.test")
    locked = locked.replace(modes=locked.modes.replace(locked=True))
    now = changed(locked, {"c.test": ALLOW, "a.test": DENY}, [("d.test", 443, Phase.RUNTIME)])
    assert [_says(now, f"{name}.test:443")[0] for name in "abcd"] == [DENY, ALLOW, DENY, DENY]


def test_a_closed_phase_stays_closed_for_answers() -> None:
    """POL-7: what was remembered does not open a phase that the policy left empty."""
    rules = policy().replace(closed_phases=frozenset({Phase.INSTALL}))
    now = changed(rules, {}, [("a.test", 443, Phase.INSTALL)])
    assert _says(now, "a.test:443", Phase.INSTALL)[0] is DENY


@pytest.mark.parametrize("text", ["", "https://a.test/", "*a.test", "10.0.0.0/8", "a.test:0", "a b"])
def test_what_is_no_rule_is_said(text: str) -> None:
    """POL-2: one line, and what to write instead."""
    with pytest.raises(UsageError) as raised:
        canonical(text)
    assert raised.value.fix


def test_rules_are_spelled_one_way() -> None:
    """POL-3: two spellings of a host are one rule."""
    assert canonical("A.Test.:443") == canonical("a.test:443") == "a.test:443"


def test_what_was_forgotten_is_gone_from_a_task_that_began_with_it() -> None:
    """ASK-8: the answers of now stand in the place of those that were joined into the snapshot."""
    answers = [("a.test", 443, Phase.RUNTIME, "this folder"), ("b.test", 443, Phase.RUNTIME, "this folder")]
    began = join(command_line(profile="closed"), remembered_layer(answers))
    now = changed(began, {}, [("b.test", 443, Phase.RUNTIME)])
    assert _says(began, "a.test:443")[0] is ALLOW
    assert _says(now, "a.test:443")[0] is DENY
    assert _says(now, "b.test:443")[0] is ALLOW
    assert _says(changed(began, {}), "b.test:443")[0] is DENY
