"""tidegate.cli.policy.rendering."""

from __future__ import annotations

import pytest

from tidegate.cli.policy.rendering import coverage, json_of, otherwise, settings, text_of
from tidegate.model.limits import Limits
from tidegate.model.rule import Layer, Origin, Rule, RuleLimits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.git import git_alternatives
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_of, rule_row


def rule(text: str, limits: RuleLimits | None = None) -> Rule:
    """Return an allow rule for the runtime phase."""
    made = rule_of(rule_row(text, Verdict.ALLOW, Phase.RUNTIME, "policy", "f:1:1", Origin.WRITTEN, Layer.USER))
    return made if limits is None else made.replace(limits=limits)


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("a.com", "exactly this name, any port"),
        ("a.com:443", "exactly this name, port 443"),
        ("1.2.3.4", "exactly this address, any port"),
        ("*.a.com", "one label in front of a.com, not a.com itself, any port"),
        ("**.a.com:80", "every name below a.com, not a.com itself, port 80"),
        ("*", "every name and every public address, any port"),
    ],
)
def test_a_rule_says_what_it_covers(text: str, covered: str) -> None:
    """B11: in words, with what a wildcard does not cover."""
    assert coverage(rule(text)) == covered


def test_limits_are_said() -> None:
    """GAT-6: the bounds of a rule are part of what it lets through."""
    limited = rule("a.com", RuleLimits(bytes_up=10, connections_per_minute=2))
    assert coverage(limited).endswith("any port, at most 10 bytes up, at most 2 connections a minute")


def test_git_is_said_by_its_repositories() -> None:
    """INS-7, B11: not by the requests that git makes; what holds a host whatever rule lets it through is shown too."""
    narrow = RuleLimits(requests=(git_alternatives(("acme/**",), ("acme/app",)),))
    assert coverage(rule("a.com:443", narrow)).endswith("only git fetch of acme/**, acme/app or git push to acme/app")
    assert coverage(rule("a.com", RuleLimits(requests=(git_alternatives(("**",), ()),)))).endswith(", only git fetch")
    held = rule_row(
        "git.test", Verdict.ALLOW, Phase.RUNTIME, "policy", "f:1:6", Origin.WRITTEN, Layer.USER, limits=narrow
    )
    policy = make_policy([rule("git.test")], bounds=(held,))
    shown = text_of(policy)
    assert shown[shown.index("held, whatever rule lets them through") + 1].startswith("  git.test  exactly this name")
    assert [one["rule"] for one in json_of(policy)["held"]] == ["git.test"]
    assert not any(line.startswith("held") for line in text_of(make_policy([rule("git.test")])))


def test_hosts_that_are_never_read_are_shown() -> None:
    """INS-9: a setting like the others."""
    never = rule_row("a.com:443", Verdict.DENY, Phase.RUNTIME, "policy", "f:1:1", Origin.WRITTEN, Layer.USER)
    assert dict(settings(make_policy(never_inspected=(never,))))["inspect.never"] == "a.com:443"
    assert dict(settings(make_policy()))["inspect.never"] == "none"


def test_everything_else_is_said_for_each_phase() -> None:
    """POL-7, POL-10: a closed phase, a default and an audit are told apart."""
    policy = make_policy(default=Verdict.ASK, default_source="x", closed_phases=frozenset({Phase.INSTALL}))
    assert otherwise(policy, Phase.INSTALL).startswith("deny (the phase is closed")
    assert otherwise(policy, Phase.RUNTIME) == "ask (x)"
    assert otherwise(make_policy(default=Verdict.ALLOW, default_source="x"), Phase.RUNTIME) == "allow, and record (x)"


def test_only_limits_that_were_changed_are_listed() -> None:
    """A setting at its default is listed, a limit at its default is not."""
    names = dict(settings(make_policy(limits=Limits(connections=5, idle_seconds=0.5))))
    assert {key: value for key, value in names.items() if key.startswith("limits.")} == {
        "limits.connections": "5",
        "limits.idle_seconds": "0.5",
    }
    assert names["private"] == "exact-host-port"


def test_text_and_json_hold_every_rule() -> None:
    """Nothing of the policy is left out of what is shown."""
    policy = make_policy([rule("a.com"), rule("b.com")])
    assert sum(line.startswith("  allow") for line in text_of(policy)) == 2
    assert [shown["rule"] for shown in json_of(policy)["rules"]] == ["a.com", "b.com"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), "none"),
        (("/bin/sh", "-c", "npm ci && npm test\n"), "npm ci && npm test"),
        (("npm", "ci it"), "npm 'ci it'"),
        (("/bin/sh", "-c", "a\n\x1b[2Jb"), "a\\n\\x1b[2Jb"),
    ],
)
def test_the_set_up_command_is_shown_on_one_line(words: tuple[str, ...], shown: str) -> None:
    """POL-7, ASK-6: as it was written, or as a shell would take it, without what a terminal would obey."""
    policy = make_policy(setup=words)
    assert f"  {'setup':<17}  {shown}" in text_of(policy)
    assert json_of(policy)["setup"] == list(words)
