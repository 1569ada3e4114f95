"""Codex's config.toml (POL-15)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import allowed, became, holds_to, is_below, names, policy_of, refused, took
from tidegate.model.address_class import Admission
from tidegate.model.errors import UsageError
from tidegate.model.rule import only
from tidegate.policy.dialects.codex import LIMITED
from tidegate.policy.dialects.imported import DROPPED, EXACTLY, NARROWER


def config(domains: dict[str, str], more: str = "enabled = true") -> str:
    """Return a configuration with one profile."""
    lines = "\n".join(f'{json.dumps(host)} = "{said}"' for host, said in domains.items())
    return f'default_permissions = "w"\n[permissions.w.network]\n{more}\n[permissions.w.network.domains]\n{lines}\n'


def test_the_domains_of_a_profile() -> None:
    """POL-15: `*.x` is any depth and not x, `**.x` is x too, denies win, and each entry has its place in the TOML."""
    imported = took(config({"a.test": "allow", "*.x.org": "allow", "**.b.test": "allow", "bad.x.org": "deny"}))
    assert imported.dialect == "codex"
    places = ["a.test:22", "c.b.x.org:443", "b.test:80", "c.b.test:80", "x.org:443", "bad.x.org:443", "b.a.test:1"]
    assert allowed(imported, places) == set(places[:4])
    policy = policy_of(imported)
    assert (policy.private, policy.own) == (Admission.NEVER, Admission.NEVER)
    assert {rule.source for rule in policy.rules} == {"file:5:1", "file:6:1", "file:7:1", "file:8:1"}


def test_the_older_tables() -> None:
    """POL-15: lists in `network_proxy.policy`, and in a profile itself."""
    older = '[network_proxy]\nenabled = true\n[network_proxy.policy]\nallowed_domains = ["a.test", "*.x.org"]\n'
    older += 'denied_domains = ["evil.x.org"]\n'
    assert allowed(took(older), ["a.test:1", "b.x.org:1", "evil.x.org:1"]) == {"a.test:1", "b.x.org:1"}
    listed = 'default_permissions = "w"\n[permissions.w.network]\nenabled = true\nallowed_domains = ["a.test"]\n'
    assert allowed(took(listed), ["a.test:1", "x.org:1"]) == {"a.test:1"}


@pytest.mark.parametrize("more", ["", "enabled = false"])
def test_without_enabled_there_is_no_network(more: str) -> None:
    """POL-15: the lists do not count then, and each entry says so; its denies stay."""
    imported = took(config({"a.test": "allow", "b.test": "deny"}, more))
    assert not allowed(imported)
    assert became(imported)["a.test"] == (DROPPED, ())
    assert became(imported)["b.test"][0] == EXACTLY


def test_limited_is_three_methods() -> None:
    """POL-15: on each allow; `full` is any."""
    (rule,) = {
        rule.limits for rule in policy_of(took(config({"a.test": "allow"}, 'enabled = true\nmode = "limited"'))).rules
    }
    assert rule.requests == only(LIMITED)
    (rule,) = {
        rule.limits for rule in policy_of(took(config({"a.test": "allow"}, 'enabled = true\nmode = "full"'))).rules
    }
    assert rule.requests == ()


@pytest.mark.parametrize(
    ("pattern", "said", "how", "rules"),
    [
        ("a.test:443", "allow", NARROWER, ("allow a.test:443",)),
        ("a.test:443", "deny", EXACTLY, ("deny a.test",)),
        ("*", "allow", EXACTLY, ("allow *",)),
        ("Example.COM.", "deny", EXACTLY, ("deny example.com",)),
        ("2600::1", "allow", EXACTLY, ("allow [2600::1]",)),
        ("region*.v2.x.org", "allow", DROPPED, ()),
        ("region*.v2.x.org", "deny", NARROWER, ("deny v2.x.org", "deny **.v2.x.org")),
        ("a?.x.org", "deny", NARROWER, ("deny x.org", "deny **.x.org")),
        ("*.re*.x.org", "deny", NARROWER, ("deny x.org", "deny **.x.org")),
        ("localhost", "allow", DROPPED, ()),
        ("127.0.0.1", "allow", DROPPED, ()),
        ("10.0.0.5", "allow", DROPPED, ()),
        ("169.254.169.254", "allow", DROPPED, ()),
        ("10.0.0.5", "deny", EXACTLY, ("deny 10.0.0.5",)),
    ],
)
def test_each_form(pattern: str, said: str, how: str, rules: tuple[str, ...]) -> None:
    """POL-15: a port is dropped there and kept here; a glob allows nothing, and denies all that it could."""
    assert became(took(config({pattern: said})))[pattern] == (how, rules)


def test_local_binding() -> None:
    """POL-15: with it private addresses by an exact name or literal; this machine never."""
    imported = took(config({"10.0.0.5": "allow", "localhost": "allow"}, "enabled = true\nallow_local_binding = true"))
    assert became(imported)["10.0.0.5"][0] == EXACTLY
    assert became(imported)["localhost"][0] == DROPPED
    assert (policy_of(imported).private, policy_of(imported).own) == (Admission.EXACT_HOST, Admission.NEVER)


def test_which_profile() -> None:
    """POL-15: the default's, or the one that is selected; a built-in default takes none of them."""
    two = '[permissions.w.network]\nenabled = true\nallowed_domains = ["a.test"]\n'
    two += '[permissions.v.network]\nenabled = true\nallowed_domains = ["x.org"]\n'
    with pytest.raises(UsageError, match=r"Codex does not start with that.*one of: w, v"):
        took(two)
    places = ["a.test:1", "x.org:1"]
    assert allowed(took('default_permissions = "v"\n' + two), places) == {"x.org:1"}
    assert allowed(took('default_permissions = "v"\n' + two, select="w"), places) == {"a.test:1"}
    assert not allowed(took('default_permissions = ":workspace"\n' + two), places)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (config({"*": "deny"}), "Codex refuses '*' in a deny"),
        (config({"foo.*": "deny"}), "what this denies cannot be said"),
        (config({"a.test": "alow"}), "write 'allow'"),
        (config({"a b": "allow"}), "it has a space inside"),
        (config({}, "enabled = true\nmod = 'full'"), "write 'mode'"),
        (config({}, "enabled = 'true'"), "a text where a truth value belongs"),
        (config({}, "enabled = true\nallowed_domain = ['a.test']"), "write 'allowed_domains'"),
        ('[permissions.w]\nextends = "v"\n[permissions.w.network]\n', "what a profile inherits would be lost"),
        ("[permissions.w.network\nenabled = true\n", "this is not TOML"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(text: str, said: str) -> None:
    """POL-15, POL-2: what cannot be kept is refused; a built-in parent names no hosts."""
    (line,) = refused(text)
    assert said in line
    assert line[0].isdigit()
    took(
        'default_permissions = "w"\n[permissions.w]\nextends = ":workspace"\n[permissions.w.network]\nenabled = true\n'
    )


PATTERNS = st.builds(lambda star, name: star + name, st.sampled_from(("", "*.", "**.")), names)


def matches(pattern: str, host: str) -> bool:
    """Say what its matcher does."""
    if pattern == "*":
        return True
    name = pattern.lstrip("*.") if pattern[:1] == "*" else pattern
    return (is_below(host, name) if pattern[:1] == "*" else False) or (pattern[:2] != "*." and host == name)


@given(
    st.dictionaries(st.one_of(PATTERNS, st.just("*")), st.just("allow"), max_size=4),
    st.dictionaries(PATTERNS, st.just("deny"), max_size=3),
    st.booleans(),
)
def test_it_allows_exactly_what_codex_allows(allow: dict[str, str], deny: dict[str, str], enabled: bool) -> None:
    """POL-15: an oracle from the proxy's matcher: denies first, then the allow list."""

    def oracle(host: str, _: int) -> bool:
        said = {**allow, **deny}
        if any(matches(one, host) for one in said if said[one] == "deny"):
            return False
        return enabled and any(matches(one, host) for one in said if said[one] == "allow")

    holds_to(took(config({**allow, **deny}, f"enabled = {str(enabled).lower()}")), oracle)


def test_profiles_of_which_none_is_chosen() -> None:
    """POL-15: Codex does not start without `default_permissions`, nor with one that is no profile; no other counts."""
    profile = config({"a.test": "allow"})
    unchosen = profile.partition("\n")[2]
    for text in (unchosen, f'default_permissions = "strict"\n{unchosen}'):
        with pytest.raises(UsageError, match="Codex does not start"):
            took(text)
        assert allowed(took(text, select="w"), ["a.test:443"]) == {"a.test:443"}
    assert allowed(took(profile), ["a.test:443"]) == {"a.test:443"}
    older = '[network_proxy]\nenabled = true\n[network_proxy.policy]\nallowed_domains = ["a.test"]\n'
    with pytest.raises(UsageError, match="Codex does not start"):
        took(f'default_permissions = "network_proxy"\n{older}')
    assert allowed(took(older), ["a.test:443"]) == {"a.test:443"}
