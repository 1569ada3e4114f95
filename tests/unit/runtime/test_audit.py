"""Lines of the action log from outside of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.journal.segments import read
from tidegate.runtime.audit import note, open_log
from tidegate.runtime.state import log_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_a_line_joins_the_chain(tmp_path: Path) -> None:
    """JRN-2, JRN-5: the log is made where there is none, private; the next one goes on behind."""
    state = str(tmp_path / "state")
    said: list[str] = []
    for number in range(2):
        note(state, "secret.set", clock=lambda: 1.0, warn=said.append, secret=f"S{number}")
    log = open_log(state, clock=lambda: 2.0, warn=said.append)
    log.append("secret.forgotten", secret="S0")
    log.close()
    lines = list(read(log_folder(state)))
    assert [(line["seq"], line["type"], line["secret"]) for line in lines] == [
        (1, "secret.set", "S0"),
        (2, "secret.set", "S1"),
        (3, "secret.forgotten", "S0"),
    ]
    assert said == []
    assert (tmp_path / "state" / "log").stat().st_mode & 0o777 == 0o700


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """JRN-5: what was done stays done."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "log").write_text("no folder")
    said: list[str] = []
    note(str(state), "secret.set", clock=lambda: 1.0, warn=said.append, secret="S")
    assert said
    assert said[0].startswith("this is not in the action log")
