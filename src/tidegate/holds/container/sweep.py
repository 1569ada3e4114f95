"""Containers that a crash left: found by their labels, and removed where their owner has ended (HLD-8)."""

from __future__ import annotations

from tidegate.holds.container import owner
from tidegate.holds.container.engine import LABEL_OWNER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.container.engine import Engine


def sweep(engine: Engine, kept: frozenset[str] = frozenset()) -> list[str]:
    """Remove what nobody owns any more; the ids of that. `kept` are ids of containers that stay.

    Raises:
        StartError: when the engine does not do it.
    """
    left = [
        found["id"]
        for found in engine.labelled(LABEL_OWNER)
        if found["id"] not in kept and owner.is_gone(found.get(LABEL_OWNER, ""))
    ]
    engine.remove(*left)
    return left
