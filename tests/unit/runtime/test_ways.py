"""tidegate.runtime.ways; the front with a real gate is tried in test_front.py."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container.life import Life
from tidegate.runtime.outcome import GATE_GONE, WAY_GONE
from tidegate.runtime.ways import (
    LOOK,
    NOT_SHUT,
    RELAY_BACK,
    RELAY_STOPPED,
    SERVER_BACK,
    SERVER_STOPPED,
    Ways,
    peer_of,
)

if TYPE_CHECKING:
    from tidegate.runtime.comeback import Comeback
    from tidegate.runtime.server_sign import ServerSign


def test_the_end_of_the_gate_is_the_tasks_and_said_once() -> None:
    """HLD-7: what the gate says is heard before; a gate that says why is believed."""
    gate, end = os.pipe()
    ways = Ways(gate, lambda data: data.decode())
    assert ways.look({}) == ""
    os.write(end, b"why")
    assert ways.look({gate: 1}) == "why"
    os.close(end)
    assert ways.look({gate: 1}) == GATE_GONE
    assert ways.watched() == ()
    assert ways.look({gate: 1}) == ""
    os.close(gate)


def test_the_end_of_the_way_is_the_tasks_and_said_once() -> None:
    """HLD-7: a relay that ended; where there is none, and no gate, there is nothing to wait for."""
    ways = Ways(None, way=7)
    assert ways.watched() == (7,)
    assert ways.look({7: 1}) == WAY_GONE
    assert ways.look({7: 1}) == ""
    assert Ways(None).watched() == ()


class _Back:
    """Comes back at once."""

    def __init__(self, returning: bool, gate: int) -> None:
        self.returning = returning
        self.gate = gate
        self.fd = -1
        self.closed = False

    def fileno(self) -> int:
        return self.fd

    def may_return(self) -> bool:
        return self.returning

    def begin(self) -> str:
        self.fd = 99
        return "gone"

    def hear(self) -> tuple[list[str], int, str]:
        self.fd = -1
        return ["back"], self.gate, "" if self.gate >= 0 else "lost"

    def close(self) -> None:
        self.closed = True


class _Sign:
    """A server that is silent while `silent` is so."""

    def __init__(self, can_shut: bool = True) -> None:
        self.silent = self.closed = False
        self.shuts: list[bool] = []
        self.pids: list[int] = []
        self._can_shut = can_shut

    def is_silent(self, _now: float) -> bool:
        return self.silent

    def shut(self, *, shut: bool) -> bool:
        self.shuts.append(shut)
        return self._can_shut

    def renew(self, pid: int) -> None:
        self.pids.append(pid)

    def close(self) -> None:
        self.closed = True


def _with(back: _Back | None, gate: int, said: list[str], sign: _Sign | None = None) -> Ways:
    comeback: Comeback | None = back  # type: ignore[assignment]
    server: ServerSign | None = sign  # type: ignore[assignment]
    ways = Ways(gate, lambda data: data.decode(), comeback=comeback, server=server)
    ways.tell = said.append
    return ways


def test_a_task_that_may_return_is_not_ended_by_the_end_of_its_gate() -> None:
    """HLD-8: it is led to the next one, which is then what is watched; what a server says of others still counts."""
    gate, end = os.pipe()
    said: list[str] = []
    ways = _with(_Back(returning=True, gate=42), gate, said)
    os.write(end, b"the server is stopping")
    assert ways.look({gate: 1}) == ""
    os.close(end)
    assert ways.look({gate: 1}) == ""
    assert ways.watched() == (99,)
    assert ways.look({99: 1}) == ""
    assert (said, ways.watched()) == (["gone", "back"], (42,))
    ways.close()
    os.close(gate)


def test_a_task_that_was_ended_or_finds_no_server_is() -> None:
    """HLD-7: an end that is meant for this task alone, and a way that leads nowhere."""
    gate, end = os.pipe()
    said: list[str] = []
    ways = _with(_Back(returning=False, gate=-1), gate, said)
    os.write(end, b"this task was ended")
    assert ways.look({gate: 1}) == "this task was ended"
    os.close(end)
    assert ways.look({gate: 1}) == ""
    assert ways.look({99: 1}) == "lost"
    os.close(gate)


@pytest.mark.parametrize("returns", [True, False])
def test_a_server_that_was_stopped_is_no_way_until_it_goes_on(returns: bool) -> None:
    """HLD-7: said once each time, of a task that may go to the next one and of any other; looked for all the while."""
    gate, end = os.pipe()
    said: list[str] = []
    sign = _Sign()
    ways = _with(_Back(returning=False, gate=42) if returns else None, gate, said, sign)
    assert ways.patience() == LOOK
    assert ways.attend(0.1) == ""
    for silent in (True, True, False, False, True):
        sign.silent = silent
        assert ways.attend(1.0) == ""
    assert (said, sign.shuts) == ([SERVER_STOPPED, SERVER_BACK, SERVER_STOPPED], [True, False, True])
    os.close(end)
    assert ways.look({gate: 1}) == ("" if returns else GATE_GONE)
    assert sign.shuts == [True, False, True, *([False] if returns else [])]  # one that ended leaves nothing shut
    assert ways.patience() is None
    ways.close()
    assert sign.closed
    os.close(gate)


def test_a_task_that_cannot_be_cut_off_from_a_silent_server_ends() -> None:
    """HLD-7: it would hang otherwise."""
    gate, end = os.pipe()
    said: list[str] = []
    sign = _Sign(can_shut=False)
    ways = _with(None, gate, said, sign)
    sign.silent = True
    assert ways.attend(1.0) == NOT_SHUT
    assert ways.attend(2.0) == ""
    assert said == []
    os.close(end)
    os.close(gate)


def test_who_has_taken_the_command_in_is_who_is_watched() -> None:
    """HLD-8: the process at the other end of the new channel (SO_PEERCRED); 0 for what is no such socket."""
    gate, end = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    sign = _Sign()
    ways = _with(_Back(returning=True, gate=ours.fileno()), gate, [], sign)
    os.close(end)
    ways.look({gate: 1})
    ways.look({99: 1})
    assert sign.pids == [os.getpid()]
    assert peer_of(gate) == 0
    for one in (ours, theirs):
        one.close()
    os.close(gate)


def test_a_way_that_is_silent_is_said_and_lost_after_a_while() -> None:
    """HLD-7: within about a second it is said and on record; answers bring it back; for good it is the task's end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    for one in (ours, theirs):
        one.setblocking(False)
    said: list[str] = []
    noted: list[str] = []
    ways = Ways(None, way=ours.fileno(), life=Life(ours), note=noted.append)
    ways.tell = said.append
    ways.attend(0.0)
    theirs.send(theirs.recv(9))
    assert ways.look({ours.fileno(): 1}) == ""
    ways.attend(1.0)
    assert (said, noted) == ([], [])
    ways.attend(2.5)
    assert (said, noted) == ([RELAY_STOPPED], ["way.silent"])
    theirs.send(theirs.recv(9))
    ways.look({ours.fileno(): 1})
    ways.attend(2.6)
    assert (said[1:], noted[1:]) == ([RELAY_BACK], ["way.back"])
    ways.attend(4.0)
    assert ways.attend(20.0) == WAY_GONE
    assert ways.attend(21.0) == ""
    assert ways.patience() is None
    ours.close()
    theirs.close()


def test_an_answer_that_waits_for_a_front_which_did_not_run_is_no_silence() -> None:
    """HLD-7: seconds late it is taken for what it is; so is the end of a relay."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    for one in (ours, theirs):
        one.setblocking(False)
    said: list[str] = []
    ways = Ways(None, way=ours.fileno(), life=Life(ours))
    ways.tell = said.append
    ways.attend(0.0)
    theirs.send(theirs.recv(9))
    assert ways.attend(30.0) == ""
    assert ways.attend(40.0) == ""
    theirs.close()
    assert ways.attend(42.0) == WAY_GONE
    assert said == []
    ours.close()
