"""tidegate.runtime.policy_sources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.model.destination import parse_authority
from tidegate.model.errors import StartError, UsageError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import Policy
from tidegate.runtime.agent import Agent, find_harness
from tidegate.runtime.folder_policy import FOLDER_FILE
from tidegate.runtime.policy_sources import USER_FILE, option_layer, policy_in_force, read_policy_file


class Place:
    """A folder and a configuration folder to put policies into."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        self.config = root / "config"
        self.state = root / "state"
        self.folder.mkdir()
        self.config.mkdir()

    def policy(self, **options: object) -> Policy:
        layer = option_layer(**options.pop("options", {}))  # type: ignore[arg-type]
        return policy_in_force(
            folder=str(self.folder), config=str(self.config), state=str(self.state), options=layer, **options
        )  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty place: no policy anywhere."""
    return Place(tmp_path)


def _verdict(policy: Policy, target: str) -> Verdict:
    return decide(policy, parse_authority(target), Phase.RUNTIME).verdict


def test_with_nothing_at_all_the_profile_is_balanced(place: Place) -> None:
    """POL-10: registries pass, everything else is asked about."""
    policy = place.policy()
    assert policy.profile == "balanced"
    assert _verdict(policy, "pypi.org:443") is Verdict.ALLOW
    assert _verdict(policy, "example.com:443") is Verdict.ASK


def test_options_add_to_what_is_in_force(place: Place) -> None:
    """POL-10: --allow adds; --deny wins."""
    policy = place.policy(options={"allow": ["example.com:443"], "deny": ["pypi.org"]})
    assert _verdict(policy, "example.com:443") is Verdict.ALLOW
    assert _verdict(policy, "example.com:80") is Verdict.ASK
    assert _verdict(policy, "pypi.org:443") is Verdict.DENY
    assert _verdict(policy, "registry.npmjs.org:443") is Verdict.ALLOW


def test_a_policy_file_replaces_profile_presets_and_the_users_allows(place: Place) -> None:
    """POL-8: --policy gets exactly its own, but a deny of the user stays."""
    (place.config / USER_FILE).write_text("network:\n  runtime:\n    allow: [u.test]\n    deny: [d.test]\n")
    file = place.folder / "p.yaml"
    file.write_text("network:\n  runtime:\n    allow: [a.test, d.test]\n")
    policy = place.policy(policy_file=str(file))
    assert _verdict(policy, "a.test:443") is Verdict.ALLOW
    assert _verdict(policy, "u.test:443") is Verdict.DENY
    assert _verdict(policy, "d.test:443") is Verdict.DENY
    assert _verdict(policy, "pypi.org:443") is Verdict.DENY


def test_an_untrusted_folder_file_stops_the_start(place: Place) -> None:
    """POL-9: exit 78 naming both ways out; with either of them the run goes on as it says."""
    (place.folder / FOLDER_FILE).write_text("network:\n  runtime:\n    allow: [f.test]\n")
    with pytest.raises(StartError, match="is not trusted") as raised:
        place.policy()
    assert raised.value.exit_status == 78
    assert "--trust-folder" in raised.value.fix
    assert "--no-folder-policy" in raised.value.fix
    assert _verdict(place.policy(trust_folder=True), "f.test:443") is Verdict.ALLOW
    assert _verdict(place.policy(no_folder_policy=True), "f.test:443") is Verdict.ASK


def test_a_folder_file_that_is_a_link_is_refused_even_when_trusted(place: Place, tmp_path: Path) -> None:
    """POL-9: symlinks are refused: the bytes trusted must be the bytes parsed."""
    (tmp_path / "other.yaml").write_text("network:\n  runtime:\n    allow: [f.test]\n")
    (place.folder / FOLDER_FILE).symlink_to(tmp_path / "other.yaml")
    with pytest.raises(StartError, match="symbolic link"):
        place.policy(trust_folder=True)


def test_a_folder_file_that_is_a_pipe_is_refused_and_not_waited_for(place: Place) -> None:
    """POL-9: a task may have left a pipe there, and hold its other end open for ever."""
    path = place.folder / FOLDER_FILE
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(UsageError, match="is not a file"):
            place.policy(trust_folder=True)
    finally:
        os.close(held)


def test_what_is_not_there_cannot_be_trusted(place: Place) -> None:
    """POL-9: trusting a file that a task could then write would trust it unseen at the next run."""
    with pytest.raises(StartError, match="has no tidegate") as raised:
        place.policy(trust_folder=True)
    assert raised.value.exit_status == 78


def test_a_near_name_is_not_passed_over(place: Place) -> None:
    """POL-9, B14: a tidegate.yml is never read; a start that ignored its denies in silence would be a lie."""
    (place.folder / "tidegate.yml").write_text("network:\n  runtime:\n    deny: [pypi.org]\n")
    with pytest.raises(StartError, match=r"tidegate\.yml") as raised:
        place.policy(trust_folder=True)
    assert "tidegate.yaml" in raised.value.fix
    assert _verdict(place.policy(no_folder_policy=True), "pypi.org:443") is Verdict.ALLOW


def test_who_names_the_folders_file_as_a_policy_has_trusted_it(place: Place) -> None:
    """--policy tidegate.yaml is a person's own word for exactly that file."""
    file = place.folder / FOLDER_FILE
    file.write_text("network:\n  runtime:\n    allow: [f.test]\n")
    assert _verdict(place.policy(policy_file=str(file)), "f.test:443") is Verdict.ALLOW


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("missing", "No such file"),
        ("folder", "is a folder"),
        ("large", "larger than 8 MiB"),
        ("device", "is not a file"),
    ],
)
def test_a_policy_that_is_no_readable_file_is_one_line(tmp_path: Path, kind: str, what: str) -> None:
    """Bad input: exit 2, what is wrong, what to write instead; never a wait or a traceback."""
    path = tmp_path / "p.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(10_000_000)
    elif kind == "device":
        path = Path("/dev/zero")
    with pytest.raises(UsageError, match=what) as raised:
        read_policy_file(str(path))
    assert "\n" not in str(raised.value)


def test_an_unreadable_policy_is_one_line(tmp_path: Path) -> None:
    """Bad input: a file without permission, for an ordinary user: root reads everything."""
    path = tmp_path / "p.yaml"
    path.write_text("default: deny\n")
    path.chmod(0)
    before = os.geteuid()
    if before == 0:
        os.seteuid(12345)
    try:
        with pytest.raises(UsageError, match="cannot be read: Permission denied"):
            read_policy_file(str(path))
    finally:
        os.seteuid(before)


def test_an_agent_comes_last_and_as_the_profile_says(place: Place) -> None:
    """POL-8, POL-10: a recognised agent adds its model under balanced only, a named one its hosts to any policy."""
    claude = find_harness("claude")
    api, other = "api.anthropic.com:443", "claude.ai:443"
    seen, named = Agent(claude, "/usr/bin/claude"), Agent(claude)
    assert _verdict(place.policy(), api) is Verdict.ASK
    assert [_verdict(place.policy(agent=seen), target) for target in (api, other)] == [Verdict.ALLOW, Verdict.ASK]
    closed: dict[str, object] = {"options": {"profile": "closed"}}
    assert _verdict(place.policy(agent=seen, options={"profile": "closed"}), api) is Verdict.DENY
    assert _verdict(place.policy(agent=named, **closed), other) is Verdict.ALLOW
    (place.config / USER_FILE).write_text("network: {runtime: {deny: ['*.anthropic.com']}}\n")
    assert _verdict(place.policy(agent=named), api) is Verdict.DENY
    assert _verdict(place.policy(agent=named), other) is Verdict.ALLOW


def test_a_file_is_called_what_it_is(tmp_path: Path) -> None:
    """An unreadable harness file is not called a policy."""
    with pytest.raises(UsageError, match=r"the harness file '.*' is a folder"):
        read_policy_file(str(tmp_path), what="harness file")
    with pytest.raises(UsageError, match=r"the policy '.*' is a folder"):
        read_policy_file(str(tmp_path))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"allow": ["https://x.test/"]}, "--allow 'https://x.test/'"),
        ({"ask": ["*x.test"]}, "--ask-for '*x.test'"),
        ({"deny": ["a b"]}, "--deny 'a b'"),
        ({"allow": ["a\x1b[2J"]}, r"--allow 'a\\x1b\[2J'"),
        ({"profile": "balancd"}, "--profile 'balancd'"),
    ],
)
def test_a_bad_option_names_itself_and_the_cure(options: dict[str, object], what: str) -> None:
    """POL-2: the text at fault and what to write instead; escape codes never reach the terminal."""
    with pytest.raises(UsageError, match=what.replace("*", r"\*")) as raised:
        option_layer(**options)  # type: ignore[arg-type]
    assert raised.value.fix
    assert "\x1b" not in str(raised.value)


def test_a_policy_with_another_name_is_refused(tmp_path: Path) -> None:
    """HLD-15: by a hard link that an earlier task made, this one could change what the next run is told."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("network: {}\n")
    assert read_policy_file(str(policy)) == b"network: {}\n"
    os.link(policy, tmp_path / "other")
    with pytest.raises(StartError, match="hard link"):
        read_policy_file(str(policy))
    if os.geteuid():  # root may write it whatever its mode
        policy.chmod(0o400)
        assert read_policy_file(str(policy)) == b"network: {}\n"
