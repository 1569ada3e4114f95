"""tidegate.doctor.policies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.doctor.check import FAIL, OK, WARN
from tidegate.doctor.policies import check_policies
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
