"""Which variables are keys of the model services that a policy guards."""

from __future__ import annotations

import pytest

from tests.unit.policy.written import row
from tidegate.policy.policy import make_policy
from tidegate.runtime.model_keys import ALONE, KEYS, alone_at, fit, from_plain, keys_of
from tidegate.runtime.secret_store import PLACES, Stored

API, CHAT = ("api.openai.com", 443), ("chatgpt.com", 443)
CLAUDE = ("api.anthropic.com", 443)
FULL = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-abcdefgh1234",
    "OPENAI_API_KEY": "sk-abcdefgh1234",
    "CODEX_API_KEY": "",
    "GITHUB_TOKEN": "ghp_abcdefgh1234",
}


@pytest.mark.parametrize(
    ("guarded", "found"),
    [
        ((), ()),
        ((CLAUDE,), (("ANTHROPIC_API_KEY", (CLAUDE,), "header", "x-api-key"),)),
        ((API, CHAT), (("OPENAI_API_KEY", (API,), "bearer", ""),)),
        ((("llm.example.com", 443),), ()),
    ],
)
def test_only_keys_of_guarded_services(guarded: tuple[tuple[str, int], ...], found: tuple[object, ...]) -> None:
    """INS-8: for the hosts of the service and its own header; what is empty, or another service's, is none."""
    keys = keys_of(make_policy(guarded=guarded), FULL, ())
    assert tuple((key.variable, key.hosts, key.place, key.field) for key in keys) == found
    assert from_plain([(key.variable, key.hosts, key.place, key.field) for key in keys]) == keys


def test_a_secret_of_the_same_variable_counts_instead() -> None:
    """INS-5: a person has said where that one belongs."""
    own = Stored("mine", (CLAUDE,), "bearer", "", "ANTHROPIC_API_KEY", "sealed")
    assert keys_of(make_policy(guarded=(CLAUDE,)), FULL, [own]) == ()


def test_a_host_that_is_never_inspected_leaves_its_keys() -> None:
    """INS-9: there is nobody who could swap them."""
    policy = make_policy(guarded=(CLAUDE, API), never_inspected=(row("api.anthropic.com"),))
    assert [key.variable for key in keys_of(policy, FULL, ())] == ["OPENAI_API_KEY"]


@pytest.mark.parametrize(
    ("value", "good"), [("sk-ant-api03-abcdefgh1234\n", True), ("none", False), ("a b c d e", False)]
)
def test_what_no_stand_in_can_be_made_for(value: str, good: bool) -> None:
    """INS-5: a word that stands for no key could be met by chance."""
    keys = keys_of(make_policy(guarded=(CLAUDE,)), {"ANTHROPIC_API_KEY": value}, ())
    assert bool(fit(keys, {"ANTHROPIC_API_KEY": value})) is good


def test_the_table() -> None:
    """INS-8: each variable once, in a place that secrets know."""
    variables = [variable for keys in KEYS.values() for variable, _, _ in keys]
    assert len(set(variables)) == len(variables)
    assert {place for keys in KEYS.values() for _, place, _ in keys} <= set(PLACES)


def test_where_a_service_takes_a_key_is_known_for_each() -> None:
    """INS-8: a key stands alone at its own service, also as a secret of a person; other secrets stand beside others."""
    assert set(ALONE) == set(KEYS)
    assert alone_at("ANTHROPIC_API_KEY", [CLAUDE, API]) == (b"x-api-key",)
    assert alone_at("OPENAI_API_KEY", [API]) == (b"authorization",)
    for variable, hosts in (("OPENAI_API_KEY", [CLAUDE]), ("TOKEN", [API]), ("OPENAI_API_KEY", [("a.test", 443)])):
        assert alone_at(variable, hosts) == ()
