"""Claude Code's settings.json (POL-15)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.test_sandbox_runtime import PATTERNS, matches
from tests.unit.policy.dialects.told import allowed, allows, became, holds_to, names, policy_of, refused, took
from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.imported import ASIDE, DROPPED, EXACTLY, NARROWER


def settings(network: dict[str, Any], **more: Any) -> str:
    """Return a settings file with these lists."""
    return json.dumps({"sandbox": {"enabled": True, "network": network}, **more})


def test_the_lists_are_those_of_its_sandbox() -> None:
    """POL-15: wildcards at any depth, ports, denies; what no list names is denied, where it would be asked about."""
    imported = took(settings({"allowedDomains": ["*.npmjs.org", "a.test:443"], "deniedDomains": ["evil.npmjs.org"]}))
    assert imported.dialect == "claude"
    policy = policy_of(imported)
    assert all(allows(policy, place) for place in ("registry.npmjs.org:80", "a.b.npmjs.org:443", "a.test:443"))
    assert not any(allows(policy, place) for place in ("npmjs.org:443", "evil.npmjs.org:443", "a.test:80", "x.org:443"))
    assert policy.default is Verdict.DENY
    (line,) = refused(settings({"allowedDomains": ["*"]}))
    assert "it allows everything" in line


def test_rules_for_fetching() -> None:
    """POL-15: a denied domain is denied to commands too, with all below; an allowed one is left out and named."""
    permissions = {"allow": ["WebFetch(domain:a.test)", "Bash(ls)"], "ask": ["WebFetch(domain:c.test)"]}
    permissions["deny"] = ["WebFetch(domain:bad.x.org)", "WebFetch(domain:*.worse.test)", "WebFetch", "Read(x)"]
    imported = took(settings({"allowedDomains": ["*.x.org"]}, permissions=permissions))
    kept = became(imported)
    assert kept["WebFetch(domain:a.test)"] == (DROPPED, ())
    assert kept["WebFetch(domain:c.test)"] == (DROPPED, ())
    assert kept["WebFetch(domain:bad.x.org)"] == (NARROWER, ("deny bad.x.org", "deny **.bad.x.org"))
    assert kept["WebFetch(domain:*.worse.test)"] == (NARROWER, ("deny worse.test", "deny **.worse.test"))
    assert {kept[text] for text in ("Bash(ls)", "WebFetch", "Read(x)")} == {(ASIDE, ())}
    assert allowed(imported, ["b.x.org:443", "bad.x.org:443", "a.test:443"]) == {"b.x.org:443"}
    everything = took(settings({"allowedDomains": ["a.test"]}, permissions={"deny": ["WebFetch(domain:*)"]}))
    assert not allowed(everything)


def test_keys() -> None:
    """POL-15: what runs outside of the sandbox there is named; slips beside the lists are errors."""
    text = json.dumps({"model": "m", "sandbox": {"enabled": False, "excludedCommands": ["git"], "network": {}}})
    asides = {entry.text for entry in took(text).entries if entry.how == ASIDE}
    assert asides == {"model", "enabled", "excludedCommands"}
    (line,) = refused(settings({"allowDomains": []}))
    assert "write 'allowedDomains'" in line
    (line,) = refused(settings({"deniedDomains": "x.org"}))
    assert "a text where a list belongs" in line
    (line,) = refused(json.dumps({"sandbox": {"netwrk": {}}}))
    assert "write 'network'" in line


@pytest.mark.parametrize("text", ['{"sandbox": {"network": {}}} // c', "sandbox: {network: {}}"])
def test_only_json_is_recognised(text: str) -> None:
    """POL-15: its files are JSON."""
    with pytest.raises(AssertionError):
        took(text)


@given(st.lists(PATTERNS, max_size=4), st.lists(PATTERNS, max_size=2), st.lists(names, max_size=2))
def test_it_never_allows_what_its_lists_deny(allow: list[str], deny: list[str], fetch: list[str]) -> None:
    """POL-15: an oracle from the pages, where a denied fetch denies that name."""
    rules = {"deny": [f"WebFetch(domain:{name})" for name in fetch]}
    imported = took(settings({"allowedDomains": allow, "deniedDomains": deny}, permissions=rules))

    def oracle(host: str, port: int) -> bool:
        denied = host in fetch or any(matches(one, host, port) for one in deny)
        return not denied and any(matches(one, host, port) for one in allow)

    holds_to(imported, oracle)
    assert all(entry.how in {EXACTLY, NARROWER, ASIDE} for entry in imported.entries)
