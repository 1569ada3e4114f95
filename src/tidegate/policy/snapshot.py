"""A policy as plain data and back: what the front hands to the gate's process, and what a task's record keeps (POL-8).

Only None, bool, int, float, str, bytes and tuples of them, so that marshal and JSON can both carry it. The rules are
rows already; 10,000 of them are back in a few milliseconds, because nothing is made of them until it is looked at.

The data comes from this program and is trusted; what it does not do is judge it. FORMAT changes with its layout.
"""

from __future__ import annotations

from tidegate.model.address_class import Admission
from tidegate.model.limits import Limits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.policy import Policy, make_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 5


def to_plain(policy: Policy) -> tuple[Any, ...]:
    """Return the policy as data that `marshal.dumps` takes."""
    limits = policy.limits
    return (
        FORMAT,
        policy.index.rows,
        policy.default.value,
        policy.default_source,
        policy.profile,
        tuple(sorted(phase.value for phase in policy.closed_phases)),
        policy.private.value,
        policy.own.value,
        tuple(sorted(policy.protected_ports)),
        policy.locked,
        policy.tls,
        policy.upstream_resolve,
        tuple(getattr(limits, field) for field in Limits._fields),
        policy.setup,
        policy.notes,
        policy.files,
        policy.never_inspected,
        policy.bounds,
        policy.guarded,
        policy.registries,
    )


def from_plain(data: tuple[Any, ...]) -> Policy:
    """Return the policy that `to_plain` wrote down.

    Raises:
        ValueError: when it was written by another version.
    """
    if data[0] != FORMAT:
        raise ValueError(f"this snapshot has format {data[0]}, and {FORMAT} is read here")
    return make_policy(
        data[1],
        default=Verdict(data[2]),
        default_source=data[3],
        profile=data[4],
        closed_phases=frozenset(Phase(value) for value in data[5]),
        private=Admission(data[6]),
        own=Admission(data[7]),
        protected_ports=data[8],
        locked=data[9],
        tls=data[10],
        upstream_resolve=data[11],
        limits=Limits(*data[12]),
        setup=data[13],
        notes=data[14],
        files=data[15],
        never_inspected=data[16],
        bounds=data[17],
        guarded=data[18],
        registries=data[19],
    )


def from_json(data: Any) -> Policy:
    """Return the policy of a snapshot that went through JSON, which knows lists only.

    Raises:
        ValueError, TypeError, IndexError, KeyError: when it is none.
    """
    return from_plain(_tuples(data))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
