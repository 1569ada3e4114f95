"""Rules as rows: plain tuples that marshal can carry, turned into `Rule` objects only when one is looked at.

Making 10,000 Rule objects takes longer than everything else at start together, and a task meets a handful of them. So
layers, the joined policy and its snapshot hold rows; the index hands out a Rule when a decision needs one.

The columns are the fields of model.rule.Rule, in order, with enums as their values: text, shape, key, port, verdict,
phase, name, source, origin, layer, limits (None, or the three fields of RuleLimits).
"""

from __future__ import annotations

from tidegate.model.rule import NO_LIMITS, Layer, Origin, Rule, RuleLimits, Shape
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.rules import read_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from tidegate.model.rule import Requests

    LimitsRow: TypeAlias = tuple[int | None, int | None, Requests]
    Row: TypeAlias = tuple[str, str, str, int | None, str, str, str, str, int, int, LimitsRow | None]

SHAPE: Final = 1
KEY: Final = 2
PORT: Final = 3
VERDICT: Final = 4
PHASE: Final = 5
SOURCE: Final = 7
ORIGIN: Final = 8
LAYER: Final = 9
LIMITS: Final = 10

# Reading `.value` of a member costs a Python call; these are looked up ten thousand times at start.
_SHAPE_VALUE = {shape: shape.value for shape in Shape}
_SHAPES = {shape.value: shape for shape in Shape}
_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_PHASES = {phase.value: phase for phase in Phase}
_ORIGINS = tuple(Origin)
_LAYERS = tuple(Layer)


def rule_row(
    text: str,
    verdict: Verdict,
    phase: Phase,
    name: str,
    source: str,
    origin: Origin,
    layer: Layer,
    limits: RuleLimits = NO_LIMITS,
) -> Row:
    """Parse `text` and return the row of the rule it writes.

    Raises:
        RuleError: when it is no rule.
    """
    canonical, shape, key, port = read_rule(text)
    return (
        canonical,
        _SHAPE_VALUE[shape],
        key,
        port,
        verdict.value,
        phase.value,
        name,
        source,
        int(origin),
        int(layer),
        None if limits is NO_LIMITS else limits_row(limits),
    )


def limits_row(limits: RuleLimits) -> LimitsRow | None:
    """Return the limits of a rule as plain data; None where it has none."""
    if limits == NO_LIMITS:
        return None
    return (limits.bytes_up, limits.connections_per_minute, limits.requests)


def row_of(rule: Rule) -> Row:
    """Return the row of a rule."""
    return (
        rule.text,
        rule.shape.value,
        rule.key,
        rule.port,
        rule.verdict.value,
        rule.phase.value,
        rule.name,
        rule.source,
        int(rule.origin),
        int(rule.layer),
        limits_row(rule.limits),
    )


def rule_of(row: Row) -> Rule:
    """Return the rule that a row holds."""
    text, shape, key, port, verdict, phase, name, source, origin, layer, limits = row
    return Rule(
        text,
        _SHAPES[shape],
        key,
        port,
        _VERDICTS[verdict],
        _PHASES[phase],
        name,
        source,
        _ORIGINS[origin],
        _LAYERS[layer],
        NO_LIMITS if limits is None else RuleLimits(*limits),
    )
