"""tidegate.doctor.attempts: which log there is of what goes around a gate (JRN-3)."""

from __future__ import annotations

import os

import pytest

from tidegate.doctor.attempts import check_attempts
from tidegate.doctor.check import OK, WARN
from tidegate.holds import attempt_log


@pytest.mark.parametrize(
    ("kind", "state", "says"),
    [(attempt_log.NFLOG, OK, ""), (attempt_log.KERNEL, WARN, "own log"), (attempt_log.NEITHER, WARN, "not recorded")],
)
def test_the_row_says_what_is_recorded(monkeypatch: pytest.MonkeyPatch, kind: str, state: str, says: str) -> None:
    """SRV-5, JRN-3: with the command that mends it; an ordinary user has no such tasks, and no row."""
    monkeypatch.setattr(attempt_log, "kind", lambda _group: kind)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (row,) = check_attempts()
    assert row.state == state
    assert says in row.what
    assert bool(row.fix) is (state == WARN)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert check_attempts() == []


@pytest.mark.usefixtures("isolated")
def test_a_real_kernel_is_asked() -> None:
    """SRV-5: where this is root's, one row; nothing is left bound."""
    rows = check_attempts()
    assert len(rows) == (os.geteuid() == 0)
    assert check_attempts() == rows
