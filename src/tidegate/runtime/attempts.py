"""What tasks on this machine's own network try around their gate: the log of it, opened for a gate once (JRN-3).

The hold's rules log for all tasks to one place, and one gate reads it: the server's, or that of the first `run` alone.
Whoever comes second, or has no log to read, does without: what goes around the gate is turned away and counted by the
table all the same, and a line says that it is not in the journal.
"""

from __future__ import annotations

import errno

from tidegate.holds import attempt_log
from tidegate.holds.uid_table import LOG_GROUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.around import Around
    from tidegate.gate.gate import Gate

ONLY_REFUSALS = "only what the gate refuses is recorded, not what the task tries around it"
TAKEN = f"another gate reads the kernel's log of what goes around (nflog group {LOG_GROUP}): {ONLY_REFUSALS}"
NONE = f"neither nfnetlink_log nor the kernel's log can be read here: {ONLY_REFUSALS}; see tidegate doctor"


def around_of(gate: Gate) -> tuple[Around, str]:
    """Return what takes the attempts of this gate's tasks, and why it hears of none, '' where it does.

    On the gate's thread. A log that could not be had is tried again for the next task.
    """
    from tidegate.gate.around import Around

    around = gate.around
    if around is None:
        around = gate.around = Around(gate)
    if around.reads:
        return around, ""
    try:
        kind, fd = attempt_log.open_attempts(LOG_GROUP)
    except OSError as error:
        return around, TAKEN if error.errno == errno.EBUSY else NONE
    if fd < 0:
        return around, NONE
    if kind == attempt_log.NFLOG:
        around.read_nflog(fd)
    else:
        around.read_kernel_log(fd)
    return around, ""
