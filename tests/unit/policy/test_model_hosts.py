"""Which model services a harness's rules lead to."""

from __future__ import annotations

import pytest

from tests.unit.policy.written import row
from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.model.verdict import Phase
from tidegate.policy.decide import decide
from tidegate.policy.harnesses import built_in, harness_layer
from tidegate.policy.model_hosts import MODEL_HOSTS, guarded_by, without_agent
from tidegate.policy.policy import make_policy
from tidegate.policy.scope import is_read

API = ("api.anthropic.com", 443)
OPENAI = tuple((host, 443) for host, service in MODEL_HOSTS.items() if service == "openai")


@pytest.mark.parametrize(
    ("rules", "guarded"),
    [
        (["api.anthropic.com:443"], (API,)),
        (["api.anthropic.com"], (API,)),
        (["*.anthropic.com:443"], (API,)),
        (["**.openai.com"], OPENAI),
        (["api.openai.com:443"], OPENAI),
        (["eu.api.openai.com"], OPENAI),
        (["api.anthropic.com:80"], ()),
        (["anthropic.com:443", "api.anthropic.com.example:443"], ()),
        (["platform.claude.com:443"], ()),
        ([], ()),
    ],
)
def test_those_that_a_rule_matches(rules: list[str], guarded: tuple[tuple[str, int], ...]) -> None:
    """INS-8: by name, by wildcard, with and without a port, at all hosts of the service; the neighbours are none."""
    assert guarded_by([row(text) for text in rules]) == guarded


def test_they_are_canonical() -> None:
    """POL-3: they are compared as they stand."""
    assert all(canonical_host(host).text == host for host in MODEL_HOSTS)


def test_a_command_that_is_not_the_agent_has_none_of_its_hosts() -> None:
    """POL-12: the rules of a person stay, and what is guarded; without an agent the policy is the same."""
    mine = row("b.test:443")
    layer = harness_layer(built_in("claude"))  # type: ignore[arg-type]
    policy = make_policy((mine, *layer.rows), guarded=layer.guarded)
    left = without_agent(policy)
    assert left.index.rows == (mine,)
    assert left.guarded == (API,)
    assert without_agent(left) is left


def test_another_host_of_the_service_is_no_way_around() -> None:
    """INS-8: where a person's own rule lets it through, it is read, and what is asked there is looked at."""
    layer = harness_layer(built_in("codex"))  # type: ignore[arg-type]
    policy = make_policy((row("*.api.openai.com:443"), *layer.rows), guarded=layer.guarded)
    for name, read in (("eu.api.openai.com", True), ("x.api.openai.com", False)):
        decision = decide(policy, Destination(canonical_host(name), 443), Phase.RUNTIME)
        assert (decision.allowed, is_read(decision, policy)) == (True, read)
