"""The built-in profiles: what a task reaches where no policy says it exactly (POL-10)."""

from __future__ import annotations

from tidegate.model.value import Value
from tidegate.model.verdict import Verdict

DEFAULT_PROFILE = "balanced"


class Profile(Value):
    """A profile: the presets it allows, what everything else gets, and one line for people.

    `own_model_api` says whether an agent that is the command itself reaches its model (runtime/agent.py finds out).
    """

    name: str
    presets: tuple[str, ...]
    default: Verdict
    about: str
    own_model_api: bool = False


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "balanced",
            ("package-registries",),
            Verdict.ASK,
            "package registries can be read, and the agent that runs reaches its model; everything else is asked",
            own_model_api=True,
        ),
        Profile("careful", ("package-registries",), Verdict.ASK, "the same network as balanced", own_model_api=True),
        Profile("closed", (), Verdict.DENY, "everything is denied but what rules allow"),
        Profile("audit", (), Verdict.ALLOW, "everything passes but what is never allowed, and all of it is recorded"),
    )
}
