"""The set-up command of a policy (`setup:`, POL-7): run once before a task's first command, in a hold of its own.

Rules of the file:

* It is confined as the task is, in namespaces that end with it; its phase is `install`, and the gate is the same.
* Its standard input is the terminal, where that is one, else nothing: what is piped in is for the command. All it
  writes goes to standard error, so that what is piped out is the command's alone.
* Whatever it does but end with 0 ends the run: a task never begins on what is half set up.
* What the person named is what the task gets: a set-up command that led a shared path elsewhere ends the run, too.

Only imported where a policy has a set-up command.
"""

from __future__ import annotations

import os

from tidegate.holds.stdio import Relay, StdioPlan, Treatment
from tidegate.model.errors import EXIT_CANNOT_START
from tidegate.runtime.outcome import Outcome, exec_sentence
from tidegate.runtime.signals import ENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence

    from tidegate.runtime.front import Front
    from tidegate.runtime.signals import SignalInbox
else:
    import _signal  # signal itself makes enums at each start

_NOT_RUN = "the command was not run"
_TERMINAL_SIGNALS = (_signal.SIGTTIN, _signal.SIGTTOU)


def set_up(
    launch: Callable[[StdioPlan], Front],
    command: tuple[str, ...],
    places: Sequence[str],
    stdio: StdioPlan,
    inbox: SignalInbox,
) -> tuple[Outcome, str] | None:
    """Run the set-up command; None where it went well, else how the run ends and a sentence that says why.

    `launch` gives the front of a command that gets these standard streams. `places` are paths that the next hold is
    made of and this command may be able to replace. Where nobody asked for the end, the exit status is 78: any other
    belongs to the command, and that has not run (HLD-16).

    Raises:
        StartError: as a launch does.
    """
    real = [os.path.realpath(place) for place in places]
    before = {number: _signal.getsignal(number) for number in _TERMINAL_SIGNALS}
    try:
        outcome = launch(setup_streams(stdio)).run()
    finally:
        # A front ignores them for a terminal's sake, and what is launched next would inherit that.
        for number, handler in before.items():
            _signal.signal(number, _signal.SIG_DFL if handler is None else handler)
    if outcome.gate_lost:
        return outcome, ""  # the front has said so
    asked = outcome.signal if outcome.signal in ENDING else inbox.ended_by or inbox.pending_end()
    if asked:
        ended = Outcome(128 + asked, asked, started=False, typed=outcome.typed)
        return ended, f"the set-up command was ended by signal {asked}, and {_NOT_RUN}"
    if outcome.exec_kind:
        why = exec_sentence(outcome, command[0]).partition(": ")[2]
        sentence = f"the set-up command cannot be run: {why}"
    elif outcome.signal:
        sentence = f"the set-up command was ended by signal {outcome.signal}, and {_NOT_RUN}"
    elif outcome.exit_status:
        sentence = f"the set-up command ended with {outcome.exit_status}, and {_NOT_RUN}"
    else:
        moved = [place for place, was in zip(places, real, strict=True) if os.path.realpath(place) != was]
        if not moved:
            return None
        sentence = f"the set-up command made a symbolic link of {moved[0]!a}, and {_NOT_RUN}"
    return Outcome(EXIT_CANNOT_START, started=False), sentence


def setup_streams(stdio: StdioPlan) -> StdioPlan:
    """Return what a set-up command gets where the command gets `stdio`."""
    first, _, last = stdio.treatments
    source = -1 if first is Treatment.PTY else os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    sink = stdio.task_fds[2]
    relays: tuple[Relay, ...] = ()
    if last is Treatment.PIPE:
        reading, sink = os.pipe()
        os.set_blocking(reading, False)
        relays = (Relay(2, reading, inward=False),)
    return StdioPlan(
        (first if first is Treatment.PTY else Treatment.INHERIT, last, last),
        (source, sink, sink),
        relays,
        stdio.terminal if Treatment.PTY in (first, last) else None,
    )


def look_again(stdio: StdioPlan) -> StdioPlan:
    """Return the plan with its terminal as it is now: a window may have been resized, a job put in front, meanwhile."""
    if stdio.terminal is None:
        return stdio
    import termios
    from fcntl import ioctl

    terminal = stdio.terminal
    try:
        foreground = os.tcgetpgrp(terminal.fd) == os.getpgrp()
    except OSError:
        foreground = True  # as stdio.py has it
    try:
        attributes = termios.tcgetattr(terminal.fd)
        size = ioctl(terminal.fd, termios.TIOCGWINSZ, bytes(8))
    except (OSError, termios.error):
        return stdio  # gone; the front finds that out
    return stdio.replace(terminal=terminal.replace(attributes=attributes, size=size, foreground=foreground))
