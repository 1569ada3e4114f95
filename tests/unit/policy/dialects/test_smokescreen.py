"""Smokescreen's ACL (POL-15)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import allowed, became, holds_to, is_below, names, policy_of, refused, took
from tidegate.model.address_class import Admission
from tidegate.model.errors import UsageError
from tidegate.policy.dialects.imported import ASIDE, EXACTLY, NARROWER


def acl(
    domains: list[str], action: str = "enforce", deny: list[str] | None = None, allow: list[str] | None = None
) -> str:
    """Return an ACL with one service."""
    service = {"name": "web", "project": "p", "action": action, "allowed_domains": domains}
    return json.dumps(
        {"version": "v1", "services": [service], "global_deny_list": deny or [], "global_allow_list": allow or []}
    )


def test_a_service_that_enforces() -> None:
    """POL-15: `*.x` is any depth and not x, on any port; private addresses and this machine never."""
    imported = took(acl(["a.test", "*.x.org"], allow=["ok.test"]))
    assert imported.dialect == "smokescreen"
    places = ["a.test:1", "b.x.org:443", "c.b.x.org:80", "ok.test:443", "x.org:443", "b.a.test:443"]
    assert allowed(imported, places) == set(places[:4])
    policy = policy_of(imported)
    assert (policy.private, policy.own) == (Admission.NEVER, Admission.NEVER)


@pytest.mark.parametrize("action", ["report", "open"])
def test_report_and_open_let_everything_pass_but_the_global_denies(action: str) -> None:
    """POL-15: as it says; under `enforce` nothing but its lists does."""
    imported = took(acl([], action, deny=["bad.test"]))
    assert allowed(imported, ["x.org:443", "bad.test:443", "8.8.8.8:53"]) == {"x.org:443", "8.8.8.8:53"}
    assert not allowed(took(acl([], "enforce")))


def test_a_global_deny_wins_over_a_service_here() -> None:
    """POL-15: there the service's domain passes first. Narrower, and said at each entry that it meets; else exactly."""
    imported = took(acl(["*.x.org", "evil.x.org", "a.test"], deny=["evil.x.org"]))
    kept = became(imported)
    assert kept["*.x.org"][0] == NARROWER
    assert kept["a.test"][0] == EXACTLY
    assert allowed(imported, ["evil.x.org:443", "b.x.org:443"]) == {"b.x.org:443"}


def test_which_service() -> None:
    """POL-15: the only one, or the one that is selected; `default` by that name."""
    text = (
        "version: v1\nservices:\n  - {name: web, action: enforce, allowed_domains: [a.test]}\ndefault: {action: open}\n"
    )
    with pytest.raises(UsageError, match="has 2 services, and nothing says which") as caught:
        took(text)
    assert "one of: web, default" in caught.value.fix
    assert allowed(took(text, select="web"), ["a.test:1", "x.org:1"]) == {"a.test:1"}
    assert allowed(took(text, select="default"), ["a.test:1", "x.org:1"]) == {"a.test:1", "x.org:1"}
    alone = "version: v1\nservices: []\ndefault: {action: enforce, allowed_domains: [x.org]}\n"
    assert allowed(took(alone), ["a.test:1", "x.org:1"]) == {"x.org:1"}
    assert not allowed(took("version: v1\nservices: []\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (acl(["*"]), "must not match everything"),
        (acl(["*."]), "must not match everything"),
        (acl(["*x.org"]), "a wildcard stands for whole labels"),
        (acl(["a.*.org"]), "a wildcard stands only in front"),
        (acl(["A.test"]), "not in canonical form"),
        (acl(["bücher.example"]), "not in canonical form"),
        (acl(["a.test:443"]), "a domain has no port"),
        (acl(["a.test"], "enforced"), "write 'enforce'"),
        (acl([], deny=["*"]), "must not match everything"),
        ('{"version": "v2", "services": []}', "'version' knows no such value"),
        ("services: [{name: web}]", "a service without an action"),
        ("services: [{action: open}]", "a service without a name"),
        ("services: [{name: web, action: open, allowed_domain: [a.test]}]", "write 'allowed_domains'"),
        ("services: []\nglobal_denylist: [a.test]", "write 'global_deny_list'"),
        ("services: [{name: web, action: open}, {name: web, action: open}]", "a service twice"),
    ],
)
def test_what_it_refuses_is_refused(text: str, said: str) -> None:
    """POL-15: as its own validation has it, and slips of keys; each with its place."""
    (line,) = refused(text)
    assert said in line
    assert line[0].isdigit()


def test_what_says_nothing_of_hosts_is_left_out_by_name() -> None:
    """POL-15: projects, interception, proxies of the task."""
    text = "services: [{name: w, action: enforce, project: p, allowed_external_proxies: [x.org], mitm_domains: []}]"
    found = {entry.text for entry in took(text).entries if entry.how == ASIDE}
    assert found == {"project", "allowed_external_proxies", "mitm_domains"}


GLOBS = st.builds(lambda star, name: star + name, st.sampled_from(("", "*.")), names)


def glob(pattern: str, host: str) -> bool:
    """Say what its matcher does."""
    return is_below(host, pattern[2:]) if pattern.startswith("*.") else host == pattern


@given(
    st.lists(GLOBS, max_size=3),
    st.sampled_from(("enforce", "report", "open")),
    st.lists(GLOBS, max_size=2),
    st.lists(GLOBS, max_size=2),
)
def test_it_never_allows_what_smokescreen_denies(
    domains: list[str], action: str, deny: list[str], allow: list[str]
) -> None:
    """POL-15: an oracle that decides in Smokescreen's order."""

    def oracle(host: str, _: int) -> bool:
        if any(glob(one, host) for one in domains):
            return True
        if any(glob(one, host) for one in deny):
            return False
        return any(glob(one, host) for one in allow) or action != "enforce"

    holds_to(took(acl(domains, action, deny, allow)), oracle)
