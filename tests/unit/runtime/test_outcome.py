"""How an end becomes an exit status and a sentence (HLD-7, HLD-16)."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest

import tidegate
from tidegate.runtime.outcome import (
    Outcome,
    ended,
    exec_sentence,
    gone_late,
    not_executed,
)


@pytest.mark.parametrize(
    ("wait_status", "exit_status", "number"),
    [
        (0, 0, 0),
        (1 << 8, 1, 0),
        (255 << 8, 255, 0),
        (126 << 8, 126, 0),
        (signal.SIGINT, 130, 2),
        (signal.SIGKILL, 137, 9),
        (signal.SIGTERM, 143, 15),
        (signal.SIGSEGV | 0x80, 139, 11),  # with a core
        (64, 192, 64),  # the last real-time signal
    ],
)
def test_a_wait_status_becomes_an_exit_status(wait_status: int, exit_status: int, number: int) -> None:
    """HLD-16: the command's own number, or 128 and its signal's."""
    outcome = ended(wait_status)
    assert (outcome.exit_status, outcome.signal, outcome.source) == (exit_status, number, "command")


def test_a_lost_gate_is_70_whatever_the_command_did() -> None:
    """HLD-7: 70, from tidegate, and never a death by SIGINT."""
    outcome = ended(signal.SIGINT, gate_lost=True)
    assert (outcome.exit_status, outcome.source, outcome.interrupted) == (70, "tidegate", False)
    assert ended(signal.SIGINT).interrupted


def test_a_gate_found_gone_at_the_end_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    """HLD-7, HLD-8: a command that failed by then is 70, one that went well keeps its 0; what was said is not again."""
    assert gone_late(ended(0), "gone").exit_status == 0
    failed = gone_late(ended(52 << 8), "gone")
    assert (failed.exit_status, failed.source) == (70, "tidegate")
    assert capfd.readouterr().err == "gone\ngone\n"
    lost = ended(0, gate_lost=True)
    assert gone_late(lost, "gone") is lost
    never = not_executed(errno.ENOENT, "not-found")
    assert gone_late(never, "gone") is never
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("code", "kind", "status", "sentence"),
    [
        (errno.ENOENT, "not-found", 127, "tidegate: tool: command not found"),
        (errno.EACCES, "not-executable", 126, "tidegate: tool: permission denied"),
        (errno.ENOENT, "interpreter", 126, "tidegate: tool: the interpreter that its first line names cannot be run"),
        (errno.ENOEXEC, "cannot", 126, "tidegate: tool: this machine cannot execute it (not a program for it)"),
        (errno.E2BIG, "cannot", 126, "tidegate: tool: argument list too long"),
    ],
)
def test_why_a_command_did_not_run(code: int, kind: str, status: int, sentence: str) -> None:
    """HLD-16: 127 where it was not found, 126 for all else, and one line that says why."""
    outcome = not_executed(code, kind)
    assert (outcome.exit_status, outcome.started, outcome.source) == (status, False, "tidegate")
    assert exec_sentence(outcome, "tool") == sentence


def test_a_commands_name_is_escaped_in_the_line() -> None:
    """A name with control bytes or undecodable ones cannot paint on the terminal."""
    assert "\x1b" not in exec_sentence(not_executed(errno.ENOENT, "not-found"), "\x1b[2Jx\udcff\n")
    assert "no such file" in exec_sentence(not_executed(errno.ENOENT, "not-found"), "./tool")


def end_by(expression: str) -> int:
    """Return how a process ends that ends by this expression."""
    source = os.path.dirname(os.path.dirname(tidegate.__file__))
    script = (
        f"import sys\nsys.path.insert(0, {source!r})\nfrom tidegate.runtime.outcome import *\n"
        f"print('flushed')\n{expression}"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, start_new_session=True)
    assert done.stdout == b"flushed\n"
    assert done.stderr == b""
    return done.returncode


def test_the_front_ends_as_the_command_did() -> None:
    """HLD-9, HLD-16: by status, by SIGINT where that was it, for its whole group where it was typed."""
    assert end_by("die_like(ended(7 << 8))") == 7
    assert end_by("die_like(ended(15))") == 143
    assert end_by("die_like(ended(2))") == -2
    assert end_by("die_like(ended(2, typed=True))") == -2
    assert end_by("die_like(ended(2, gate_lost=True))") == 70


def test_a_value_that_never_started_is_tidegates() -> None:
    """Asked to end before the command began: nothing of the command's is in that status."""
    assert Outcome(143, 15, started=False).source == "tidegate"
