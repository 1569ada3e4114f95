"""Entries of lists that are mappings; what is wrong in methods and paths is in test_requests.py."""

from __future__ import annotations

import pytest

from tests.unit.policy.test_requests import load, refused
from tidegate.model.rule import GIT
from tidegate.policy.entry import is_git


def test_git_of_a_rule() -> None:
    """INS-7: a word, or repositories by their path; beside other limits."""
    policy = load(
        "network: {runtime: {allow: [{host: git.test:443, git: read}, {host: b.test, git: write},"
        " {host: c.test, git: {read: ['acme/**'], write: [acme/app]}, limits: {bytes_up: 9}}, d.test]}}"
    )
    assert [is_git(rule.limits) for rule in policy.rules] == [True, True, True, False]
    limits = policy.rules[2].limits
    assert (limits.bytes_up, {kind for kind, _, _ in limits.requests[0]}) == (9, {GIT})


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("{host: a.com, git: fetch}", "'git' knows no such value: 'fetch': write 'read'"),
        ("{host: a.com, git: push}", "'git' knows no such value: 'push': write 'write'"),
        ("{host: a.com, git: [acme/app]}", "a list where a mapping belongs ('git')"),
        ("{host: a.com, git: {}}", "'git' names no repository"),
        ("{host: a.com, git: {read: []}}", "'git.read' is empty"),
        ("{host: a.com, git: {read: [/acme/app]}}", "a repository is its path on its host: '/acme/app'"),
        ("{host: a.com, git: {read: ['https://a.com/x']}}", "a repository is its path on its host"),
        ("{host: a.com, git: {read: ['a/../b']}}", "no path in normal form matches this: 'a/../b'"),
        ("{host: a.com, git: {pull: [a/b]}}", "'git' has no such key: 'pull'"),
        ("{host: a.com, git: read, methods: [GET]}", "'git' beside methods or paths: write two entries"),
        ("{host: 'a.com:22', git: read}", "inside ssh a push cannot be told from a fetch"),
        ("{git: read}", "an entry of 'network.runtime.allow' names no host"),
    ],
)
def test_what_is_refused(entry: str, line: str) -> None:
    """INS-7, POL-2: with what to write instead."""
    assert refused(entry).startswith(line)


def test_a_deny_rule_has_no_git() -> None:
    """INS-7: what is denied is denied whole."""
    assert refused("{host: a.com, git: read}", "deny").startswith("'git' on a deny rule")
