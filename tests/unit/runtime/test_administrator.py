"""tidegate.runtime.administrator."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.product import Product
from tidegate.model.destination import parse_authority
from tidegate.model.errors import StartError, UsageError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import LOCKS
from tidegate.policy.policy import Policy
from tidegate.runtime import administrator
from tidegate.runtime.administrator import administrator_layer, refuse_what_is_locked
from tidegate.runtime.policy_sources import USER_FILE, option_layer, policy_in_force

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the administrator's file is root's own")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the administrator's file is looked for."""
    folder = tmp_path / "etc"
    folder.mkdir()
    folder.chmod(0o755)
    monkeypatch.setattr(administrator, "FOLDER", str(folder))
    monkeypatch.setattr(administrator, "FILE", str(folder / "policy.yaml"))
    return folder / "policy.yaml"


def in_force(tmp_path: Path, user: str = "", **options: object) -> Policy:
    """Return the policy of a run in an empty folder."""
    config = tmp_path / "config"
    config.mkdir(exist_ok=True)
    (config / USER_FILE).unlink(missing_ok=True)
    if user:
        (config / USER_FILE).write_text(user)
    layer = option_layer(allow=options.pop("allow", ()), profile=options.pop("profile", ""))  # type: ignore[arg-type]
    return policy_in_force(
        folder=str(tmp_path), config=str(config), state=str(tmp_path / "state"), options=layer, **options
    )  # type: ignore[arg-type]


def verdict(policy: Policy, target: str) -> Verdict:
    """Decide."""
    return decide(policy, parse_authority(target), Phase.RUNTIME).verdict


def test_without_a_file_nothing_is_locked(file: Path) -> None:
    """POL-8: most machines have none."""
    assert not file.exists()
    assert administrator_layer() is None
    for name in LOCKS:
        refuse_what_is_locked(name, name)


@ROOT_ONLY
def test_a_deny_of_the_administrator_stays(file: Path, tmp_path: Path) -> None:
    """POL-8: neither the user nor --policy nor --allow lifts it; what it does not deny passes as ever."""
    file.write_text("network: {runtime: {deny: [pypi.org, bad.test]}}\n")
    policy_file = tmp_path / "p.yaml"
    policy_file.write_text("network: {runtime: {allow: [bad.test, good.test]}}\n")
    policy = in_force(tmp_path, "network: {runtime: {allow: [bad.test]}}\n", allow=["bad.test"])
    assert verdict(policy, "bad.test:443") is Verdict.DENY
    assert verdict(policy, "pypi.org:443") is Verdict.DENY
    assert verdict(policy, "registry.npmjs.org:443") is Verdict.ALLOW
    policy = in_force(tmp_path, policy_file=str(policy_file))
    assert verdict(policy, "bad.test:443") is Verdict.DENY
    assert verdict(policy, "good.test:443") is Verdict.ALLOW


@ROOT_ONLY
@pytest.mark.parametrize("locked", ["true", "[policy]"])
def test_a_locked_policy_of_the_administrator_is_exactly_its_own(file: Path, tmp_path: Path, locked: str) -> None:
    """POL-8, POL-10: it names hosts and no profile, so it has no preset, and nobody adds a host to it."""
    file.write_text(f"network: {{runtime: {{allow: [ours.test]}}}}\nlocked: {locked}\n")
    policy = in_force(tmp_path, "network: {runtime: {allow: [u.test], deny: [d.test]}}\n", allow=["o.test"])
    assert verdict(policy, "ours.test:443") is Verdict.ALLOW
    for host in ("u.test", "o.test", "d.test", "pypi.org", "other.test"):
        assert verdict(policy, f"{host}:443") is Verdict.DENY, host


@ROOT_ONLY
@pytest.mark.parametrize("name", LOCKS)
def test_each_lock_forbids_its_own_only(file: Path, name: str) -> None:
    """POL-8: a lock names one thing; `true` names them all, and a policy without locks none."""
    file.write_text(f"network: {{runtime: {{deny: [bad.test]}}}}\nlocked: [{name}]\n")
    with pytest.raises(StartError, match="forbids what was asked") as raised:
        refuse_what_is_locked(name, "what was asked")
    assert raised.value.exit_status == 78
    for other in LOCKS:
        if other != name:
            refuse_what_is_locked(other, other)
    file.write_text("network: {runtime: {deny: [bad.test]}}\nlocked: true\n")
    with pytest.raises(StartError):
        refuse_what_is_locked(name, name)
    file.write_text("network: {runtime: {deny: [bad.test]}}\n")
    refuse_what_is_locked(name, name)


@ROOT_ONLY
def test_audit_and_trusting_a_folder_can_be_locked(file: Path, tmp_path: Path) -> None:
    """POL-8: a locked profile is refused from whichever layer names it."""
    file.write_text("network: {runtime: {deny: [bad.test]}}\nlocked: [audit, trust-folder]\n")
    with pytest.raises(StartError, match="the profile audit"):
        in_force(tmp_path, profile="audit")
    with pytest.raises(StartError, match="the profile audit"):
        in_force(tmp_path, "profile: audit\n")
    assert in_force(tmp_path, profile="closed").profile == "closed"
    (tmp_path / "tidegate.yaml").write_text("network: {runtime: {allow: [f.test]}}\n")
    with pytest.raises(StartError, match="--trust-folder"):
        in_force(tmp_path, trust_folder=True)
    assert verdict(in_force(tmp_path, no_folder_policy=True), "f.test:443") is Verdict.ASK


@ROOT_ONLY
@pytest.mark.parametrize(
    "kind", ["group writable", "others writable", "another owner", "folder of another", "symlink", "folder", "pipe"]
)
def test_a_file_that_others_could_write_stops_the_start(file: Path, tmp_path: Path, kind: str) -> None:
    """HLD-7: it is neither obeyed, since anyone could be its author, nor left aside, since that would lift a lock."""
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "symlink":
        (tmp_path / "real").write_text("locked: [open]\n")
        file.symlink_to(tmp_path / "real")
    else:
        file.write_text("locked: [open]\n")
        if kind == "another owner":
            os.chown(file, 12345, 0)
        elif kind == "folder of another":
            os.chown(file.parent, 12345, 0)
        else:
            file.chmod(0o664 if kind == "group writable" else 0o646)
    with pytest.raises(StartError, match="the administrator's policy") as raised:
        administrator_layer()
    assert raised.value.exit_status == 78
    assert raised.value.fix


@ROOT_ONLY
def test_wrong_text_stops_the_start(file: Path) -> None:
    """POL-2: the place and what to write instead, as for any policy."""
    file.write_text("locked: [opne]\n")
    with pytest.raises(
        UsageError, match=r"policy\.yaml:1:10: an entry of 'locked' knows no such value: 'opne': write 'open'"
    ):
        administrator_layer()


@ROOT_ONLY
@pytest.mark.parametrize("user", [False, True], ids=["root", "user"])
def test_nobody_starts_what_is_locked(tmp_path: Path, isolated: None, *, user: bool) -> None:
    """POL-8: the real command under a real /etc/tidegate: exit 78 with one line; its neighbour without a lock runs."""
    assert isolated is None
    etc = tmp_path / "upper" / "tidegate"
    etc.mkdir(parents=True)
    for path in (etc.parent, etc):
        path.chmod(0o755)
    (etc / "policy.yaml").write_text("network: {runtime: {deny: [bad.test]}}\nlocked: [open, no-selftest]\n")
    (etc / "policy.yaml").chmod(0o644)
    product = Product(tmp_path / "p", user=user)
    over = f'mount -t overlay overlay -o lowerdir={tmp_path / "upper"}:/etc /etc && exec "$@"'

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = ["unshare", "--mount", "sh", "-c", over, "sh", *product.argv("run", *words)]
        return subprocess.run(
            argv, cwd=product.folder, env=product.environment, capture_output=True, text=True, check=False, timeout=60
        )

    for option in ("--open-network", "--no-selftest"):
        done = run(option, "--", "true")
        assert (done.returncode, done.stdout) == (78, "")
        assert f"the administrator's policy /etc/tidegate/policy.yaml forbids {option}: ask who" in done.stderr
    done = run("--", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
