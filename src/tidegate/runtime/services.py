"""Services of this machine that a policy lets a task reach, and which are met inside, on its own loopback (HLD-10).

A rule like `localhost:5432` is of use to a program only where it can connect there, and inside `localhost` is the
task's own. So each such place leads to the gate where the task does not listen itself. What is met is what the gate
would admit: the same decision and the same admission (ADR-1, ADR-2), without looking anything up.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.holds.hold import GATE_PORT
from tidegate.holds.inside import MOST_MET
from tidegate.model.destination import Destination
from tidegate.model.host import Host
from tidegate.model.verdict import Verdict
from tidegate.policy.rows import KEY, PHASE, PORT, SHAPE, VERDICT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.model.verdict import Phase
    from tidegate.policy.policy import Policy
    from tidegate.policy.rows import Row

LOCALHOST = "localhost"
LOOPBACK = (b"\x7f\0\0\1", bytes(15) + b"\1")
_DENY = Verdict.DENY.value


class Services:
    """What one phase of a policy says of this machine's services.

    `met` are hosts and ports, in the order of the rules; `portless` the hosts of rules that name no port and so admit
    nothing; `more` counts those past MOST_MET.
    """

    def __init__(self, policy: Policy, phase: Phase, published: Iterable[int] = ()) -> None:
        own = frozenset(published)
        found: dict[tuple[str, int], None] = {}
        portless: dict[str, None] = {}
        for row in policy.index.rows:
            key, port = row[KEY], row[PORT]
            if row[PHASE] != phase.value or row[VERDICT] == _DENY or not is_loopback(row):
                continue
            if port is None:
                portless[key] = None
            elif port != GATE_PORT and _admitted(policy, phase, _host(key), port, own):
                found[key, port] = None
        self.met = tuple(found)[:MOST_MET]
        self.portless = tuple(portless)
        self.more = len(found) - len(self.met)

    def notes(self, *, inside: bool = True) -> list[str]:
        """What a person is told at the start of a task; `inside` says that services are met on its own loopback."""
        lines = []
        if self.met and inside:
            names = ", ".join(str(Destination(_host(host), port)) for host, port in self.met)
            lines.append(f"met inside by the gate, unless the command listens there itself: {names}")
        if self.more:
            lines.append(
                f"{self.more} more services of this machine are reached by the proxy only ({MOST_MET} are met inside)"
            )
        lines += [
            f"the rule {_host(host).bracketed} admits nothing: name the port, {_host(host).bracketed}:PORT"
            for host in self.portless
        ]
        return lines


def places(met: Sequence[tuple[str, int]]) -> dict[tuple[bytes, int], Destination]:
    """For each place of loopback, packed, the destination that it stands for; a literal's own before `localhost`'s."""
    found: dict[tuple[bytes, int], Destination] = {}
    for host, port in sorted(met, key=lambda one: one[0] == LOCALHOST):
        for packed in _addresses(host):
            found.setdefault((packed, port), Destination(_host(host), port))
    return found


def destinations(met: Sequence[tuple[str, int]]) -> list[Destination]:
    """What each of them is to the policy."""
    return [Destination(_host(host), port) for host, port in met]


def is_loopback(row: Row) -> bool:
    """Whether a rule names this machine's loopback."""
    shape, key = row[SHAPE], row[KEY]
    if shape == "literal":
        return key == "::1" or key.startswith("127.")
    return shape == "exact" and key == LOCALHOST


def _addresses(host: str) -> tuple[bytes, ...]:
    return LOOPBACK if host == LOCALHOST else (inet_pton(AF_INET6 if ":" in host else AF_INET, host),)


def _host(key: str) -> Host:
    return Host(key) if key == LOCALHOST else Host(key, _addresses(key)[0])


def _admitted(policy: Policy, phase: Phase, host: Host, port: int, own: frozenset[int]) -> bool:
    # Here, for they cost more than the look for such a rule, and most policies have none.
    from tidegate.addresses.admission import admit
    from tidegate.addresses.surroundings import Surroundings
    from tidegate.policy.decide import decide

    surroundings = Surroundings(protected_ports=own)
    decision = decide(policy, Destination(host, port), phase)
    denied = policy.denied_literals(phase)
    return admit(decision, _addresses(host.text), surroundings, policy.modes, denied).verdict is not Verdict.DENY
