"""The built-in profiles."""

from __future__ import annotations

import pytest

from tests.unit.policy.written import say
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.layers import command_line, join
from tidegate.policy.presets import members
from tidegate.policy.profiles import PROFILES


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize(
    ("profile", "registry", "git", "unknown"),
    [
        ("balanced", Verdict.ALLOW, Verdict.ASK, Verdict.ASK),
        ("careful", Verdict.ALLOW, Verdict.ASK, Verdict.ASK),
        ("closed", Verdict.DENY, Verdict.DENY, Verdict.DENY),
        ("audit", Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW),
    ],
)
def test_profiles(profile: str, registry: Verdict, git: Verdict, unknown: Verdict, phase: Phase) -> None:
    """Registries pass and all else is asked, git hosts too; closed denies; audit allows (POL-10)."""
    said = join(command_line(profile=profile))
    assert say(said, "pypi.org:443", phase).verdict is registry
    assert say(said, "github.com:443", phase).verdict is git
    assert say(said, "example.com:443", phase).verdict is unknown
    assert say(said, "pypi.org:80", phase).verdict is unknown
    assert say(said, "metadata.google.internal:80", phase).reason is Reason.NEVER_ALLOWED
    assert said.profile == profile


def test_profiles_name_presets_that_exist() -> None:
    """Every preset of a profile is there."""
    for profile in PROFILES.values():
        for preset in profile.presets:
            assert members(preset)
        assert profile.about
