"""Settings of sandbox-runtime (POL-15)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import allows, became, holds_to, is_below, names, policy_of, ports, refused, took
from tidegate.model.address_class import Admission
from tidegate.policy.dialects.imported import ASIDE, DROPPED, EXACTLY, NARROWER


def settings(allow: list[str], deny: list[str] | None = None, **more: object) -> str:
    """Return a settings file."""
    return json.dumps({"network": {"allowedDomains": allow, "deniedDomains": deny or [], **more}})


def test_the_lists_of_the_readme() -> None:
    """POL-15: `*.x` is any depth and not x; denies win; nothing else passes."""
    imported = took(settings(["a.test", "*.npmjs.org", "*.x.org:443"], ["evil.npmjs.org"]))
    assert imported.dialect == "sandbox-runtime"
    policy = policy_of(imported)
    yes = ("a.test:22", "registry.npmjs.org:443", "a.b.npmjs.org:80", "b.x.org:443")
    no = ("b.a.test:22", "npmjs.org:443", "evil.npmjs.org:443", "b.x.org:80", "x.org:443", "8.8.8.8:443")
    assert all(allows(policy, place) for place in yes)
    assert not any(allows(policy, place) for place in no)
    assert (policy.private, policy.own) == (Admission.EXACT_HOST, Admission.NEVER)


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("*", "a.test"),
        ("*.com", "*.example.com"),
        ("intranet", "intranet.test"),
        ("a.*.test", "*.a.test"),
        ("**.a.test", "*.a.test"),
        ("2600::1", "[2600::1]"),
        ("https://a.test", "a.test"),
        ("a.test:0", "a.test:1"),
        ("a.test.", "a.test"),
    ],
)
def test_what_its_schema_refuses_is_refused(text: str, beside: str) -> None:
    """POL-15: the same as srt itself; the neighbour is kept exactly."""
    (line,) = refused(settings([text]))
    assert line.startswith("1:")
    assert became(took(settings([beside])))[beside][0] == EXACTLY


@pytest.mark.parametrize("text", ["*", "*:22", "[2600::1]:443", "1.2.3.4", "localhost"])
def test_denies_have_forms_of_their_own(text: str) -> None:
    """POL-15: everything may be denied, on one port too."""
    assert became(took(settings(["a.test"], [text])))[text] == (EXACTLY, (f"deny {text}",))


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1:3000", "[::1]:80", "app.localhost", "169.254.169.254"])
def test_this_machine_is_not_reached(text: str) -> None:
    """POL-15: a name must not lead here there, and one mode of ours says both: left out, and said."""
    assert became(took(settings([text])))[text] == (DROPPED, ())
    assert became(took(settings(["10.1.2.3:80"])))["10.1.2.3:80"][0] == EXACTLY


def test_denied_ranges_of_addresses() -> None:
    """POL-15: private ones become `private: never`, an address a deny, and a public range is refused."""
    imported = took(settings(["10.1.2.3", "a.test"], deniedResolvedAddresses=["10.0.0.0/8", "8.8.8.8", "2600::5"]))
    kept = became(imported)
    assert kept["10.0.0.0/8"] == (NARROWER, ("private: never",))
    assert kept["8.8.8.8"] == (EXACTLY, ("deny 8.8.8.8",))
    assert kept["2600::5"] == (EXACTLY, ("deny [2600::5]",))
    assert kept["10.1.2.3"][0] == DROPPED
    assert policy_of(imported).private is Admission.NEVER
    (line,) = refused(settings(["a.test"], deniedResolvedAddresses=["8.8.0.0/16"]))
    assert "a range of public addresses cannot be denied" in line
    (line,) = refused(settings(["a.test"], deniedResolvedAddresses=["all"]))
    assert "no address and no range" in line


def test_keys() -> None:
    """POL-15: what says nothing of hosts is left out by name; a key beside the lists that nobody knows is an error."""
    imported = took(json.dumps({"network": {"allowedDomains": [], "allowUnixSockets": ["/x"]}, "filesystem": {}}))
    assert {entry.text for entry in imported.entries if entry.how == ASIDE} == {"allowUnixSockets", "filesystem"}
    (line,) = refused(json.dumps({"network": {"allowedDomains": [], "alloweDomains": []}}))
    assert "write 'allowedDomains'" in line
    (line,) = refused('{"network": {"allowedDomain": ["a.test"]}}')
    assert "write 'allowedDomains'" in line
    (line,) = refused(json.dumps({"network": {"allowedDomains": [], "onlyOnSundays": True}}))
    assert "has no such key: 'onlyOnSundays'" in line


PATTERNS = st.one_of(
    st.builds(lambda star, name, port: star + name + port, st.sampled_from(("", "*.")), names, ports),
    st.sampled_from(("8.8.8.8", "9.9.9.9:443")),
)


def matches(pattern: str, host: str, port: int) -> bool:
    """Say what the README does."""
    name, colon, wanted = pattern.partition(":")
    if colon and int(wanted) != port:
        return False
    return name == "*" or (is_below(host, name[2:]) if name.startswith("*.") else host == name)


@given(
    allow=st.lists(PATTERNS, max_size=4),
    deny=st.lists(st.one_of(PATTERNS, st.sampled_from(("*", "*:443"))), max_size=2),
)
def test_it_allows_exactly_what_the_readme_allows(allow: list[str], deny: list[str]) -> None:
    """POL-15: an oracle from the README; all of these entries are kept exactly."""
    imported = took(settings(allow, deny))
    assert all(entry.how == EXACTLY for entry in imported.entries)

    def oracle(host: str, port: int) -> bool:
        return not any(matches(one, host, port) for one in deny) and any(matches(one, host, port) for one in allow)

    holds_to(imported, oracle)


def test_an_address_inside_of_another_one() -> None:
    """POL-15, ADR-3: a denied `::ffff:…` denies the address in it; allowed, it is as private as that is."""
    imported = took(settings(["a.test", "[::ffff:127.0.0.1]"], deniedResolvedAddresses=["::ffff:8.8.8.8"]))
    assert became(imported)["::ffff:8.8.8.8"] == (EXACTLY, ("deny 8.8.8.8",))
    assert became(imported)["[::ffff:127.0.0.1]"][0] == DROPPED
