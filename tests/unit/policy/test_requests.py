"""Methods, paths and exemptions in a policy's text."""

from __future__ import annotations

import pytest

from tidegate.model.rule import Layer, only
from tidegate.policy.layers import join
from tidegate.policy.loader import load_policy
from tidegate.policy.policy import Policy
from tidegate.policy.positions import PolicyErrors


def load(text: str) -> Policy:
    """A --policy file with this text, joined."""
    return join(load_policy(text.encode(), "p.yaml", Layer.COMMAND_LINE))


def refused(entry: str, verdict: str = "allow") -> str:
    """The one line that refuses an entry of a list."""
    with pytest.raises(PolicyErrors) as caught:
        load(f"network: {{runtime: {{{verdict}: [{entry}]}}}}")
    (line,) = str(caught.value).splitlines()
    return line.split(": ", 1)[1]


def test_methods_and_paths_are_the_rules_own() -> None:
    """INS-6: they stand in the rule that has them, beside its other limits, and in no other."""
    policy = load(
        "network: {runtime: {allow: ["
        "{host: api.github.com, methods: [GET, HEAD], paths: ['/repos/acme/**'], limits: {bytes_up: 5}}, b.test]}}"
    )
    first, second = policy.rules
    assert first.limits.requests == only(("GET", "HEAD"), ("/repos/acme/**",))
    assert first.limits.bytes_up == 5
    assert second.limits.requests == ()


def test_exemptions_of_all_layers_add_up() -> None:
    """INS-9: `inspect: {never: …}` takes rules of every shape; what two layers exempt is exempt."""
    user = load_policy(b"inspect: {never: ['*.pinned.test', a.test:443]}", "u.yaml", Layer.USER)
    own = load_policy(b"inspect: {never: [1.2.3.4]}", "p.yaml", Layer.COMMAND_LINE)
    assert [row[0] for row in join(user, own).never_inspected] == ["*.pinned.test", "a.test:443", "1.2.3.4"]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("{host: a.com, methods: GET}", "a text where a list belongs ('methods'): 'GET': write '[GET, HEAD]'"),
        ("{host: a.com, methods: [get]}", "a method is a word in capitals: 'get': write GET, HEAD, POST"),
        ("{host: a.com, methods: [CONNECT]}", "this method never passes: 'CONNECT': remove it"),
        ("{host: a.com, methods: []}", "'methods' is empty, so no request could pass"),
        ("{host: a.com, paths: []}", "'paths' is empty, so no request could pass"),
        ("{host: a.com, paths: [repos]}", "a path begins with '/': 'repos': write '/repos'"),
        ("{host: a.com, paths: ['/a?b=c']}", "a path has no query and no fragment"),
        ("{host: a.com, paths: ['/a//b']}", "no path in normal form matches this: '/a//b'"),
        ("{host: a.com, paths: ['/a/../b']}", "no path in normal form matches this: '/a/../b'"),
        ("{host: a.com, paths: ['/a**']}", "no path in normal form matches this: '/a**'"),
        ("{host: a.com, paths: ['/%61']}", "a pattern is compared in normal form: '/%61': write '/a'"),
        ("{host: a.com, paths: ['/ä']}", "a path is visible ASCII"),
    ],
)
def test_what_could_match_nothing_is_refused(entry: str, line: str) -> None:
    """INS-6, POL-2: a pattern or method that no request has is a typing error, and is named with what to write."""
    assert refused(entry).startswith(line)


def test_a_deny_rule_takes_neither() -> None:
    """INS-6: what is denied is denied whole; denying some paths would allow the rest without saying so."""
    assert refused("{host: a.com, paths: ['/x']}", "deny").startswith("'paths' on a deny rule")


def test_a_preset_takes_neither() -> None:
    """INS-6: as with its other limits."""
    assert refused("{host: '@npm', methods: [GET]}").startswith("a preset takes no limits")


@pytest.mark.parametrize(
    ("entries", "good"),
    [
        ("{host: a.com, methods: [GET]}, {host: a.com, methods: [POST], paths: ['/x']}", True),
        ("{host: a.com, methods: [GET]}, a.com", False),
        ("a.com, {host: A.com, methods: [GET]}", False),
        ("{host: a.com, methods: [GET]}, {host: 'a.com:443', methods: [POST]}", True),
        ("{host: a.com, methods: [GET]}, '*.a.com'", True),
        ("a.com, a.com", True),
        ("{host: a.com, methods: [GET]}], ask: [a.com", False),
        ("a.com], ask: [{host: a.com, methods: [GET]}", False),
        ("{host: a.com, methods: [GET]}], deny: [a.com", True),
        ("{host: a.com, methods: [GET]}], ask: ['a.com:8443'", True),
    ],
)
def test_a_second_rule_that_would_leave_nothing_of_the_first_is_refused(entries: str, good: bool) -> None:
    """INS-6: methods and paths add up; beside a rule without any, or one of another verdict, they would be lost."""
    text = f"network: {{runtime: {{allow: [{entries}]}}}}"
    if good:
        load(text)
        return
    with pytest.raises(PolicyErrors, match=r"stands (twice|in both)"):
        load(text)
