"""Rules that are equal in all but their limits count together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.policy.written import to
from tidegate.model.rule import NO_LIMITS, REGISTRY, Layer, Origin, RuleLimits, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import also_matched, decide
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_of, rule_row
from tidegate.policy.together import either, more_requests, together

if TYPE_CHECKING:
    from tidegate.policy.rows import Row

GET, POST = only(("GET",), ("/a",)), only(("POST",), ("/b",))


def row(text: str, limits: RuleLimits = NO_LIMITS, layer: Layer = Layer.USER, verdict: Verdict = Verdict.ALLOW) -> Row:
    """One written rule; its source is its layer's name."""
    return rule_row(text, verdict, Phase.RUNTIME, "policy", layer.name, Origin.WRITTEN, layer, limits)


def test_requests_add_up_and_bounds_are_the_strictest() -> None:
    """INS-6, GAT-6: alternatives of all, the least of bytes and connections."""
    rows = [row("a", RuleLimits(10, None, GET)), row("a", RuleLimits(5, 7, POST)), row("a", RuleLimits(requests=GET))]
    assert rule_of(together(rows)).limits == RuleLimits(5, 7, ((*GET[0], *POST[0]),))
    assert either([GET, ()]) == ()
    assert either([GET, GET]) == GET
    assert either([(*GET, *POST), GET]) == (GET[0], POST[0] + GET[0])


def test_only_rules_of_one_layer_and_verdict_count_together() -> None:
    """POL-5: a nearer layer governs alone, and so does a rule that asks; another port is another rule."""
    get, post = RuleLimits(requests=GET), RuleLimits(requests=POST)
    cases = (
        ([row("a", get), row("a", post)], ((*GET[0], *POST[0]),)),
        ([row("a", get), row("a", post, Layer.COMMAND_LINE)], POST),
        ([row("a", get), row("a", post), row("a", layer=Layer.COMMAND_LINE)], ()),
        ([row("a", layer=Layer.COMMAND_LINE), row("a", get), row("a", post)], ()),
        ([row("a", get), row("a", post, verdict=Verdict.ASK)], POST),
        ([row("a", get), row("a:443", post)], POST),
        ([row("a", get), row("a")], ()),
        ([row("*", get), row("*", post), row("a", get)], GET),
    )
    for rows, requests in cases:
        rule = decide(make_policy(rows), to("a:443"), Phase.RUNTIME).rule
        assert rule is not None
        assert rule.limits.requests == requests


def test_explain_says_that_both_count() -> None:
    """POL-14: the other rule has not lost."""
    policy = make_policy([row("a", RuleLimits(requests=GET)), row("a", RuleLimits(requests=POST))])
    said = also_matched(policy, to("a:443"), Phase.RUNTIME)
    assert [why for _, why in said] == ["it counts too: what one of them lets pass, passes"] * len(said)
    assert said


def test_what_is_more() -> None:
    """POL-14: more methods, more paths, or in many words; less is nothing."""
    both = either([GET, POST])
    for old, new, words in (
        (GET, GET, ()),
        (GET, only(("GET", "PUT"), ("/a",)), ("more methods",)),
        (GET, only(("GET",)), ("more paths",)),
        (GET, (), ("more methods", "more paths")),
        ((), GET, ()),
        (both, GET, ()),
        (GET, both, ("more requests",)),
        (both, (), ("more requests",)),
        ((*GET, *POST), GET, ("more methods", "more paths")),
        (GET, (*GET, *POST), ()),
        # A WebSocket passes where a method is named, and at no read-only registry.
        (only(("GET",), kind=REGISTRY), only(("GET",)), ("more requests",)),
        (only(("GET",)), only(("GET",), kind=REGISTRY), ()),
    ):
        assert more_requests(old, new) == words, (old, new)
