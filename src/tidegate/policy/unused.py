"""Which entries of a policy no line of a record had a use for (JRN-7).

An entry is used where it governs a place that was reached or tried: what nobody answered is used all the same.
Of two that say the same only the one that governs is. Deny rules are not looked at: that nothing met one is no reason
to take it away.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.policy.decide import decide
from tidegate.policy.presets import members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.policy.amend import Entry
    from tidegate.policy.layers import PolicyLayer
    from tidegate.policy.learned import Place
    from tidegate.policy.policy import Policy


def unused_entries(
    policy: Policy, layer: PolicyLayer, entries: Sequence[Entry], places: Iterable[Place]
) -> set[tuple[int, int]]:
    """Return where the unused ones stand (line and column, from 1). `policy` is what `layer` makes alone."""
    used: set[tuple[str, str]] = set()
    for place in places:
        if place.port:
            rule = decide(policy, Destination(place.host, place.port), place.phase).rule
            if rule is not None:
                used.add((place.phase.value, rule.source))
    prefix = f"{layer.source}:"
    mirrors = {preset: [source for _text, source in rules] for preset, rules in layer.mirrors}
    found = set()
    for entry in entries:
        if entry.text[:1] == "@":
            sources = [
                source for preset in members(entry.text[1:]) for source in mirrors.get(preset, [f"preset {preset}"])
            ]
        else:
            sources = [f"{prefix}{entry.at[0]}:{entry.at[1]}"]
        if not any((entry.phase, source) in used for source in sources):
            found.add(entry.at)
    return found
