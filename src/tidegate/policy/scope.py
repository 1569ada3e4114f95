"""Which hosts a policy wants read inside TLS, and what an authority for them may sign (INS-1, INS-9).

Rules of the file:

* A rule with methods or paths asks for inspection of what it governs, and so does a secret of its hosts (`widened`);
  nothing else does, and nothing by default.
* The scope of an authority is made from the rules of the joined policy, once, when the task starts: what comes later
  is not covered, and is refused instead of being let through unread.
* A host under `inspect: never` is never terminated. Where its rule has methods or paths too, no tunnel is opened: they
  could not be kept (the gate says so).
"""

from __future__ import annotations

from tidegate.model.host import canonical_host
from tidegate.model.rule import NO_LIMITS, Shape
from tidegate.model.value import Value
from tidegate.model.verdict import Verdict
from tidegate.policy.decide import matches_host
from tidegate.policy.rows import PORT, rule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.model.rule import Rule
    from tidegate.policy.policy import Policy


class Scope(Value):
    """What is inspected: `names` and everything below them in `suffixes`, `literals` as text without brackets.

    `everything` is set by a rule for `*`, which no list of names can express.
    """

    names: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.names or self.suffixes or self.literals or self.everything)


def wants_reading(rule: Rule | None) -> bool:
    """Whether what this rule governs can only be judged inside TLS."""
    return rule is not None and rule.limits is not NO_LIMITS and bool(rule.limits.methods or rule.limits.paths)


def why_read(decision: Decision, policy: Policy) -> tuple[bool, str]:
    """Return whether a connection under this decision is read inside TLS, and one clause for people that says why."""
    if not wants_reading(decision.rule):
        return False, "a tunnel, its bytes are not read; no method or path is named"
    if is_exempt(decision.destination, policy):
        return False, "'inspect: never' names it, so its rule's methods and paths cannot be kept: a tunnel is refused"
    if decision.verdict is Verdict.DENY:
        return False, "it is refused"
    return True, "its rule names methods or paths, which are judged inside TLS"


def is_read(decision: Decision, policy: Policy) -> bool:
    """Whether a connection under this decision is terminated and read."""
    return (
        wants_reading(decision.rule)
        and decision.verdict is not Verdict.DENY
        and not is_exempt(decision.destination, policy)
    )


def is_exempt(destination: Destination, policy: Policy) -> bool:
    """Whether the policy says `inspect: never` of it (INS-9)."""
    return any(
        row[PORT] in {None, destination.port} and matches_host(rule_of(row), destination)
        for row in policy.never_inspected
    )


def scope_of(policy: Policy) -> Scope:
    """Return what a policy may ask to have inspected, in any phase."""
    names: dict[str, None] = {}
    suffixes: dict[str, None] = {}
    literals: dict[str, None] = {}
    everything = False
    for rule in policy.index.limited():
        if rule.verdict is Verdict.DENY or not wants_reading(rule):
            continue
        if rule.shape is Shape.EXACT:
            names[rule.key] = None
        elif rule.shape is Shape.LITERAL:
            literals[rule.key] = None
        elif rule.shape is Shape.ANY:
            everything = True
        else:
            suffixes[rule.key] = None
    return Scope(tuple(names), tuple(suffixes), tuple(literals), everything)


def widened(scope: Scope, hosts: Iterable[str]) -> Scope:
    """Return a scope with canonical names or bare addresses beside what it has: the hosts of secrets (INS-5)."""
    found = [canonical_host(host) for host in hosts]
    names = [host.text for host in found if host.packed is None]
    literals = [host.text for host in found if host.packed is not None]
    return scope.replace(
        names=tuple(dict.fromkeys((*scope.names, *names))),
        literals=tuple(dict.fromkeys((*scope.literals, *literals))),
    )
