"""The built-in profiles: what a task reaches where no policy says it exactly (POL-10)."""

from __future__ import annotations

from tidegate.model.value import Value
from tidegate.model.verdict import Verdict

DEFAULT_PROFILE = "balanced"


class Profile(Value):
    """A profile: the presets it allows, what everything else gets, and one line for people."""

    name: str
    presets: tuple[str, ...]
    default: Verdict
    about: str


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("balanced", ("package-registries",), Verdict.ASK, "package registries pass, everything else is asked"),
        Profile("careful", ("package-registries",), Verdict.ASK, "the same network as balanced"),
        Profile("closed", (), Verdict.DENY, "everything is denied but what rules allow"),
        Profile("audit", (), Verdict.ALLOW, "everything passes but what is never allowed, and all of it is recorded"),
    )
}
