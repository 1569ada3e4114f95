"""The one error tree.

    TidegateError          a person reads `what` (one sentence) and `fix` (what to write or run instead)
    ├── UsageError         exit 2: the command line or the text of a policy
    ├── StartError         exit 78: the task cannot start as asked
    │   └── WithoutGateError   a file given for a policy asks for no gate
    ├── GateLostError      exit 70: the gate went away while the task ran
    └── NotSavedError      what was to be kept is not on the disk; nothing may be built on it

Foreign exceptions are mapped to these where they enter; what gets through is a bug and says so.
"""

from __future__ import annotations

EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_GATE_LOST = 70  # EX_SOFTWARE of sysexits.h
EXIT_REFUSAL = 77  # EX_NOPERM: --fail-on-refusal
EXIT_CANNOT_START = 78  # EX_CONFIG
EXIT_NOT_EXECUTABLE = 126  # POSIX shell, "Command Search and Execution"
EXIT_NOT_FOUND = 127


def told_of_bug(error: BaseException) -> str:
    """Return what kind of exception this is and where it was raised, for whoever mends it.

    Never its text: a foreign exception quotes what it could not read, and that may be a key of somebody's (INS-5).
    """
    trace, where = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f" at {'/'.join(code.co_filename.split('/')[-2:])}:{trace.tb_lineno}"
        trace = trace.tb_next
    said = error.strerror if isinstance(error, OSError) else None  # the system's own words
    return type(error).__name__ + where + (f": {said}" if said else "")


class TidegateError(Exception):
    """Base of all errors a person sees. `code` is stable, `exit_status` is what the process ends with."""

    exit_status = EXIT_CHECK_FAILED

    def __init__(self, what: str, *, fix: str = "", code: str = "error") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.code = code

    def __str__(self) -> str:
        text = f"{self.what}: {self.fix}" if self.fix else self.what
        # What is at fault is often quoted, and must not move a cursor or turn the writing direction (ASK-6).
        if text.isprintable():
            return text
        return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


class UsageError(TidegateError):
    """The command line or a policy's text is wrong."""

    exit_status = EXIT_USAGE


class StartError(TidegateError):
    """The task cannot start as asked; nothing of it has run."""

    exit_status = EXIT_CANNOT_START


class WithoutGateError(StartError):
    """A file that was given for a policy asks for no gate at all: `hold` is the hold that it means.

    Whoever cannot start that hold says it as an error.
    """

    def __init__(self, what: str, hold: str) -> None:
        option = "--open-network" if hold == "open" else "--no-network"
        super().__init__(what, fix=f"give {option} in place of --policy", code="without-gate")
        self.hold = hold


class GateLostError(TidegateError):
    """The gate ended while the task still ran."""

    exit_status = EXIT_GATE_LOST


class NotSavedError(TidegateError):
    """A record could not be saved, or not be read back."""
