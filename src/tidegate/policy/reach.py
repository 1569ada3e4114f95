"""Whether a name could be reached at all: what the resolver of a task must know before there is a port (HLD-6).

A name is worth an address when some port of it could be allowed or asked. `decide` has the last word on each
connection; here it is only decided whether there can be one. Costs look-ups of the name's own rules, whatever the
number of others (POL-4).
"""

from __future__ import annotations

from tidegate.model.verdict import Verdict
from tidegate.policy.never_names import NEVER_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.host import Host
    from tidegate.model.verdict import Phase
    from tidegate.policy.policy import Policy

_PORTS = 65535
_ANY_PORT = -1  # no port at all: only rules for any port match it


def could_reach(policy: Policy, host: Host, phase: Phase) -> bool:
    """Whether `decide` gives allow or ask for this name on at least one port. An address is no name: False."""
    name = host.text
    if host.packed is not None or name in NEVER_NAMES:
        return False
    index = policy.index.phase(phase)
    denies, passes = index.denies, index.passes
    if denies.find(name, _ANY_PORT) is not None:
        return False
    denied = denies.ports(name, literal=False)
    if len(denied) >= _PORTS:
        return False
    if policy.default is not Verdict.DENY and phase not in policy.closed_phases:
        return True
    return passes.find(name, _ANY_PORT) is not None or not passes.ports(name, literal=False) <= denied
