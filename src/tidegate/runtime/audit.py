"""The action log, for what happens outside of a server: runs that are alone, and commands that change what tasks get.

A server and these write to one chain (journal/actions.py). Nothing of the log is loaded before there is something to
say.
"""

from __future__ import annotations

from tidegate.model.errors import StartError
from tidegate.runtime.state import key_folder, log_folder, make_private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tidegate.journal.actions import ActionLog


def open_log(state: str, *, clock: Callable[[], float], warn: Callable[[str], None]) -> ActionLog:
    """Open the log of a state folder. `clock` gives Unix time in seconds, `warn` takes a line.

    Raises:
        StartError: when it cannot be used.
    """
    from tidegate.journal.actions import ActionLog

    keys = key_folder(state)
    for path in (state, log_folder(state), keys):
        make_private_folder(path)
    return ActionLog(log_folder(state), keys, clock=clock, warn=warn)


def note(state: str, kind: str, *, clock: Callable[[], float], warn: Callable[[str], None], **fields: Any) -> None:
    """Write one line that is no task's. What has happened has happened: a log that cannot be written is said."""
    try:
        log = open_log(state, clock=clock, warn=warn)
    except StartError as error:
        warn(f"this is not in the action log: {error}")
        return
    log.append(kind, **fields)
    log.close()
