"""A joined policy as text: each rule with what it covers, then what everything else gets, then the settings (B11)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.model.rule import GIT, NO_LIMITS, REGISTRY, Rule, Shape
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.git import ANY, repositories
from tidegate.policy.policy import Policy
from tidegate.policy.positions import on_screen
from tidegate.policy.reading import plain_number
from tidegate.policy.rows import rule_of
from tidegate.policy.setup_command import SHELL

if TYPE_CHECKING:
    from tidegate.model.rule import Alternative, Requests

_MOST_PATHS = 4  # that are named
_WIDEST = 48  # of the column of rules; a longer rule pushes its own line only


def coverage(rule: Rule) -> str:
    """Say in words what a rule covers, and what not."""
    port = "any port" if rule.port is None else f"port {rule.port}"
    if rule.shape is Shape.EXACT:
        what = "exactly this name"
    elif rule.shape is Shape.LITERAL:
        what = "exactly this address"
    elif rule.shape is Shape.ONE_LABEL:
        what = f"one label in front of {rule.key}, not {rule.key} itself"
    elif rule.shape is Shape.DEEP:
        what = f"every name below {rule.key}, not {rule.key} itself"
    else:
        what = "every name and every public address"
    limits = rule.limits
    bounds = ""
    if limits is not NO_LIMITS:
        if limits.bytes_up is not None:
            bounds += f", at most {limits.bytes_up} bytes up"
        if limits.connections_per_minute is not None:
            bounds += f", at most {limits.connections_per_minute} connections a minute"
        if limits.requests:
            bounds += f", {requests_in_words(limits.requests)}"
    return f"{what}, {port}{bounds}"


def requests_in_words(requests: Requests) -> str:
    """Say which requests pass."""
    return " and ".join("only " + " or ".join(_union_in_words(union)) for union in requests)


def _union_in_words(union: tuple[Alternative, ...]) -> list[str]:
    said = list(dict.fromkeys(_words(one) for one in union if one[0] != GIT))
    fetched, pushed = repositories(union)
    said += [f"git fetch{_of(' of', fetched)}"] if fetched else []
    return said + ([f"git push{_of(' to', pushed)}"] if pushed else [])


def _of(word: str, names: tuple[str, ...]) -> str:
    """Name the first of them; nothing where they are all there are."""
    return "" if ANY in names else f"{word} {', '.join(names[:_MOST_PATHS])}{' …' if len(names) > _MOST_PATHS else ''}"


def _words(alternative: Alternative) -> str:
    kind, methods, paths = alternative
    if kind == REGISTRY:
        return "what reads"
    return (", ".join(methods) or "any method") + (_of(" on", paths) if paths else "")


def otherwise(policy: Policy, phase: Phase) -> str:
    """Say what a destination gets in a phase that no rule matches."""
    if phase in policy.closed_phases:
        return "deny (the phase is closed: the policy names nothing in it)"
    verdict = policy.default
    if verdict is Verdict.ALLOW:
        return f"allow, and record ({policy.default_source})"
    return f"{verdict.value} ({policy.default_source})"


def settings(policy: Policy) -> list[tuple[str, str]]:
    """Return the settings in force, the ones at their default too."""
    ports = ", ".join(map(str, sorted(policy.protected_ports)))
    changed = [
        (f"limits.{name}", plain_number(getattr(policy.limits, name)))
        for name in Limits._fields
        if getattr(policy.limits, name) != getattr(DEFAULT_LIMITS, name)
    ]
    return [
        ("profile", policy.profile or "none"),
        ("private", policy.private.value),
        ("own", policy.own.value),
        ("tls", policy.tls),
        ("upstream.resolve", policy.upstream_resolve),
        ("protected_ports", ports or "none of the policy's"),
        ("files", policy.files or "strict as root, else normal"),
        ("registries", policy.registries),
        ("inspect.never", ", ".join(rule_of(row).text for row in policy.never_inspected) or "none"),
        ("locked", "true" if policy.locked else "false"),
        ("setup", set_up(policy)),
        *changed,
    ]


def set_up(policy: Policy) -> str:
    """Return the set-up command on one line: a text as it was written, arguments as a shell would take them."""
    words = policy.setup
    if not words:
        return "none"
    text = words[-1] if words[:-1] == SHELL else shlex.join(words)
    return on_screen(text.strip(), 500)


def _held(policy: Policy) -> list[Rule]:
    """Return what bounds hosts whatever rule lets them through, once for all phases (`git` of a whole policy)."""
    return list({(rule.text, rule.source): rule for rule in map(rule_of, policy.bounds)}.values())


def text_of(policy: Policy) -> list[str]:
    """Return the whole policy, a line each."""
    rules = policy.rules
    width = min(max((len(rule.text) for rule in rules), default=0), _WIDEST)
    lines = []
    for phase in Phase:
        lines.append(phase.value)
        lines += [
            f"  {rule.verdict.value:<5}  {rule.text:<{width}}  {coverage(rule)}  [{rule.name}, {rule.source}]"
            for rule in rules
            if rule.phase is phase
        ]
        lines.append(f"  everything else: {otherwise(policy, phase)}")
    held = _held(policy)
    if held:
        lines.append("held, whatever rule lets them through")
        lines += [f"  {rule.text:<{width}}  {coverage(rule)}  [{rule.name}, {rule.source}]" for rule in held]
    lines.append("settings")
    lines += [f"  {name:<17}  {value}" for name, value in settings(policy)]
    return lines


def json_of(policy: Policy) -> dict[str, Any]:
    """Return the whole policy as plain data."""
    return {
        "profile": policy.profile,
        "default": policy.default.value,
        "default_source": policy.default_source,
        "closed_phases": sorted(phase.value for phase in policy.closed_phases),
        "settings": dict(settings(policy)),
        "setup": list(policy.setup),
        "rules": [
            {
                "phase": rule.phase.value,
                "verdict": rule.verdict.value,
                "rule": rule.text,
                "name": rule.name,
                "source": rule.source,
                "covers": coverage(rule),
            }
            for rule in policy.rules
        ],
        "held": [
            {"rule": rule.text, "name": rule.name, "source": rule.source, "covers": coverage(rule)}
            for rule in _held(policy)
        ],
    }
