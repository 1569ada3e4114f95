"""A joined policy: everything that decides for one task, frozen (POL-8).

Made by `layers.join`, carried between processes by `snapshot`, read by `decide`. Nothing in it refers to a file, a
clock or the network, and nothing a task does changes it.
"""

from __future__ import annotations

from tidegate.model.address_class import Admission, Modes
from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.model.rule import Rule
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.index import RuleIndex
from tidegate.policy.rows import row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.policy.index import DeniedLiterals
    from tidegate.policy.rows import Row

NO_PROFILE = "no profile"


class Policy(Value):
    """A frozen policy.

    `default` is what a host gets that no rule matches: ask or deny, or allow under the profile `audit`;
    `default_source` says where that comes from. `closed_phases` allow nothing that no rule names and ask for nothing
    (POL-7). `modes` is what admission after resolving needs (ADR-2). `tls` is `any` or `strict`; `upstream_resolve` is
    `check` or `skip` (ADR-5). `setup` is the command of the install phase, empty where there is none. `notes` are
    lines for people about what the join left out. `files` is `strict`, `normal`, or '' where nobody has said (HLD-15).
    `never_inspected` are rows that name hosts whose TLS is not read (INS-9); verdict and phase mean nothing in them.
    `bounds` are rows whose limits hold for what they match, whatever rule lets it through.
    `guarded` are (host, port) of model services of an agent: what it asks there is looked at (INS-8). `registries` is
    `read` or `tunnel`, for people: the rules of presets have it in their limits (INS-7).
    """

    index: RuleIndex
    default: Verdict
    default_source: str
    profile: str | None = None
    closed_phases: frozenset[Phase] = frozenset()
    modes: Modes = Modes()
    tls: str = "any"
    upstream_resolve: str = "check"
    limits: Limits = DEFAULT_LIMITS
    setup: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: str = ""
    never_inspected: tuple[Row, ...] = ()
    bounds: tuple[Row, ...] = ()
    guarded: tuple[tuple[str, int], ...] = ()
    registries: str = "read"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, in the order of their layers."""
        return tuple(self.index.rules())

    @property
    def private(self) -> Admission:
        """What admits private addresses."""
        return self.modes.private

    @property
    def own(self) -> Admission:
        """What admits addresses of this machine."""
        return self.modes.own

    @property
    def protected_ports(self) -> frozenset[int]:
        """Ports of this machine that the policy protects, beside those of the surroundings."""
        return self.modes.protected_ports

    @property
    def locked(self) -> bool:
        """Whether layers above could only deny."""
        return self.modes.locked

    def denied_literals(self, phase: Phase) -> DeniedLiterals:
        """Return the deny rules of a phase that name an address, by its packed bytes (for addresses.admit)."""
        return self.index.phase(phase).denied_literals


def make_policy(
    rows: Iterable[Row | Rule] = (),
    *,
    default: Verdict = Verdict.DENY,
    default_source: str = NO_PROFILE,
    profile: str | None = None,
    closed_phases: frozenset[Phase] = frozenset(),
    private: Admission = Admission.EXACT_HOST_PORT,
    own: Admission = Admission.EXACT_HOST_PORT,
    protected_ports: Iterable[int] = (),
    locked: bool = False,
    tls: str = "any",
    upstream_resolve: str = "check",
    limits: Limits = DEFAULT_LIMITS,
    setup: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    files: str = "",
    never_inspected: tuple[Row, ...] = (),
    bounds: tuple[Row, ...] = (),
    guarded: tuple[tuple[str, int], ...] = (),
    registries: str = "read",
) -> Policy:
    """Return a policy with these rules (rows, or Rule objects); everything left out is the strictest native default."""
    return Policy(
        RuleIndex(tuple(row_of(row) if isinstance(row, Rule) else row for row in rows)),
        default,
        default_source,
        profile,
        closed_phases,
        Modes(private, own, frozenset(protected_ports), locked),
        tls,
        upstream_resolve,
        limits,
        setup,
        notes,
        files,
        never_inspected,
        bounds,
        guarded,
        registries,
    )
