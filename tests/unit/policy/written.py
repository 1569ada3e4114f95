"""Short ways to write policies and decisions in tests of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.model.destination import Destination, parse_authority
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.rows import rule_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.decision import Decision
    from tidegate.policy.rows import Row


def row(
    text: str,
    verdict: Verdict = Verdict.ALLOW,
    phase: Phase = Phase.RUNTIME,
    origin: Origin = Origin.WRITTEN,
    layer: Layer = Layer.FOLDER,
) -> Row:
    """Return the row of a rule whose source is its own text."""
    return rule_row(text, verdict, phase, "policy", f"at {text}", origin, layer)


def policy(allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = (), **fields: Any) -> Policy:
    """Return a policy with these runtime rules; the default is deny."""
    rows = [row(text) for text in allow]
    rows += [row(text, Verdict.ASK) for text in ask]
    rows += [row(text, Verdict.DENY) for text in deny]
    return make_policy(rows, **fields)


def to(text: str) -> Destination:
    """Return the destination of `host[:port]`; the port is 443 when absent."""
    return parse_authority(text, 443)


def say(said: Policy, text: str, phase: Phase = Phase.RUNTIME) -> Decision:
    """Return what a policy says of `host[:port]`."""
    return decide(said, to(text), phase)
