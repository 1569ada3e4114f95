"""What one policy lets through that another does not (POL-14), found by asking both, not by comparing texts.

Which rules match a name depends on three things only: whether the name itself is written in a rule, whether its parent
stands behind a `*.`, and which of its suffixes stand behind a `**.`. So all names fall into finitely many classes, and
one name of each class stands for it: every written name, one label below each written suffix, two labels below it, and
a name that no rule knows. The same holds for ports and addresses. Both policies decide each of these, and the result
is exact: nothing that B lets through is missed, and a wildcard's exceptions are named.

"More" is deny < ask < allow, and with the same verdict: looser limits, or addresses of more classes admitted.

What it does not do: it does not say what A lets through beyond B (swap them), nor compare bounds of the gate.
"""

from __future__ import annotations

from _socket import AF_INET, inet_ntop

from tidegate.model.address_class import Admission
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.host import Host
from tidegate.model.rule import NO_LIMITS, Origin, Rule, Shape
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.index import Matcher, packed_literal
from tidegate.policy.policy import Policy
from tidegate.policy.together import more_requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    _Change: TypeAlias = tuple[Verdict, Verdict, str, str, str]  # before, after, rule, source, also

_WEIGHT = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}
_FRESH = "unnamed"
_OTHER_PORTS = " (other ports)"


class Difference(Value):
    """Hosts for which one rule (or the default) of B says more than A did.

    `hosts` are patterns, each with a port where only some ports are meant; `exceptions` are hosts inside them for which
    B says no more than A. `rule` is the text of B's rule, '' for its default, and `source` its place. `also` says what
    more it is where both verdicts are the same.
    """

    phase: Phase
    before: Verdict
    after: Verdict
    rule: str
    source: str
    hosts: tuple[str, ...]
    exceptions: tuple[str, ...] = ()
    also: str = ""

    def __str__(self) -> str:
        by = f"rule {self.rule!r}, {self.source}" if self.rule else self.source
        change = self.also or f"{self.before.value} → {self.after.value}"
        but = f" but {_some(self.exceptions)}" if self.exceptions else ""
        return f"{self.phase.value}: {_some(self.hosts)}{but}: {change} ({by})"


def _some(texts: tuple[str, ...], most: int = 8) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


class PolicyDiff(Value):
    """What B lets through that A does not: by host, and by settings that concern every host."""

    hosts: tuple[Difference, ...]
    settings: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.hosts or self.settings)


class _Class(Value):
    """A class of hosts: the pattern that names it and one host that stands for it."""

    pattern: str
    host: Host


def diff(before: Policy, after: Policy) -> PolicyDiff:
    """Return what `after` lets through that `before` does not."""
    found: list[Difference] = []
    for phase in Phase:
        found.extend(_phase(before, after, phase))
    return PolicyDiff(tuple(found), tuple(_settings(before, after)))


def _phase(before: Policy, after: Policy, phase: Phase) -> Iterator[Difference]:
    matchers = [
        matcher
        for policy in (before, after)
        for matcher in (policy.index.phase(phase).denies, policy.index.phase(phase).passes)
    ]
    groups: dict[_Change, list[str]] = {}
    same: list[str] = []
    for hosts in _classes(matchers):
        literal = hosts.host.packed is not None
        ports = sorted(set().union(*(matcher.ports(hosts.host.text, literal=literal) for matcher in matchers)))
        other = next(port for port in range(65535, 0, -1) if port not in ports)
        by_change: dict[_Change | None, list[str]] = {}
        for port in (*ports, other):
            change = _more(before, after, Destination(hosts.host, port), phase)
            text = f"{hosts.pattern}:{port}" if port != other else hosts.pattern + _OTHER_PORTS
            by_change.setdefault(change, []).append(text)
        for change, texts in by_change.items():
            said = same if change is None else groups.setdefault(change, [])
            said.extend([hosts.pattern] if len(by_change) == 1 else texts)
    for (was, now, rule, source, also), patterns in groups.items():
        kept = [pattern for pattern in patterns if not _inside(pattern, patterns)]
        exceptions = [pattern for pattern in same if _inside(pattern, kept)]
        kept += [pattern for pattern in patterns if pattern not in kept and _inside(pattern, exceptions)]
        yield Difference(phase, was, now, rule, source, tuple(kept), tuple(exceptions), also)


def _more(before: Policy, after: Policy, destination: Destination, phase: Phase) -> _Change | None:
    was = decide(before, destination, phase)
    now = decide(after, destination, phase)
    also = ""
    if _WEIGHT[now.verdict] < _WEIGHT[was.verdict] or now.verdict is Verdict.DENY:
        return None
    if now.verdict is was.verdict:
        also = ", ".join((*_looser_limits(was, now), *_admits_more(before, was, after, now)))
        if not also:
            return None
    return was.verdict, now.verdict, now.rule_text, now.source, also


def _looser_limits(was: Decision, now: Decision) -> Iterator[str]:
    old = was.rule.limits if was.rule is not None else NO_LIMITS
    new = now.rule.limits if now.rule is not None else NO_LIMITS
    yield from more_requests((*old.requests, *was.bounds), (*new.requests, *now.bounds))
    for before, after, name in (
        (old.bytes_up, new.bytes_up, "bytes up"),
        (old.connections_per_minute, new.connections_per_minute, "connections per minute"),
    ):
        if before is not None and (after is None or after > before):
            yield f"more {name}"


def _admits_more(before: Policy, was: Decision, after: Policy, now: Decision) -> Iterator[str]:
    old = _admits(before, was.rule)
    for name in _admits(after, now.rule):
        if name not in old:
            yield f"may lead to {name} addresses"


def _admits(policy: Policy, rule: Rule | None) -> tuple[str, ...]:
    """Return the classes beside public that a governing rule admits; the same test as in addresses.admission."""
    if rule is None or rule.origin is not Origin.WRITTEN or rule.shape not in {Shape.EXACT, Shape.LITERAL}:
        return ()
    exact_port = rule.port is not None
    private = policy.private is Admission.EXACT_HOST or (policy.private is Admission.EXACT_HOST_PORT and exact_port)
    own = policy.own is Admission.EXACT_HOST_PORT and exact_port
    return (*(("private",) if private else ()), *(("own",) if own else ()))


def _settings(before: Policy, after: Policy) -> Iterator[str]:
    if before.tls == "strict" and after.tls != "strict":
        yield "tls: strict → any: what is no TLS, or names no host, passes"
    if after.files not in {before.files, "strict"}:
        yield f"files: {before.files or 'by user'} → {after.files or 'by user'}: more may be written"
    if before.upstream_resolve == "check" and after.upstream_resolve == "skip":
        yield "upstream.resolve: check → skip: addresses of names are no longer checked here"
    freed = sorted(before.protected_ports - after.protected_ports)
    if freed:
        yield f"protected_ports: {', '.join(map(str, freed))} no longer protected"


def _classes(matchers: list[Matcher]) -> Iterator[_Class]:
    """Yield one host for each class that the rules of all matchers can tell apart."""
    exact = {key for matcher in matchers for key in matcher.exact}
    suffixes = {key for matcher in matchers for key in (*matcher.one, *matcher.deep)}
    label = _FRESH
    while any(key == label or key.startswith(f"{label}.") for key in exact | suffixes):
        label += "x"
    for key in sorted(exact):
        if ":" in key or key.rpartition(".")[2].isdigit():
            packed = packed_literal(key)
            yield _Class(f"[{key}]" if ":" in key else key, Host(key, packed))
        else:
            yield _Class(key, Host(key))
    for key in sorted(suffixes):
        yield _Class(f"*.{key}", Host(f"{label}.{key}"))
        yield _Class(f"**.{key}", Host(f"{label}.{label}.{key}"))
    yield _Class("*", Host(label))
    yield _Class("every other public address", _fresh_literal(exact))


def _fresh_literal(known: set[str]) -> Host:
    number = 0x08080808
    while True:
        packed = number.to_bytes(4, "big")
        text = inet_ntop(AF_INET, packed)
        if text not in known:
            return Host(text, packed)
        number += 1


def _inside(pattern: str, others: list[str]) -> bool:
    """Whether what a pattern names is among the hosts of another one."""
    bare = pattern.removesuffix(_OTHER_PORTS)
    if ":" in bare.rpartition("]")[2]:
        bare = bare.rpartition(":")[0]
    return any(_below(bare, other) for other in others if other != pattern)


def _below(pattern: str, other: str) -> bool:
    if other == "*":
        return pattern != "*" and not pattern.startswith(("every", "[")) and not pattern.rpartition(".")[2].isdigit()
    if other[:3] == "**.":
        return pattern == other[1:] or (pattern != other and pattern.endswith(other[2:]))
    if other[:2] == "*.":
        head = pattern.removesuffix(other[1:])
        return head != pattern and "." not in head and "*" not in head
    return False
