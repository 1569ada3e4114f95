"""What a policy says of a destination before anything is resolved: stage one of POL-5.

The order is the whole design:

1. names of cloud metadata are never allowed;
2. any deny rule that matches denies, whatever layer it is from;
3. the most specific allow or ask rule governs: exact, `*.x`, `**` by longest suffix, `*`, each with a port before
   without;
4. a closed phase denies, and an address that no rule names is refused (ADR-6);
5. the policy's default.

Addresses are judged by addresses.admit, once they are known. A literal destination has its address already, so its
decision goes through `admit` at once, whatever the verdict: `*` matches every literal here, and admits only public ones
there.
"""

from __future__ import annotations

from tidegate.model.decision import NO_RULE_NAME, Decision
from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.model.rule import Origin, Rule, Shape
from tidegate.model.tools import ANY_TOOL, PLACE
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.never_names import NEVER_NAMES
from tidegate.policy.policy import Policy
from tidegate.policy.rows import LIMITS, PHASE, PORT, rule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.rule import Requests, Union

NEVER_SOURCE = "built in"


def decide(policy: Policy, destination: Destination, phase: Phase) -> Decision:
    """Return the decision of stage one; no look-up is made and none was needed."""
    decision = _decide(policy, destination, phase)
    if policy.bounds and decision.verdict is not Verdict.DENY:
        return decision.replace(bounds=bounds_of(policy, destination, phase))
    return decision


def bounds_of(policy: Policy, destination: Destination, phase: Phase) -> Requests:
    """Return what a policy holds a destination to, whatever rule lets it through (`Policy.bounds`)."""
    found: dict[Union, None] = {}
    for row in policy.bounds:
        limits = row[LIMITS]
        if limits is None or row[PHASE] != phase.value or row[PORT] not in {None, destination.port}:
            continue
        if matches_host(rule_of(row), destination):
            found.update(dict.fromkeys(limits[2]))
    return tuple(found)


def _decide(policy: Policy, destination: Destination, phase: Phase) -> Decision:
    host = destination.host
    name = host.text
    port = destination.port
    index = policy.index.phase(phase)
    if host.packed is None:
        if name in NEVER_NAMES:
            return Decision(
                Verdict.DENY, destination, phase, Reason.NEVER_ALLOWED, None, Reason.NEVER_ALLOWED.word, NEVER_SOURCE
            )
        denied = index.denies.find(name, port)
        rule = index.passes.find(name, port) if denied is None else None
    else:
        denied = index.denies.find_literal(name, port)
        rule = index.passes.find_literal(name, port) if denied is None else None
    if denied is not None:
        return Decision(Verdict.DENY, destination, phase, Reason.DENY_RULE, denied, denied.name, denied.source)
    if rule is None:
        return _by_default(policy, destination, phase)
    if rule.verdict is Verdict.ALLOW:
        return Decision(Verdict.ALLOW, destination, phase, Reason.ALLOWED, rule, rule.name, rule.source)
    # Among equals ask wins, so `--allow` changes nothing where the ask rule is already exact.
    exact = rule.port is not None and (rule.shape is Shape.EXACT or rule.shape is Shape.LITERAL)
    fix = "" if exact else _fix(policy, destination)
    return Decision(Verdict.ASK, destination, phase, Reason.WAITING, rule, rule.name, rule.source, fix=fix)


def also_matched(policy: Policy, destination: Destination, phase: Phase) -> tuple[tuple[Rule, str], ...]:
    """Return every rule that matches but does not govern, and why it lost. Reads all rules: not for the gate."""
    governing = decide(policy, destination, phase)
    lost = []
    for rule in policy.index.rules(phase):
        if rule is governing.rule or not matches_host(rule, destination):
            continue
        lost.append((rule, _why(rule, governing)))
    return tuple(lost)


def matches_host(rule: Rule, destination: Destination) -> bool:
    """Whether the host part of a rule covers the destination's host, whatever the ports."""
    host = destination.host
    name = host.text
    if rule.shape is Shape.ANY:
        return True
    if rule.shape is Shape.EXACT or rule.shape is Shape.LITERAL:
        return rule.key == name
    if host.packed is not None:
        return False
    if rule.shape is Shape.ONE_LABEL:
        return name.partition(".")[2] == rule.key
    return name.endswith("." + rule.key)


def _by_default(policy: Policy, destination: Destination, phase: Phase) -> Decision:
    literal = destination.host.packed is not None
    source = policy.default_source
    closed = phase in policy.closed_phases
    if policy.default is Verdict.ALLOW and not closed:
        return Decision(Verdict.ALLOW, destination, phase, Reason.ALLOWED_BY_DEFAULT, None, NO_RULE_NAME, source)
    fix = _fix(policy, destination)
    if policy.default is Verdict.ASK and not closed and not literal:
        return Decision(Verdict.ASK, destination, phase, Reason.WAITING, None, NO_RULE_NAME, source, fix=fix)
    if policy.index.phase(phase).passes.names(destination.host.text, literal=literal):
        reason = Reason.PORT_NOT_ALLOWED
    elif closed:
        reason = Reason.PHASE_CLOSED
    elif literal:
        reason = Reason.LITERAL_NOT_NAMED
    else:
        reason = Reason.NO_RULE
    return Decision(Verdict.DENY, destination, phase, reason, None, NO_RULE_NAME, source, fix=fix)


def _fix(policy: Policy, destination: Destination) -> str:
    if policy.modes.locked or not destination.host.fits_a_rule:
        return ""
    # At that name a task finds its tools, and nobody else answers there: a rule for it would reach nothing.
    return ANY_TOOL if destination == PLACE else f"--allow {destination}"


_SPECIFICITY = {Shape.EXACT: 4, Shape.LITERAL: 4, Shape.ONE_LABEL: 3, Shape.DEEP: 2, Shape.ANY: 1}


def _why(rule: Rule, governing: Decision) -> str:
    """Say why a rule that covers the host does not govern."""
    winner = governing.rule
    if rule.port is not None and rule.port != governing.destination.port:
        return f"it is for port {rule.port}"
    if governing.reason is Reason.NEVER_ALLOWED:
        return "cloud metadata is never reached, by any rule"
    assert winner is not None  # a rule for this port matches, so some rule governs
    if winner.verdict is Verdict.DENY and rule.verdict is not Verdict.DENY:
        return "a deny rule wins over every allow, whatever layer it is from"
    key = (_SPECIFICITY[rule.shape], len(rule.key), rule.port is not None)
    if key != (_SPECIFICITY[winner.shape], len(winner.key), winner.port is not None):
        return f"{winner.text} is more specific"
    if rule.verdict is not winner.verdict:
        return "among equals ask wins"
    if rule.origin is not winner.origin:
        brought = "a harness" if rule.origin is Origin.HARNESS else "a preset"
        winning = "one of a harness" if winner.origin is Origin.HARNESS else "a rule that a person wrote"
        return f"{winning} wins over one that came with {brought}"
    if rule.layer is not winner.layer:
        return "the layer nearest the command line wins"
    if rule.limits.requests:
        return "it counts too: what one of them lets pass, passes"
    return "the same rule stands again later"
