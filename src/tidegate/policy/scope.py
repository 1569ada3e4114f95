"""Which hosts a policy wants read inside TLS, and what an authority for them may sign (INS-1, INS-9).

Rules of the file:

* A rule with methods, paths or `git` asks for inspection of what it governs, and so does a preset of registries, which
  are read-only (INS-7), a secret of its hosts (`widened`), and an agent of its model's (`guarded`, INS-8). Nothing else
  does.
* The scope of an authority is made from the rules of the joined policy, once, when the task starts: what comes later
  is not covered, and is refused instead of being let through unread.
* A host under `inspect: never` is never terminated. Where its rule has methods or paths too, no tunnel is opened: they
  could not be kept (the gate says so).
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.model.rule import GIT, REGISTRY, Origin, Shape
from tidegate.model.value import Value
from tidegate.model.verdict import Verdict
from tidegate.policy.alternatives import narrows
from tidegate.policy.decide import matches_host
from tidegate.policy.rows import KEY, LIMITS, ORIGIN, PORT, rule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.decision import Decision
    from tidegate.model.host import Host
    from tidegate.model.rule import Union
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


def why_read(decision: Decision, policy: Policy) -> tuple[bool, str]:
    """Return whether a connection under this decision is read inside TLS, and one clause for people that says why."""
    if decision.verdict is Verdict.DENY:
        return False, "it is refused"
    exempt = is_exempt(decision.destination, policy)
    if is_guarded(decision.destination, policy) and not narrows(decision):
        if exempt:
            return False, "'inspect: never' names it, so what the agent asks of its model is not looked at: a tunnel"
        return True, "it is the agent's model service: a call that has it reach out for the task is refused"
    if not narrows(decision):
        return False, f"a tunnel, its bytes are not read; {_why_not(decision, policy, exempt=exempt)}"
    kinds = {kind for union in _unions(decision) for kind, _, _ in union}
    if kinds == {REGISTRY}:
        what = "package registries are read-only, which is judged inside TLS"
    elif GIT in kinds:
        what = "what git may do there is judged inside TLS, and what is no HTTPS (ssh) is refused"
    else:
        what = "its rule names methods or paths, which are judged inside TLS"
    if exempt:
        return False, f"'inspect: never' names it, and {what}: a tunnel is refused"
    return True, what


def _unions(decision: Decision) -> tuple[Union, ...]:
    return (*(decision.rule.limits.requests if decision.rule is not None else ()), *decision.bounds)


def _why_not(decision: Decision, policy: Policy, *, exempt: bool) -> str:
    rule = decision.rule
    if rule is None:
        return "no method or path is named"
    if rule.origin is Origin.PRESET:
        return "'inspect: never' names it" if exempt else "registries are not read ('registries: tunnel')"
    where = rule.key, decision.destination.port
    if any(
        row[ORIGIN] == Origin.PRESET and row[LIMITS] and (row[KEY], row[PORT]) == where for row in policy.index.rows
    ):
        return f"your rule {rule.text} ({rule.source}) names no methods, and lifts the read-only table of {rule.key}"
    return "'inspect: never' names it" if exempt else "no method or path is named"


def is_read(decision: Decision, policy: Policy) -> bool:
    """Whether a connection under this decision is terminated and read."""
    return (
        (narrows(decision) or is_guarded(decision.destination, policy))
        and decision.verdict is not Verdict.DENY
        and not is_exempt(decision.destination, policy)
    )


def is_guarded(destination: Destination, policy: Policy) -> bool:
    """Whether it is a model service whose calls are looked at, unless it is exempt (INS-8)."""
    return (destination.host.text, destination.port) in policy.guarded


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
    for rule in (*policy.index.limited(), *map(rule_of, policy.bounds)):
        if rule.verdict is Verdict.DENY or not rule.limits.requests:
            continue
        if rule.shape is Shape.EXACT:
            names[rule.key] = None
        elif rule.shape is Shape.LITERAL:
            literals[rule.key] = None
        elif rule.shape is Shape.ANY:
            everything = True
        else:
            suffixes[rule.key] = None
    for host, port in policy.guarded:
        if not is_exempt(Destination(canonical_host(host), port), policy):
            names[host] = None
    return Scope(tuple(names), tuple(suffixes), tuple(literals), everything)


def covers(scope: Scope, host: Host) -> bool:
    """Whether a host is inspected under this scope."""
    if host.packed is not None:
        return host.text in scope.literals
    name = host.text
    if scope.everything or name in scope.names or name in scope.suffixes:
        return True
    dot = name.find(".") + 1
    while dot:
        if name[dot:] in scope.suffixes:
            return True
        dot = name.find(".", dot) + 1
    return False


def widened(scope: Scope, hosts: Iterable[str]) -> Scope:
    """Return a scope with canonical names or bare addresses beside what it has: the hosts of secrets (INS-5)."""
    found = [canonical_host(host) for host in hosts]
    names = [host.text for host in found if host.packed is None]
    literals = [host.text for host in found if host.packed is not None]
    return scope.replace(
        names=tuple(dict.fromkeys((*scope.names, *names))),
        literals=tuple(dict.fromkeys((*scope.literals, *literals))),
    )
