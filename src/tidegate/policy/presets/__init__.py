"""Presets: named groups of hosts, kept as data files (POL-11).

The YAML files here are the source; `compiled` is what runs read. A preset's hosts are exact names on port 443. A group
(`package-registries`) is the union of its presets, and names their rules for people.
"""

from __future__ import annotations

from tidegate.policy.presets.compiled import GROUPS, HOSTS, READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.rule import Alternative
    from tidegate.policy.rows import LimitsRow

PRESET_PORT = 443
PRESET_NAMES = (*GROUPS, *HOSTS)

_GROUP_OF = {preset: group for group, presets in GROUPS.items() for preset in presets}


class UnknownPresetError(ValueError):
    """There is no preset of this name. `names` are those that there are."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no preset {name!r}")
        self.names = PRESET_NAMES


def members(name: str) -> tuple[str, ...]:
    """Return the presets that `name` means: itself, or those of a group.

    Raises:
        UnknownPresetError: when it is neither.
    """
    if name in HOSTS:
        return (name,)
    if name not in GROUPS:
        raise UnknownPresetError(name)
    return GROUPS[name]


def mirror_reads(preset: str) -> LimitsRow:
    """Return the limits of a mirror of this preset: what reads there, below whatever path the mirror has it."""
    found: dict[Alternative, None] = {}
    for host in HOSTS[preset]:
        for kind, methods, paths in READS[host][2][0]:
            found[kind, methods, tuple(f"/**{path}" for path in paths)] = None
    return (None, None, (tuple(found),))


def rule_name(preset: str) -> str:
    """Return the name that rules of a preset carry: its group's, or its own where it is in none."""
    return _GROUP_OF.get(preset, preset)
