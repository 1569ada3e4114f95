"""tidegate.runtime.attempts: one gate reads the log of what goes around; the others are told that they do not."""

from __future__ import annotations

import os
import time

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.kit import Recording
from tidegate.gate.gate import Gate
from tidegate.holds import attempt_log
from tidegate.runtime.attempts import NONE, TAKEN, around_of


def _gate() -> Gate:
    return Gate(recorder=Recording(), wall=time.time)  # noqa: TID251  the clock comes in here


@pytest.mark.usefixtures("isolated")
def test_one_gate_reads_and_the_next_takes_over() -> None:
    """JRN-3: the second says so; once the first is gone it reads, without being made anew."""
    before = descriptors()
    first, second = _gate(), _gate()
    around, problem = around_of(first)
    assert (around.reads, problem) == (True, "")
    assert around_of(first) == (around, "")
    assert around_of(second)[1] == TAKEN
    assert not around_of(second)[0].reads
    first.close()
    assert around_of(second) == (second.around, "")
    second.close()
    assert descriptors() <= before


@pytest.mark.usefixtures("isolated")
def test_where_there_is_no_log_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-3: neither can be read; and the kernel's own where there is no other."""
    gate = _gate()
    monkeypatch.setattr(attempt_log, "open_attempts", lambda _group: (attempt_log.NEITHER, -1))
    around, problem = around_of(gate)
    assert (around.reads, problem) == (False, NONE)

    def broken(_group: int) -> tuple[str, int]:
        raise PermissionError(1, "no")

    monkeypatch.setattr(attempt_log, "open_attempts", broken)
    assert around_of(gate)[1] == NONE
    reading, writing = os.pipe()
    monkeypatch.setattr(attempt_log, "open_attempts", lambda _group: (attempt_log.KERNEL, reading))
    assert around_of(gate) == (around, "")
    assert around.reads
    gate.close()
    os.close(writing)
