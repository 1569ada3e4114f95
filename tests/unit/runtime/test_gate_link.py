"""tidegate.runtime.gate_link; the process behind it is tried in test_gate_process.py."""

from __future__ import annotations

import marshal
import os
import signal
from _socket import socketpair
from pathlib import Path

import pytest

from tidegate.model.errors import StartError
from tidegate.runtime.gate_link import GateLink


def _frame(value: object) -> bytes:
    body = marshal.dumps(value)
    return len(body).to_bytes(4, "big") + body


def test_warnings_of_a_running_gate_arrive_whatever_their_pieces() -> None:
    """JRN-5: a full disk is told to the person, however the bytes of the message come."""
    warned: list[str] = []
    link = GateLink(warned.append)
    data = _frame(("warn", "the disk is full")) + _frame(("failed", "what", "fix")) + _frame(("else", 1))
    for index in range(len(data)):
        link.heard(data[index : index + 1])
    link.close()
    assert warned == ["the disk is full", "what: fix"]


@pytest.mark.parametrize("cut", [0, 1, 4, 9, 30])
def test_what_the_loop_read_before_the_end_is_not_lost(cut: int) -> None:
    """JRN-1: the summary is whole, wherever the front's last read cut the stream of frames."""
    warned: list[str] = []
    link = GateLink(warned.append)
    pid, link.pid = link.pid, 0
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    link.channel.close()
    link.channel, gate = socketpair()
    data = _frame(("warn", "late")) + _frame(("summary", [("row",)], 3))
    link.heard(data[:cut])
    gate.sendall(data[cut:])
    assert link.finish() == ([("row",)], 3)
    assert warned == ["late"]
    gate.close()
    link.channel.close()


def test_a_gate_that_cannot_take_its_order_is_a_start_error() -> None:
    """HLD-7: what goes wrong in the gate's process before the task is exit 78 with what it was."""
    link = GateLink(print)
    link.configure({"task": "t1"})
    with pytest.raises(StartError) as raised:
        link.confirm()
    assert raised.value.exit_status == 78
    link.close()


def test_the_gates_own_reason_is_found_when_a_hold_finds_nobody() -> None:
    """HLD-7: what is said is what went wrong first, not that nobody answered because of it."""
    link = GateLink(print)
    assert link.why_not() is None
    link.configure({"task": "t1"})
    os.waitid(os.P_PID, link.pid, os.WEXITED | os.WNOWAIT)
    found = link.why_not()
    assert found is not None
    assert found.what
    link.close()


def test_closing_twice_or_without_an_order_leaves_no_process(tmp_path: Path) -> None:
    """HLD-8: a start that fails early leaves no gate behind."""
    link = GateLink(print)
    pid = link.pid
    link.close()
    link.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert os.listdir(tmp_path) == []


def test_what_a_gate_said_before_it_ended_is_not_lost_to_its_end() -> None:
    """HLD-7: its reason is kept for whoever asks after the first one has read it (a port that is taken)."""
    link = GateLink(print)
    pid, link.pid = link.pid, 0
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    link.channel.close()
    link.channel, gate = socketpair()
    gate.sendall(_frame(("failed", "port 80 is taken", "another")))
    gate.close()
    with pytest.raises(StartError, match="port 80 is taken"):
        link.confirm()
    why = link.why_not()
    assert why is not None
    assert (why.what, why.fix) == ("port 80 is taken", "another")
    link.channel.close()
