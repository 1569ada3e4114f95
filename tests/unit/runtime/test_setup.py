"""tidegate.runtime.setup: in parts; the whole of it is in tests/unit/cli/test_run_setup.py."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tidegate.holds.stdio import Relay, StdioPlan, TerminalState, Treatment
from tidegate.runtime.outcome import Outcome
from tidegate.runtime.setup import look_again, set_up, setup_streams
from tidegate.runtime.signals import SignalInbox

INHERIT, PIPE, PTY = Treatment.INHERIT, Treatment.PIPE, Treatment.PTY


def _terminal(fd: int = -1) -> TerminalState:
    return TerminalState(fd, own=True, attributes=[], size=bytes(8), foreground=True, full=False)


@pytest.mark.parametrize(
    ("treatments", "fds", "has_terminal", "sinks"),
    [
        ((INHERIT, INHERIT, INHERIT), (0, 1, 2), False, 2),
        ((PTY, PTY, PTY), (-1, -1, -1), True, -1),
        ((PTY, INHERIT, INHERIT), (-1, 1, 2), True, 2),
        ((INHERIT, PTY, INHERIT), (0, -1, 2), False, 2),
        ((INHERIT, INHERIT, PTY), (0, 1, -1), True, -1),
    ],
)
def test_output_goes_to_standard_error_and_input_is_the_terminal_or_nothing(
    treatments: tuple[Treatment, Treatment, Treatment], fds: tuple[int, int, int], has_terminal: bool, sinks: int
) -> None:
    """HLD-9: of what is piped in nothing is read, into what is piped out nothing is written."""
    terminal = _terminal() if PTY in treatments else None
    made = setup_streams(StdioPlan(treatments, fds, (), terminal))
    source = made.task_fds[0]
    assert made.task_fds[1:] == (sinks, sinks)
    assert (made.terminal is not None) == has_terminal
    assert made.relays == ()
    if treatments[0] is PTY:
        assert source == -1
    else:
        assert os.readlink(f"/proc/self/fd/{source}") == "/dev/null"
        assert not os.get_inheritable(source)
        os.close(source)


def test_a_socket_as_standard_error_gets_a_pipe_of_its_own() -> None:
    """HLD-13: the pipe made for the command is not used up by the set-up command."""
    reading, writing = os.pipe()
    plan = StdioPlan((INHERIT, INHERIT, PIPE), (0, 1, writing), (Relay(2, reading, False),))
    made = setup_streams(plan)
    (relay,) = made.relays
    assert (relay.outside, relay.inward) == (2, False)
    assert made.task_fds[1] == made.task_fds[2] not in (writing, reading)
    os.write(made.task_fds[2], b"x")
    assert os.read(relay.pipe, 9) == b"x"
    for fd in (reading, writing, relay.pipe, made.task_fds[0], made.task_fds[2]):
        os.close(fd)


def test_the_terminal_is_looked_at_again() -> None:
    """HLD-9: a window that was resized during the set-up has its new size in the command's terminal."""
    import fcntl
    import termios

    master, slave = os.openpty()
    plan = StdioPlan((PTY, PTY, PTY), (-1, -1, -1), (), _terminal(slave))
    size = b"\x11\0\x22\0" + bytes(4)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)
    again = look_again(plan).terminal
    assert again is not None
    assert (again.size, again.fd, again.attributes) == (size, slave, termios.tcgetattr(slave))
    os.close(master)
    os.close(slave)
    assert look_again(plan) == plan  # gone: the front finds that out
    without = StdioPlan((INHERIT, INHERIT, INHERIT), (0, 1, 2))
    assert look_again(without) is without


class _Front:
    """How a front ends, and what its command did meanwhile."""

    def __init__(self, outcome: Outcome, act: Any = None) -> None:
        self.outcome = outcome
        self.act = act

    def run(self) -> Outcome:
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        if self.act is not None:
            self.act()
        return self.outcome


def _ended(outcome: Outcome, *places: str, act: Any = None, sent: int = 0) -> tuple[Outcome, str] | None:
    inbox = SignalInbox.install()
    plan = StdioPlan((PTY, PTY, PTY), (-1, -1, -1), (), _terminal())
    try:
        if sent:
            os.kill(os.getpid(), sent)
        return set_up(lambda _streams: _Front(outcome, act), ("x",), places, plan, inbox)  # type: ignore[arg-type, return-value]
    finally:
        inbox.restore()


@pytest.mark.parametrize(
    ("outcome", "status", "begins"),
    [
        (Outcome(3), 78, "the set-up command ended with 3,"),
        (Outcome(137, 9), 78, "the set-up command was ended by signal 9,"),
        (Outcome(130, 2, typed=True), 130, "the set-up command was ended by signal 2,"),
        (Outcome(143, 15), 143, "the set-up command was ended by signal 15,"),
        (Outcome(127, started=False, exec_kind="not-found"), 78, "the set-up command cannot be run: x: command not"),
        (Outcome(70, gate_lost=True), 70, ""),
    ],
)
def test_what_keeps_the_command_from_being_run(outcome: Outcome, status: int, begins: str) -> None:
    """HLD-16: 78 but where somebody ended it, or the gate was lost."""
    ended = _ended(outcome)
    assert ended is not None
    assert (ended[0].exit_status, ended[0].source) == (status, "tidegate")
    assert ended[1].startswith(begins)
    assert ended[0].typed == outcome.typed


def test_a_set_up_that_went_well_leaves_nothing_behind() -> None:
    """HLD-9: what its front ignored for the terminal's sake is not ignored by what is launched next."""
    before = signal.getsignal(signal.SIGTTIN)
    assert _ended(Outcome(0)) is None
    assert signal.getsignal(signal.SIGTTIN) == before


def test_a_signal_that_it_survived_ends_the_run() -> None:
    """HLD-9: SIGTERM to `run` ends all, though the set-up command ended with 0; another signal does not."""
    ended = _ended(Outcome(0), sent=signal.SIGTERM)
    assert ended is not None
    assert (ended[0].exit_status, ended[0].signal) == (143, 15)
    assert _ended(Outcome(0), sent=signal.SIGUSR1) is None


def test_a_place_led_elsewhere_ends_the_run(tmp_path: Path) -> None:
    """HLD-14: the next hold is made of what the person named."""
    place = tmp_path / "shared"
    place.mkdir()

    def replace() -> None:
        place.rmdir()
        place.symlink_to("/run")

    assert _ended(Outcome(0), str(place)) is None
    ended = _ended(Outcome(0), str(place), act=replace)
    assert ended is not None
    assert ended[1] == f"the set-up command made a symbolic link of '{place}', and the command was not run"
    assert _ended(Outcome(0), str(place)) is None  # it was one before
