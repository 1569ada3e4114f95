"""Methods and paths of rules."""

from __future__ import annotations

import pytest

from tidegate.gate.paths import path_allowed
from tidegate.model.rule import Rule, RuleLimits, Shape
from tidegate.model.verdict import Phase, Verdict


def rule(*paths: str, methods: tuple[str, ...] = ()) -> Rule:
    """Return a rule with paths."""
    limits = RuleLimits(paths=paths, methods=methods)
    return Rule("a", Shape.EXACT, "a", None, Verdict.ALLOW, Phase.RUNTIME, "policy", "x:1:1", limits=limits)


@pytest.mark.parametrize(
    ("pattern", "path", "allowed"),
    [
        ("/repos/acme/**", "/repos/acme/x", True),
        ("/repos/acme/**", "/repos/acme/x/y?z=/../", True),
        ("/repos/acme/**", "/repos/acme", True),
        ("/repos/acme/**", "/repos/acmeX/x", False),
        ("/repos/acme/**", "/repos/acme/../evil", False),
        ("/repos/acme/**", "/repos/acme/%2e%2E/evil", False),
        ("/repos/acme/**", "/repos/acme//evil", False),
        ("/repos/acme/**", "/repos/acme/x%2fy", False),
        ("/repos/acme/**", "/repos/acme/x\\y", False),
        ("/repos/acme/**", "/repos/acme/..", False),
        ("/repos/acme/**", "/repos/acme/x%252e", False),
        ("/a/*/c", "/a/b/c", True),
        ("/a/*/c", "/a/b/b/c", False),
        ("/a/*.tgz", "/a/x.tgz", True),
        ("/a/*.tgz", "/a/x.tgz/y", False),
        ("/a/x*y*z", "/a/x1y2z", True),
        ("/a/x*y*z", "/a/xz", False),
        ("/a", "/a", True),
        ("/a", "/a/", False),
        ("/**", "/", True),
        ("/**/end", "/a/b/end", True),
        ("/a", "*", False),
    ],
)
def test_patterns(pattern: str, path: str, allowed: bool) -> None:
    """INS-6: one segment, any segments, parts of one; what two servers could read differently never matches."""
    assert path_allowed(rule(pattern), "GET", path.encode()) is allowed


def test_methods() -> None:
    """INS-6: case counts, as in HTTP; a rule without limits lets all through."""
    assert path_allowed(rule(methods=("GET", "HEAD")), "HEAD", b"/")
    assert not path_allowed(rule(methods=("GET",)), "POST", b"/")
    assert not path_allowed(rule(methods=("GET",)), "get", b"/")
    assert path_allowed(None, "POST", b"/")
    assert path_allowed(rule(), "POST", b"/../x")
