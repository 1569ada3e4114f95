"""tidegate.runtime.folder_policy."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tidegate.model.destination import parse_authority
from tidegate.model.errors import StartError, UsageError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import Policy
from tidegate.runtime.folder_policy import FOLDER_FILE, MAX_LINES, folder_policy, known_trust
from tidegate.runtime.policy_sources import option_layer, policy_in_force
from tidegate.state.folders import folder_key
from tidegate.state.sqlite import open_store
from tidegate.state.store import Trust

TEXT = "network: {runtime: {allow: [f.test], deny: [d.test]}}\n"


class Project:
    """A folder with a tidegate.yaml, and a state folder in which it may be trusted."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        self.folder.mkdir()
        self.state = root / "state"
        self.file = self.folder / FOLDER_FILE
        self.file.write_text(TEXT)

    def trust(self, text: str = TEXT) -> None:
        """Trust these bytes."""
        data = text.encode()
        store = open_store(str(self.state))
        store.trust(Trust(folder_key(str(self.folder)), hashlib.sha256(data).hexdigest(), data, 0.0, "me"))
        store.close()

    def policy(self, **options: object) -> Policy:
        """Return the policy of a run here."""
        layer = option_layer(allow=options.pop("allow", ()))  # type: ignore[arg-type]
        none = str(self.folder.parent / "none")
        return policy_in_force(
            folder=str(self.folder),
            config=none,
            state=str(self.state),
            options=layer,
            **options,  # type: ignore[arg-type]
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder with a policy that nobody has trusted."""
    return Project(tmp_path)


def verdict(policy: Policy, host: str) -> Verdict:
    """Decide about port 443."""
    return decide(policy, parse_authority(f"{host}:443"), Phase.RUNTIME).verdict


def test_a_trusted_file_counts_without_an_option(project: Project) -> None:
    """POL-9: a person's word is for good, as long as the bytes stay."""
    project.trust()
    assert verdict(project.policy(), "f.test") is Verdict.ALLOW
    assert verdict(project.policy(), "pypi.org") is Verdict.DENY  # POL-8: it replaces profile and presets
    assert verdict(project.policy(allow=["o.test"]), "o.test") is Verdict.ALLOW


def test_a_file_that_nobody_trusted_stops_the_start_with_what_it_would_let_through(project: Project) -> None:
    """POL-9: exit 78, the hosts it would add, and the three ways on."""
    with pytest.raises(StartError, match="is not trusted") as raised:
        project.policy()
    text = str(raised.value)
    assert raised.value.exit_status == 78
    assert "runtime: f.test: ask → allow (rule 'f.test', tidegate.yaml:1:29)" in text
    for way in ("tidegate policy trust", "--trust-folder", "--no-folder-policy"):
        assert way in text


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("network: {runtime: {allow: [f.test, new.test]}}\n", "runtime: new.test: deny → allow"),
        ("network: {runtime: {allow: [f.test]}}\n", "it no longer refuses, or asks for:\n  runtime: d.test"),
        (TEXT + "# a remark\n", "it would let nothing more through"),
    ],
)
def test_a_changed_file_stops_the_start_with_what_is_new(project: Project, text: str, more: str) -> None:
    """POL-9: one byte more is another file; the diff names what was added and not what was there."""
    project.trust()
    project.file.write_text(text)
    with pytest.raises(StartError, match="has changed since it was trusted") as raised:
        project.policy()
    assert more in str(raised.value)
    assert ("nothing more" in str(raised.value)) == text.startswith(TEXT)
    assert "runtime: f.test" not in str(raised.value)
    project.file.write_text(TEXT)
    assert verdict(project.policy(), "f.test") is Verdict.ALLOW


def test_a_trusted_file_that_is_gone_stops_the_start(project: Project) -> None:
    """POL-9: its denies are not dropped in silence; untrusted again, or left aside by name, the start goes on."""
    project.file.unlink()
    assert verdict(project.policy(), "d.test") is Verdict.ASK
    project.trust()
    with pytest.raises(StartError, match="which was trusted, is gone") as raised:
        project.policy()
    assert "tidegate policy untrust" in str(raised.value)
    assert verdict(project.policy(no_folder_policy=True), "d.test") is Verdict.ASK
    store = open_store(str(project.state))
    store.untrust(folder_key(str(project.folder)))
    store.close()
    assert verdict(project.policy(), "d.test") is Verdict.ASK


def test_denies_of_a_trusted_file_stay_beside_a_policy_file(project: Project, tmp_path: Path) -> None:
    """POL-8, POL-9: --policy replaces what it allows, not what it denies; an untrusted one is left aside."""
    other = tmp_path / "p.yaml"
    other.write_text("network: {runtime: {allow: [d.test, o.test]}}\n")
    assert verdict(project.policy(policy_file=str(other)), "d.test") is Verdict.ALLOW
    project.trust()
    policy = project.policy(policy_file=str(other))
    assert [verdict(policy, host) for host in ("o.test", "d.test", "f.test")] == [
        Verdict.ALLOW, Verdict.DENY, Verdict.DENY,
    ]  # fmt: skip
    project.file.write_text(TEXT + "#")
    with pytest.raises(StartError, match="has changed"):
        project.policy(policy_file=str(other))
    assert verdict(project.policy(policy_file=str(other), no_folder_policy=True), "d.test") is Verdict.ALLOW


def test_trust_is_for_this_folder_only(project: Project) -> None:
    """POL-9, ASK-8: neither a folder below nor another one put in its place has it."""
    project.trust()
    below = project.folder / "below"
    below.mkdir()
    (below / FOLDER_FILE).write_text(TEXT)
    assert known_trust(str(below), str(project.state)) is None
    project.folder.rename(project.folder.parent / "moved")
    project.folder.mkdir()
    project.file.write_text(TEXT)
    with pytest.raises(StartError, match="is not trusted"):
        project.policy()


def test_wrong_text_cannot_be_trusted_by_mistake(project: Project) -> None:
    """POL-2: instead of a diff its errors are named; trusted for one run, it is an error of text."""
    project.file.write_text("network: {runtime: {allow: ['https://x.test/']}}\n")
    with pytest.raises(StartError, match=r"tidegate\.yaml:1:29: a rule names a host"):
        project.policy()
    with pytest.raises(UsageError, match=r"tidegate\.yaml:1:29"):
        project.policy(trust_folder=True)


@pytest.mark.parametrize(
    "text",
    ["profile: audit\n", "own: exact-host-port\n", "setup: make\n", "locked: true\n", "upstream: {resolve: skip}\n"],
)
def test_trusted_or_not_it_may_hold_hosts_only(project: Project, text: str) -> None:
    """POL-9: what a task could write never decides about holds, commands, upstreams or audit."""
    project.file.write_text(text)
    project.trust(text)
    with pytest.raises(UsageError, match="a folder's policy may not hold this"):
        project.policy()


def test_a_diff_is_bounded(project: Project) -> None:
    """A file with a thousand hosts does not fill the screen."""
    hosts = ", ".join(f"h{number}.test" for number in range(1000))
    project.file.write_text(f"network: {{runtime: {{allow: [{hosts}]}}}}\n")
    found = folder_policy(str(project.folder), str(project.state))
    assert found is not None
    lines = found.more()
    assert len(lines) == MAX_LINES + 2
    assert lines[-1] == f"and {1000 - MAX_LINES} more"
