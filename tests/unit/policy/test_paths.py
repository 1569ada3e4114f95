"""Methods and paths of rules."""

from __future__ import annotations

import pytest

from tidegate.model.rule import Rule, RuleLimits, Shape
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.paths import OVERRIDES, request_allowed


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
        ("/repos/acme/**", "/repos/%61cme/x", True),
        ("/repos/acme/**", "/repos/%61cme-evil/x", False),
        ("/repos/acme/**", "/repos/acme/..;/evil", False),
        ("/repos/acme/**", "/repos/acme/..%3b/evil", False),
        ("/repos/acme/**", "/repos/acme/.;a=b/evil", False),
        ("/repos/acme/**", "/repos/acme/a;b=c/x", True),
        ("/repos/acme/**", "/repos/acme/%c0%ae%c0%ae/evil", False),
        ("/repos/acme/**", "/repos/acme/x%", False),
        ("/repos/acme/**", "/repos/acme/x%zz", False),
        ("/repos/acme/**", "/repos/acme/x%20y", True),
        ("/repos/acme/**", "/repos/acme/x%00", False),
        ("/repos/acme/**", "/repos/acme/x%20HTTP/1.1%0d%0aHost:%20x", False),
        ("/repos/acme/**", "/repos/acme/x%1f", False),
        ("/repos/acme/**", "/repos/acme/x%7F", False),
        ("/repos/acme/**", "/repos/acme/%e0%80%ae%E0%80%AE/evil", False),
        ("/repos/acme/**", "/repos/acme/..%f0%80%80%af/evil", False),
        ("/repos/acme/**", "/repos/acme/%e0%a4%85%f0%9f%8c%8a", True),
        ("/repos/acme/**", "/repos/acme/..%20/evil", False),
        ("/repos/acme/**", "/repos/acme/%20..;x/evil", False),
        ("/repos/acme/**", "/repos/acme/...", True),
        ("/repos/acme/**", "/repos/acme/\u00e9", False),
        ("/repos/acme/**", "/Repos/acme/x", False),
        ("/a/**/b/**/c", "/a/x/b/y/z/c", True),
        ("/a/**/b/**/c", "/a/x/b/y/z/d", False),
        ("/a/**/b", "/a/b", True),
    ],
)
def test_patterns(pattern: str, path: str, allowed: bool) -> None:
    """INS-6: one segment, any segments, parts of one; what two servers could read differently never matches."""
    assert request_allowed(rule(pattern), "GET", path.encode()) is allowed


def test_methods() -> None:
    """INS-6: case counts, as in HTTP; a rule without limits lets all through."""
    assert request_allowed(rule(methods=("GET", "HEAD")), "HEAD", b"/")
    assert not request_allowed(rule(methods=("GET",)), "POST", b"/")
    assert not request_allowed(rule(methods=("GET",)), "get", b"/")
    assert request_allowed(None, "POST", b"/")
    assert request_allowed(rule(), "POST", b"/../x")


def test_a_path_of_many_segments_costs_no_stack_and_little_time() -> None:
    """INS-6: patterns with several `**` against the longest path a task can send: no recursion, no explosion."""
    many = b"/a" * 4000
    assert not request_allowed(rule("/**/a/**/a/**/a/**/b"), "GET", many)
    assert request_allowed(rule("/**/a/**/a/**"), "GET", many)


@pytest.mark.parametrize(
    ("value", "allowed"), [(b"DELETE", False), (b" delete ", False), (b"GET", True), (b"get", True)]
)
def test_a_header_that_overrides_the_method_counts_as_it(value: bytes, allowed: bool) -> None:
    """INS-6: a GET that asks the server to take it for a DELETE is one, to a rule with methods."""
    for name in (b"x-http-method-override", b"x_http_method-override", b"x-http_method"):
        assert name in OVERRIDES
        assert request_allowed(rule(methods=("GET",)), "GET", b"/", [(name, value)]) is allowed
        assert request_allowed(rule("/**"), "GET", b"/", [(name, value)])


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(b"/evil", False), (b"https://a.test/repos/x", False), (b"/repos/../evil", False), (b"/repos/x?y", True)],
)
def test_a_header_that_overrides_the_target_counts_as_it(value: bytes, allowed: bool) -> None:
    """INS-6: servers that rewrite take the path from such a header; both must be what the rule names."""
    for name in (b"x-original-url", b"x-rewrite-url", b"x_original_url"):
        assert name in OVERRIDES
        assert request_allowed(rule("/repos/**"), "GET", b"/repos/x", [(name, value)]) is allowed
        assert request_allowed(rule(methods=("GET",)), "GET", b"/repos/x", [(name, value)])
