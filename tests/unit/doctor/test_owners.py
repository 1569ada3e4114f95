"""tidegate.doctor.owners: the kernel is asked for real (GAT-2, SRV-5)."""

from __future__ import annotations

import os

import pytest

from tidegate.doctor import owners
from tidegate.doctor.check import OK, WARN
from tidegate.doctor.owners import check_owners
from tidegate.gate.identity import UnknownPeerError


@pytest.mark.usefixtures("isolated")
def test_a_connection_of_our_own_is_ours() -> None:
    """SRV-5: a row for root, none for others."""
    rows = check_owners()
    assert [row.state for row in rows] == ([OK] if os.geteuid() == 0 else [])


@pytest.mark.parametrize("broken", [OSError(93, "Protocol not supported"), UnknownPeerError("no owner"), 1000])
def test_what_is_wrong_is_said_with_a_command(monkeypatch: pytest.MonkeyPatch, broken: Exception | int) -> None:
    """HLD-7: there is no such part of the kernel, or it says something else."""

    def ask() -> int:
        if isinstance(broken, int):
            return broken
        raise broken

    monkeypatch.setattr(owners, "_ask", ask)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (row,) = check_owners()
    assert row.state == WARN
    assert "whose a connection" in row.what or "1000" in row.what
    assert "modprobe" in row.fix
