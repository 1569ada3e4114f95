"""Workflows of gh-aw, and lists of its firewall (POL-15)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import allowed, became, holds_to, is_below, names, policy_of, refused, took
from tidegate.model.address_class import Admission
from tidegate.policy.dialects.gh_aw import ECOSYSTEMS
from tidegate.policy.dialects.imported import DROPPED, EXACTLY, NARROWER
from tidegate.policy.presets.compiled import HOSTS


def workflow(allow: list[str], block: list[str] | None = None) -> str:
    """Return the frontmatter of a workflow, and its text."""
    network = json.dumps({"allowed": allow, "blocked": block or []})
    return f"---\non: push\nnetwork: {network}\n---\n# What to do\n\nkey: value\n"


def test_a_workflow() -> None:
    """POL-15: a domain is itself and all below it on ports 80 and 443; places are those of the Markdown file."""
    imported = took(workflow(["a.test", "https://x.org"], ["bad.a.test"]))
    assert imported.dialect == "gh-aw"
    places = ["a.test:443", "a.test:80", "c.b.a.test:443", "b.x.org:443", "a.test:22", "x.org:80", "bad.a.test:443"]
    assert allowed(imported, [*places, "y.bad.a.test:80"]) == set(places[:4])
    policy = policy_of(imported)
    assert (policy.private, policy.own) == (Admission.NEVER, Admission.NEVER)
    assert {rule.source.rpartition(":")[0] for rule in policy.rules} == {"file:3"}


@pytest.mark.parametrize(
    ("text", "how", "first"),
    [
        ("a.test", EXACTLY, "allow a.test:443"),
        ("http://a.test", EXACTLY, "allow a.test:80"),
        ("*.a.test", NARROWER, "allow **.a.test:443"),
        ("https://*.a.test", NARROWER, "allow **.a.test:443"),
        ("python", NARROWER, "allow @pypi"),
        ("defaults", DROPPED, None),
        ("8.8.8.8", DROPPED, None),
        ("localhost", DROPPED, None),
        ("a.test:8443", DROPPED, None),
    ],
)
def test_each_form(text: str, how: str, first: str | None) -> None:
    """POL-15: a wildcard is not the name itself, since two pages say two things; lists of gh-aw are not guessed."""
    kept, rules = became(took(workflow([text])))[text]
    assert (kept, rules[0] if rules else None) == (how, first)


def test_ecosystems_are_presets_for_reading() -> None:
    """POL-15: no preset unless the file says it, and only its hosts pass."""
    imported = took(workflow(["node", "go"]))
    places = [f"{host}:443" for host in (*HOSTS["npm"], *HOSTS["yarn"], *HOSTS["go"], *HOSTS["pypi"], "nodejs.org")]
    assert allowed(imported, places) == {f"{host}:443" for host in (*HOSTS["npm"], *HOSTS["yarn"], *HOSTS["go"])}
    assert not set().union(*ECOSYSTEMS.values()) - set(HOSTS)


def test_what_is_blocked_wins() -> None:
    """POL-15: with all below; an ecosystem only where all that is allowed are presets, else the file is refused."""
    assert not allowed(took(workflow(["a.test"], ["*.a.test"])))
    assert became(took(workflow(["x.org"], ["https://a.test"])))["https://a.test"][0] == NARROWER
    imported = took(workflow(["node", "python"], ["python"]))
    assert allowed(imported, ["pypi.org:443", "registry.npmjs.org:443"]) == {"registry.npmjs.org:443"}
    (line,) = refused(workflow(["pypi.org"], ["python"]))
    assert "which hosts this denies is known to gh-aw only" in line
    (line,) = refused(workflow(["node"], ["deno"]))
    assert "which hosts this denies" in line


def test_no_network() -> None:
    """POL-15: `network: {}` of a workflow, and its defaults, reach nothing here."""
    assert not allowed(took("on: push\nnetwork: {}\n"))
    imported = took("network: defaults\n")
    assert not allowed(imported)
    assert became(imported)["defaults"] == (DROPPED, ())


def test_the_firewalls_list() -> None:
    """POL-15: a text of domains, when it is said whose it is; lines, commas and comments, each with its place."""
    text = "# mine\na.test, b.test # two\n\n*.x.org\n"
    with pytest.raises(AssertionError):
        took(text)
    imported = took(text, "gh-aw")
    assert [(entry.text, entry.line, entry.column) for entry in imported.entries] == [
        ("a.test", 2, 1), ("b.test", 2, 9), ("*.x.org", 4, 1),
    ]  # fmt: skip
    assert allowed(imported, ["a.test:80", "b.x.org:443", "x.org:443"]) == {"a.test:80", "b.x.org:443"}


def test_what_would_be_lost_is_refused() -> None:
    """POL-15: paths of addresses narrow hosts; the firewall's log level does not."""
    text = "on: push\nnetwork: {allowed: [a.test], firewall: {ssl-bump: true, allow-urls: ['https://a.test/x/*']}}\n"
    (line,) = refused(text)
    assert "'allow-urls' narrows hosts by their paths" in line
    took("on: push\nnetwork: {allowed: [a.test], firewall: {log-level: info}, allowed-input: true}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (workflow(["*.*.a.test"]), "a wildcard is '*.' before a domain, once"),
        (workflow(["*"]), "a wildcard is '*.'"),
        (workflow(["a b"]), "it has a space inside"),
        (workflow(["a.test/x"]), "a rule has no path"),
        ("on: push\nnetwork: {alowed: [a.test], blocked: []}\n", "write 'allowed'"),
        ("on: push\nnetwork: {allowed: a.test}\n", "a text where a list belongs"),
        ("network: defaults\nnetwrk: {}\n", "write 'network'"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(text: str, said: str) -> None:
    """POL-15, POL-2: nothing of the file counts."""
    (line,) = refused(text)
    assert said in line
    assert line[0].isdigit()


def test_a_slip_in_a_policy_of_ours_is_not_a_workflow() -> None:
    """POL-15: `network: {allowed: […]}` alone would be wider as one of theirs; it can be named."""
    text = "network: {allowed: [a.test]}\n"
    with pytest.raises(AssertionError):
        took(text)
    assert took(text, "gh-aw").dialect == "gh-aw"


ENTRIES = st.builds(lambda scheme, name: scheme + name, st.sampled_from(("", "https://", "http://")), names)


def matches(entry: str, host: str, port: int) -> bool:
    """Say what its page does."""
    scheme, found, name = entry.rpartition("://")
    ports = {"https": (443,), "http": (80,)}[scheme] if found else (80, 443)
    return port in ports and (host == name or is_below(host, name))


@given(st.lists(ENTRIES, max_size=4), st.lists(names, max_size=2))
def test_it_allows_exactly_what_the_page_allows(allow: list[str], block: list[str]) -> None:
    """POL-15: an oracle from the page on network permissions."""

    def oracle(host: str, port: int) -> bool:
        blocked = any(host == name or is_below(host, name) for name in block)
        return not blocked and any(matches(entry, host, port) for entry in allow)

    holds_to(took(workflow(allow, block)), oracle)
