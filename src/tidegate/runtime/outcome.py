"""How a task ended, what `run` ends with because of it (HLD-16), and the last thing the front does.

The exit status is the command's own, 126 or 127 where it could not be executed, 128+n where signal n ended it, and 70
where the gate was lost. `--status-file` tells 70 of the command's from 70 of ours (HLD-7).
"""

from __future__ import annotations

import errno
import os
import select
import sys

from tidegate.model.errors import EXIT_GATE_LOST, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn
else:
    import _signal  # signal itself makes enums at each start


GATE_GONE = "tidegate: the gate is gone; the task's network is cut off and it is being ended"
GATE_GONE_LATE = "tidegate: the gate was gone before the command ended; its record may be incomplete"
WAY_GONE = "tidegate: the way to the gate is broken (its relay or certificate); the task is being ended"
WATCHER_GONE = "tidegate: what makes the task's connections is gone; it is being ended"


class Outcome(Value):
    """How the command ended.

    `signal` is what it died of, 0 where it exited. `started` is False where exec failed: then `exec_errno` and
    `exec_kind` (`not-found`, `not-executable`, `interpreter`, `cannot`) say why. `typed` means that the signal came
    from the keyboard through the task's own pty, so that the rest of the front's process group has not had it.
    """

    exit_status: int
    signal: int = 0
    started: bool = True
    gate_lost: bool = False
    exec_errno: int = 0
    exec_kind: str = ""
    typed: bool = False
    init_lost: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether the front should die of SIGINT too: a shell's script stops on Ctrl-C only then."""
        return self.signal == _signal.SIGINT and not self.gate_lost

    @property
    def source(self) -> str:
        """Who the exit status is from: `command` or `tidegate`."""
        return "tidegate" if self.gate_lost or self.init_lost or not self.started else "command"


def ended(wait_status: int, *, gate_lost: bool = False, typed: bool = False, init_lost: bool = False) -> Outcome:
    """Return the outcome for the raw status that wait(2) gave for the command."""
    number = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else 0
    status = 128 + number if number else os.WEXITSTATUS(wait_status)
    return Outcome(EXIT_GATE_LOST if gate_lost else status, number, True, gate_lost, typed=typed, init_lost=init_lost)


def gone_late(outcome: Outcome, sentence: str) -> Outcome:
    """Return the outcome of a command whose gate was found gone at its end, and say so, once.

    One that failed may have failed because of that: it is 70, as where the gate is lost earlier (HLD-7).
    """
    if outcome.gate_lost or not outcome.started:
        return outcome
    say(sentence)
    return outcome.replace(exit_status=EXIT_GATE_LOST, gate_lost=True) if outcome.exit_status else outcome


def not_executed(code: int, kind: str) -> Outcome:
    """Return the outcome for a command that could not be executed."""
    return Outcome(
        EXIT_NOT_FOUND if kind == "not-found" else EXIT_NOT_EXECUTABLE, started=False, exec_errno=code, exec_kind=kind
    )


def exec_sentence(outcome: Outcome, command: str) -> str:
    """Return the one line that says why the command did not run."""
    name = ascii(command)[1:-1]
    if outcome.exec_kind == "not-found":
        return f"tidegate: {name}: " + ("no such file" if "/" in command else "command not found")
    if outcome.exec_kind == "interpreter":
        return f"tidegate: {name}: the interpreter that its first line names cannot be run"
    if outcome.exec_errno == 0:
        return f"tidegate: {name}: its container could not be started"
    if outcome.exec_errno == errno.ENOEXEC:
        return f"tidegate: {name}: this machine cannot execute it (not a program for it)"
    return f"tidegate: {name}: {os.strerror(outcome.exec_errno).lower()}"


def die_like(outcome: Outcome) -> NoReturn:
    """Flush and end with the outcome's status; where SIGINT ended the command, by SIGINT.

    bash stops a script on Ctrl-C only if the command died of it *and* bash had the signal too. In relay mode the
    keyboard led to the task alone, so the front passes the signal on to its process group as the terminal would have.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue
    if outcome.interrupted:
        _signal.signal(outcome.signal, _signal.SIG_DFL)
        os.kill(0 if outcome.typed else os.getpid(), outcome.signal)
    os._exit(outcome.exit_status)


def say(line: str, *, raw: bool = False) -> None:
    """Write one line to standard error if that can be done without waiting; `raw` where a return is ours to add."""
    look = select.poll()
    try:
        look.register(2, select.POLLOUT)
        if look.poll(0):
            os.write(2, (line + ("\r\n" if raw else "\n")).encode("utf-8", "backslashreplace"))
    except OSError:
        return  # nobody can read it
