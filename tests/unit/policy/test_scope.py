"""Which hosts a policy wants read: only those with methods or paths, and never those it exempts."""

from __future__ import annotations

import pytest

from tidegate.model.destination import Destination, parse_authority
from tidegate.model.rule import Layer, Origin, RuleLimits, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.alternatives import narrows
from tidegate.policy.decide import decide
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.rows import rule_row
from tidegate.policy.scope import Scope, is_read, scope_of, why_read, widened

GET = RuleLimits(requests=only(methods=("GET",)))
PATHS = RuleLimits(requests=only(paths=("/a/**",)))
BYTES = RuleLimits(bytes_up=10)


def row(text: str, limits: RuleLimits, verdict: Verdict = Verdict.ALLOW, phase: Phase = Phase.RUNTIME) -> tuple:
    """One written rule."""
    return rule_row(text, verdict, phase, "policy", "p.yaml:1:1", Origin.WRITTEN, Layer.COMMAND_LINE, limits)


def to(text: str) -> Destination:
    """The destination a client would name."""
    return parse_authority(text.encode(), None)


def policy_of(*rules: tuple[str, RuleLimits], never: tuple[str, ...] = ()) -> Policy:
    """A policy that allows these and denies the rest."""
    return make_policy(
        [row(text, limits) for text, limits in rules],
        never_inspected=tuple(row(text, RuleLimits(), Verdict.DENY) for text in never),
    )


@pytest.mark.parametrize(
    ("rules", "scope"),
    [
        ([("a.test", BYTES)], Scope()),
        ([("a.test", GET), ("b.test", BYTES)], Scope(names=("a.test",))),
        ([("*.a.test", GET), ("**.b.test:443", PATHS)], Scope(suffixes=("a.test", "b.test"))),
        ([("1.2.3.4", GET), ("[2600::1]:443", PATHS)], Scope(literals=("1.2.3.4", "2600::1"))),
        ([("*", GET)], Scope(everything=True)),
    ],
)
def test_the_scope_names_what_rules_want_read_and_nothing_else(rules: list, scope: Scope) -> None:
    """INS-1: the authority is for exactly the hosts of rules with methods or paths; without one there is none."""
    assert scope_of(policy_of(*rules)) == scope
    assert bool(scope) == (scope != Scope())


def test_denied_hosts_are_in_no_scope() -> None:
    """INS-1: a deny rule asks for nothing, and both phases count."""
    denied = row("a.test", GET, Verdict.DENY)
    install = row("b.test", GET, phase=Phase.INSTALL)
    assert scope_of(make_policy([denied, install])) == Scope(names=("b.test",))


@pytest.mark.parametrize(
    ("asked", "read"),
    [("a.test:443", True), ("a.test:8443", True), ("b.test:443", False), ("other.test:443", False)],
)
def test_only_what_such_a_rule_governs_is_read(asked: str, read: bool) -> None:
    """INS-1: a tunnel stays a tunnel unless the governing rule has methods or paths."""
    policy = policy_of(("a.test", GET), ("b.test", BYTES))
    decision = decide(policy, to(asked), Phase.RUNTIME)
    assert is_read(decision, policy) is read
    assert narrows(decision) is read


@pytest.mark.parametrize(
    ("never", "read"),
    [("a.test", False), ("a.test:443", False), ("a.test:8443", True), ("*.test", False), ("b.test", True)],
)
def test_a_host_that_is_never_inspected_is_not_read(never: str, read: bool) -> None:
    """INS-9: `inspect: never`, by exact host, port or wildcard; its neighbours are read all the same."""
    policy = policy_of(("a.test", GET), never=(never,))
    assert is_read(decide(policy, to("a.test:443"), Phase.RUNTIME), policy) is read


def test_why_a_tunnel_stays_one_names_what_keeps_it() -> None:
    """INS-9, B11: `inspect: never` is what an explanation names, also where no rule wanted the host read."""
    policy = policy_of(("a.test", BYTES), ("b.test", BYTES), never=("a.test",))
    said = [why_read(decide(policy, to(f"{name}:443"), Phase.RUNTIME), policy)[1] for name in ("a.test", "b.test")]
    assert ["'inspect: never' names it" in one for one in said] == [True, False]


def test_hosts_of_secrets_are_in_the_scope_too() -> None:
    """INS-5: a name or an address beside what rules ask for, each once."""
    scope = widened(Scope(names=("a.test",)), ["a.test", "b.test", "[2001:db8::1]", "1.2.3.4"])
    assert (scope.names, scope.literals) == (("a.test", "b.test"), ("2001:db8::1", "1.2.3.4"))
    assert not widened(Scope(), [])


@pytest.mark.parametrize(
    ("never", "scope", "read", "why"),
    [
        ((), Scope(names=("api.anthropic.com",)), True, "it is the agent's model service"),
        (("api.anthropic.com",), Scope(), False, "'inspect: never' names it, so what the agent asks"),
    ],
)
def test_the_model_service_of_an_agent_is_read(never: tuple[str, ...], scope: Scope, read: bool, why: str) -> None:
    """INS-8, INS-9: whatever rule lets it through, and not where the policy says never; other ports are not."""
    rules = (("api.anthropic.com", BYTES), ("b.test", BYTES))
    policy = policy_of(*rules, never=never).replace(guarded=(("api.anthropic.com", 443),))
    assert scope_of(policy) == scope
    decision = decide(policy, to("api.anthropic.com:443"), Phase.RUNTIME)
    assert is_read(decision, policy) is read
    told, clause = why_read(decision, policy)
    assert (told, why in clause) == (read, True)
    for other in ("api.anthropic.com:8443", "b.test:443"):
        decision = decide(policy, to(other), Phase.RUNTIME)
        assert not is_read(decision, policy)
        assert why_read(decision, policy)[0] is False
