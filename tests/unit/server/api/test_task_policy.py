"""The policy of a task that is created through the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.model.destination import parse_authority
from tidegate.model.errors import UsageError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.server.api.task_policy import policy_for, rows_of
from tidegate.state.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.policy.policy import Policy

ALLOWED = Settings(network_default="allowlist", default_hosts=("default.test:443",))


def _policy(tmp_path: Path, settings: Settings = ALLOWED, **given: object) -> Policy:
    options: dict[str, object] = {"text": None, "hosts": None, "network": None} | given
    folders = {"folder": str(tmp_path), "config": str(tmp_path / "config"), "state": str(tmp_path / "state")}
    return policy_for(**options, **folders, settings=settings)  # type: ignore[arg-type]


def _verdicts(policy: Policy, *hosts: str) -> list[str]:
    return [decide(policy, parse_authority(host), phase).verdict.value for host in hosts for phase in Phase]


PLACES = ("own.test:443", "default.test:443", "pypi.org:443", "other.test:443")


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"hosts": ["own.test:443"]}, {"own.test:443"}),
        ({"hosts": []}, set()),
        ({"network": "none"}, set()),
        ({"network": "allowlist"}, {"default.test:443"}),
        ({}, {"default.test:443"}),
        ({"settings": Settings()}, set()),
        ({"settings": Settings(default_hosts=("default.test:443",))}, set()),
        ({"settings": Settings(network_default="allowlist")}, set()),
        (
            {"text": "network: {runtime: {allow: ['own.test:443']}, install: {allow: ['own.test:443']}}"},
            {"own.test:443"},
        ),
        ({"text": '{"hosts": ["own.test:443"]}'}, {"own.test:443"}),
        ({"text": '{"hosts": []}'}, {"default.test:443"}),
        ({"text": '{"hosts": []}', "settings": Settings()}, set()),
        ({"text": '{"hosts": [], "networkDefault": "none"}'}, set()),
        ({"text": '{"hosts": ["*.own.test:443"]}'}, set()),
    ],
)
def test_a_task_reaches_exactly_what_it_says_or_the_settings_do(
    tmp_path: Path, given: dict[str, object], allowed: set[str]
) -> None:
    """POL-13: own hosts exactly; else the default hosts, or nothing. No preset, no profile and nobody is asked."""
    policy = _policy(tmp_path, **given)  # type: ignore[arg-type]
    for place in PLACES:
        expected = Verdict.ALLOW.value if place in allowed else Verdict.DENY.value
        assert _verdicts(policy, place) == [expected, expected], place


def test_none_is_closed_for_remembered_hosts_too(tmp_path: Path) -> None:
    """POL-13: what reaches nothing has both phases closed, so that nothing remembered for the folder joins it."""
    assert _policy(tmp_path, network="none").closed_phases == frozenset(Phase)
    assert _policy(tmp_path, hosts=["a.test"]).closed_phases == frozenset()


def test_the_user_s_own_denies_stay(tmp_path: Path) -> None:
    """POL-8: a task through the API is under the user's denies, whatever hosts it names, and not under its allows."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "policy.yaml").write_text(
        "network: {runtime: {deny: ['own.test:443'], allow: ['pypi.org:443']}}"
    )
    policy = _policy(tmp_path, hosts=["own.test:443", "more.test:443"])
    found = {host: decide(policy, parse_authority(host), Phase.RUNTIME).verdict for host in (*PLACES, "more.test:443")}
    assert found["own.test:443"] is Verdict.DENY
    assert found["pypi.org:443"] is Verdict.DENY
    assert found["more.test:443"] is Verdict.ALLOW


def test_the_folder_s_file_is_not_read(tmp_path: Path) -> None:
    """POL-9: a file that a task may have written gives nothing, and stops nothing here."""
    (tmp_path / "tidegate.yaml").write_text("network: {runtime: {allow: ['other.test:443']}}")
    assert _verdicts(_policy(tmp_path, hosts=[]), "other.test:443") == ["deny", "deny"]


def test_a_rule_says_where_it_is_from(tmp_path: Path) -> None:
    """POL-6: what lets a host through names the task's hosts or the settings."""
    for given, name, source in [
        ({"hosts": ["own.test:443"]}, "task", "the task's hosts"),
        ({}, "default-hosts", "settings"),
    ]:
        place = "own.test:443" if given else "default.test:443"
        decision = decide(_policy(tmp_path, **given), parse_authority(place), Phase.RUNTIME)  # type: ignore[arg-type]
        assert (decision.name, decision.source) == (name, source)


def test_wrong_hosts_and_too_many_ways_are_refused(tmp_path: Path) -> None:
    """POL-2: what is no rule is named with what to write instead; one way only to say what is reached."""
    with pytest.raises(UsageError) as caught:
        rows_of(["good.test", "https://bad.test/"], "n", "s")
    assert "https://bad.test/" in caught.value.what
    assert caught.value.fix
    for given in ({"hosts": [], "network": "none"}, {"text": "profile: closed", "hosts": ["a.test"]}):
        with pytest.raises(UsageError, match="three ways"):
            _policy(tmp_path, **given)  # type: ignore[arg-type]
