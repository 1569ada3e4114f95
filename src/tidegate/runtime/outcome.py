"""How a task ended, what `run` ends with because of it (HLD-16), and the last thing the front does.

The exit status is the command's own, 126 or 127 where it could not be executed, 128+n where signal n ended it, and 70
where the gate was lost. `--status-file` tells 70 of the command's from 70 of ours (HLD-7).
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from _json import encode_basestring_ascii

from tidegate.model.errors import EXIT_GATE_LOST, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn
else:
    import _signal  # signal itself makes enums at each start


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
    if outcome.exec_errno == errno.ENOEXEC:
        return f"tidegate: {name}: this machine cannot execute it (not a program for it)"
    return f"tidegate: {name}: {os.strerror(outcome.exec_errno).lower()}"


def write_status_file(path: str, outcome: Outcome, **more: str | int | bool | None) -> None:
    """Write how the task ended as one line of JSON, at once or not at all.

    Raises:
        OSError: where it cannot be written; the caller says so.
    """
    fields: dict[str, str | int | bool | None] = {
        "source": outcome.source,
        "exit": outcome.exit_status,
        "signal": outcome.signal or None,
        "started": outcome.started,
        "gate_lost": outcome.gate_lost,
    }
    _write(path, fields | more)


def write_tidegate_status(path: str, exit_status: int, what: str) -> None:
    """Write that tidegate itself ended with this status (2, 70, 77, 78) and why.

    Raises:
        OSError: where it cannot be written.
    """
    _write(path, {"source": "tidegate", "exit": exit_status, "signal": None, "what": what})


def die_like(outcome: Outcome) -> NoReturn:
    """Flush and end with the outcome's status; where SIGINT ended the command, by SIGINT.

    bash stops a script on Ctrl-C only if the command died of it *and* bash had the signal too. In relay mode the
    keyboard led to the task alone, so the front passes the signal on to its process group as the terminal would have.
    """
    finish(outcome.exit_status, by_signal=outcome.signal if outcome.interrupted else 0, group=outcome.typed)


def say(line: str, *, raw: bool = False) -> None:
    """Write one line to standard error if that can be done without waiting; `raw` where a return is ours to add."""
    look = select.poll()
    try:
        look.register(2, select.POLLOUT)
        if look.poll(0):
            os.write(2, (line + ("\r\n" if raw else "\n")).encode("utf-8", "backslashreplace"))
    except OSError:
        return  # nobody can read it


def finish(exit_status: int, *, by_signal: int = 0, group: bool = False) -> NoReturn:
    """Flush what Python holds back and end at once, by a signal where one is given."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue
    if by_signal:
        _signal.signal(by_signal, _signal.SIG_DFL)
        os.kill(0 if group else os.getpid(), by_signal)
    os._exit(exit_status)


def _write(path: str, fields: dict[str, str | int | bool | None]) -> None:
    line = (
        "{" + ", ".join(f"{encode_basestring_ascii(key)}: {_json(value)}" for key, value in fields.items()) + "}\n"
    ).encode()
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        regular = True
    if not regular:  # /dev/stderr, /dev/fd/3, a named pipe: nothing to rename
        _write_all(os.open(path, os.O_WRONLY | os.O_CLOEXEC), line)
        return
    path = os.path.realpath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        _write_all(fd, line)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _write_all(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)


def _json(value: str | int | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else str(encode_basestring_ascii(value))
