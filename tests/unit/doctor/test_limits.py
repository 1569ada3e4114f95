"""tidegate.doctor.limits."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tidegate.doctor.check import FAIL, OK, WARN
from tidegate.doctor.limits import DESCRIPTORS, NAMESPACES, check_limits


def test_this_machine_has_both_rows() -> None:
    """SRV-5: read from the kernel; a folder that is not there says nothing."""
    assert [check.name for check in check_limits()] == ["open files", "namespaces"]


@pytest.mark.parametrize(("hard", "state"), [(DESCRIPTORS, OK), (DESCRIPTORS - 1, WARN), (resource.RLIM_INFINITY, OK)])
def test_few_descriptors_are_a_warning(monkeypatch: pytest.MonkeyPatch, hard: int, state: str) -> None:
    """GAT-6: 256 connections of a task need two each."""
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (hard, hard))
    assert check_limits()[0].state == state


@pytest.mark.parametrize(("most", "state"), [(0, FAIL), (NAMESPACES - 1, WARN), (NAMESPACES, OK)])
def test_few_namespaces_are_named(tmp_path: Path, most: int, state: str) -> None:
    """HLD-12: the setting and the command that raises it."""
    (tmp_path / "max_net_namespaces").write_text(f"{most}\n")
    row = check_limits(str(tmp_path))[1]
    assert row.state == state
    assert state == OK or row.fix == "sysctl user.max_net_namespaces=10000"
