"""tidegate.doctor.policies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.doctor.check import FAIL, OK, WARN
from tidegate.doctor.policies import check_egress, check_policies
from tidegate.runtime import administrator


def states(tmp_path: Path) -> list[tuple[str, str]]:
    """Return name and state of each row."""
    return [(check.name, check.state) for check in check_policies({"XDG_CONFIG_HOME": str(tmp_path)})]


def test_no_policy_no_row(tmp_path: Path) -> None:
    """SRV-5: what nobody wrote cannot be wrong."""
    assert states(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "state"),
    [("network: {runtime: {allow: [a.test]}}\n", OK), ("defalt: deny\n", FAIL), ("profile: audit\n", WARN)],
)
def test_the_users_policy_is_read(tmp_path: Path, text: str, state: str) -> None:
    """SRV-5: an error in it would stop every run; that it lets everything through is said."""
    (tmp_path / "tidegate").mkdir()
    (tmp_path / "tidegate" / "policy.yaml").write_text(text)
    assert states(tmp_path) == [("your policy", state)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the administrator's file is root's own")
def test_the_administrators_policy_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POL-8: what it forbids is named; one that others can write fails its row."""
    file = tmp_path / "policy.yaml"
    file.write_text("network: {runtime: {deny: [bad.test]}}\nlocked: [open]\n")
    monkeypatch.setattr(administrator, "FOLDER", str(tmp_path))
    monkeypatch.setattr(administrator, "FILE", str(file))
    (row,) = check_policies({"XDG_CONFIG_HOME": str(tmp_path)})
    assert (row.state, row.what) == (OK, "it forbids open")
    file.chmod(0o666)
    (row,) = check_policies({"XDG_CONFIG_HOME": str(tmp_path)})
    assert row.state == FAIL
    assert row.fix == f"chmod go-w {file}"


def test_what_the_repositories_of_a_kraft_file_reach(tmp_path: Path) -> None:
    """POL-15: neither a policy nor unrestricted fails, unrestricted warns, each by its path; no such file fails."""
    file = tmp_path / "repos.yaml"
    file.write_text(
        "repos:\n  - {path: /a, sandbox: {network: {runtime: {}}}}\n"
        "  - {path: /b, sandbox: {unrestricted_network: true}}\n  - {path: /c, sandbox: {kind: docker}}\n"
    )
    rows = check_egress(str(file))
    assert [(row.name, row.state) for row in rows] == [
        ("egress of /a", OK),
        ("egress of /b", WARN),
        ("egress of /c", FAIL),
    ]
    assert "unrestricted_network: true" in rows[2].fix
    file.write_text("repos: [{path: /a, sandbox: {netwrk: {}}}]\n")
    (row,) = check_egress(str(file))
    assert (row.name, row.state) == ("egress", FAIL)
    file.write_text("repos: []\n")
    (row,) = check_egress(str(file))
    assert row.state == FAIL
    (row,) = check_egress(str(tmp_path / "nothing"))
    assert row.state == FAIL
