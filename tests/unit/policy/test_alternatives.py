"""Methods and paths of rules, and what only reads of registries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tidegate.model.decision import Decision
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import GIT, REGISTRY, Rule, RuleLimits, Shape, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.alternatives import narrows, not_read, posts_only, why_refused
from tidegate.policy.paths import OVERRIDES
from tidegate.policy.together import either

if TYPE_CHECKING:
    from tidegate.model.rule import Requests


def under(requests: Requests, bounds: Requests = ()) -> Decision:
    """Return a decision by a rule with these requests."""
    limits = RuleLimits(requests=requests)
    rule = Rule("a.test", Shape.EXACT, "a.test", None, Verdict.ALLOW, Phase.RUNTIME, "policy", "x:1:1", limits=limits)
    to = parse_authority("a.test:443")
    return Decision(Verdict.ALLOW, to, Phase.RUNTIME, Reason.ALLOWED, rule, "policy", "x:1:1", bounds=bounds)


def rule(*paths: str, methods: tuple[str, ...] = ()) -> Decision:
    """Return a decision by a rule with paths."""
    return under(only(methods, paths))


def request_allowed(decision: Decision, method: str, target: bytes, overrides: tuple = ()) -> bool:
    """Whether it passes."""
    return why_refused(decision, method, target, overrides) is None


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
        ("/**/x", "/evil#/x", False),
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
    assert not narrows(rule())
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
        assert request_allowed(rule(methods=("GET",)), "GET", b"/", ((name, value),)) is allowed
        assert request_allowed(rule("/**"), "GET", b"/", ((name, value),))


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(b"/evil", False), (b"https://a.test/repos/x", False), (b"/repos/../evil", False), (b"/repos/x?y", True)],
)
def test_a_header_that_overrides_the_target_counts_as_it(value: bytes, allowed: bool) -> None:
    """INS-6: servers that rewrite take the path from such a header; both must be what the rule names."""
    for name in (b"x-original-url", b"x-rewrite-url", b"x_original_url"):
        assert name in OVERRIDES
        assert request_allowed(rule("/repos/**"), "GET", b"/repos/x", ((name, value),)) is allowed
        assert request_allowed(rule(methods=("GET",)), "GET", b"/repos/x", ((name, value),))


def test_a_parameter_that_overrides_the_method_counts_as_it() -> None:
    """INS-6: also in the query of a target that a header says; a rule of paths alone has nothing against it."""
    assert not request_allowed(rule(methods=("GET", "POST")), "POST", b"/x?_method=DELETE")
    assert request_allowed(rule(methods=("GET", "POST")), "POST", b"/x?_method=get")
    assert request_allowed(rule("/x"), "POST", b"/x?_method=DELETE")
    said = ((b"x-original-url", b"/x?_method=DELETE"),)
    assert not request_allowed(rule(methods=("GET",)), "GET", b"/x", said)


def test_where_a_form_could_ask_for_more() -> None:
    """INS-6: where PUT, PATCH or DELETE is refused and by methods; neither for registries nor for git."""
    assert posts_only(rule(methods=("GET", "POST")), b"/x")
    assert posts_only(rule(methods=("POST", "PUT", "PATCH")), b"/x")
    assert not posts_only(rule(methods=("POST", "PUT", "PATCH", "DELETE")), b"/x")
    assert not posts_only(rule("/x"), b"/x")
    assert not posts_only(under(()), b"/x")
    assert not posts_only(under(READS), b"/-/audit")


READS: Requests = (((REGISTRY, ("GET", "HEAD"), ()), (REGISTRY, ("POST",), ("/-/audit",))),)


@pytest.mark.parametrize(
    ("method", "target", "reason"),
    [
        ("GET", b"/@types%2fnode", None),
        ("HEAD", b"/x/-/x-1.0.0.tgz?a=/../b", None),
        ("GET", b"/simple/../six/", None),
        ("POST", b"/-/audit", None),
        ("POST", b"/-/audit?x", None),
        ("POST", b"/-/audit/", Reason.REGISTRY_READ_ONLY),
        ("POST", b"/-/%61udit", None),
        ("POST", b"/-/audit%2f", Reason.REGISTRY_READ_ONLY),
        ("POST", b"/-/audits", Reason.REGISTRY_READ_ONLY),
        ("PUT", b"/-/audit", Reason.REGISTRY_READ_ONLY),
        ("PUT", b"/@types%2fnode", Reason.REGISTRY_READ_ONLY),
        ("DELETE", b"/x/-rev/1", Reason.REGISTRY_READ_ONLY),
        ("PATCH", b"/", Reason.REGISTRY_READ_ONLY),
        ("get", b"/", Reason.REGISTRY_READ_ONLY),
    ],
)
def test_a_registry_is_read_only(method: str, target: bytes, reason: Reason | None) -> None:
    """INS-7, B127, B128: what reads passes on any path, also on one with two readings; a POST on the one that reads."""
    assert why_refused(under(READS), method, target) is reason


@pytest.mark.parametrize("value", [b"PUT", b"DELETE", b"put"])
def test_a_registry_is_told_no_other_method_in_a_header(value: bytes) -> None:
    """INS-7: a GET that asks to be taken for a PUT is refused; one that says what it is passes."""
    assert why_refused(under(READS), "GET", b"/x", [(b"x-http-method-override", value)]) is Reason.REGISTRY_READ_ONLY
    assert why_refused(under(READS), "GET", b"/x", [(b"x-http-method-override", b"HEAD")]) is None
    assert why_refused(under(READS), "POST", b"/-/audit", [(b"x-original-url", b"/x")]) is Reason.REGISTRY_READ_ONLY


def test_a_websocket_reads_nothing_of_a_registry() -> None:
    """INS-7: behind an accepted one nothing is read, so it would publish; where a rule names GET it is one (INS-6)."""
    assert why_refused(under(READS), "GET", b"/x", socket=True) is Reason.REGISTRY_READ_ONLY
    assert why_refused(under(only(("GET",))), "GET", b"/x", socket=True) is None
    assert why_refused(under(only(("GET",)), bounds=READS), "GET", b"/x", socket=True) is Reason.REGISTRY_READ_ONLY
    assert why_refused(under(either([READS, only(("GET",), ("/w",))])), "GET", b"/w", socket=True) is None


def test_what_reads_of_a_registry_has_no_body() -> None:
    """INS-7: a server that looks for none at a GET takes it for the next request; an audit's POST has one."""
    for method in ("GET", "HEAD"):
        assert why_refused(under(READS), method, b"/x", body=True) is Reason.REGISTRY_READ_ONLY
        assert why_refused(under(only((method,))), method, b"/x", body=True) is None
    assert why_refused(under(READS), "POST", b"/-/audit", body=True) is None
    asked = [(b"x-http-method-override", b"GET")]
    assert why_refused(under(READS), "POST", b"/-/audit", asked, body=True) is Reason.REGISTRY_READ_ONLY


def test_alternatives_add_up_and_bounds_cut_down() -> None:
    """INS-6: one alternative is enough, method and path of one and the same; every union has to agree."""
    both = either([only(("GET",), ("/a/**",)), only(("POST",), ("/b",))])
    said = {
        (method, path): request_allowed(under(both), method, path)
        for method in ("GET", "POST")
        for path in (b"/a/x", b"/b")
    }
    assert said == {("GET", b"/a/x"): True, ("GET", b"/b"): False, ("POST", b"/a/x"): False, ("POST", b"/b"): True}
    bound = under(both, bounds=only(("GET",)))
    assert request_allowed(bound, "GET", b"/a/x")
    assert why_refused(bound, "POST", b"/b") is Reason.METHOD_NOT_ALLOWED
    assert why_refused(under((), bounds=READS), "PUT", b"/") is Reason.REGISTRY_READ_ONLY


def test_a_thousand_alternatives_cost_as_little_as_one() -> None:
    """INS-6: the patterns of all are one tree, and a request looks at its own segments only."""
    many: Requests = (tuple(("", ("GET",), (f"/repos/r{number}/**",)) for number in range(1000)),)
    decision = under(many)
    assert request_allowed(decision, "GET", b"/repos/r999/x")  # compiled here
    counted = 0

    def count(*_: object) -> None:
        nonlocal counted
        counted += 1

    sys.setprofile(count)
    try:
        passed = [why_refused(decision, "GET", path) is None for path in (b"/repos/r0/x", b"/repos/r1000/x")]
    finally:
        sys.setprofile(None)
    assert passed == [True, False]
    assert counted < 300


def test_why_nothing_passes_where_nothing_can_be_read() -> None:
    """INS-7, INS-9: the reason is that of what would have been judged."""
    git: Requests = (((GIT, ("GET",), ("/**",)),),)
    reasons = [not_read(under(requests)) for requests in (READS, git, only(("GET",)))]
    assert reasons == [Reason.REGISTRY_NOT_READ, Reason.GIT_READ_ONLY, Reason.METHOD_NOT_ALLOWED]
