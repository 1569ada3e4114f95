"""The log of what tasks on this machine's own network try around their gate: that there is one to read (JRN-3).

Only for root, whose tasks those are; in a namespace of its own a task has a log of its own, which its hold needs.
"""

from __future__ import annotations

import os

from tidegate.doctor.check import OK, WARN, Check
from tidegate.holds import attempt_log
from tidegate.holds.uid_table import LOG_GROUP

_NAME = "attempts log"


def check_attempts() -> list[Check]:
    """Return the row, none for an ordinary user."""
    if os.geteuid() != 0:
        return []
    kind = attempt_log.kind(LOG_GROUP)
    if kind == attempt_log.NFLOG:
        return [Check(_NAME, OK)]
    fix = "modprobe nfnetlink_log; then end all tasks of the hold uid, and start again"
    if kind == attempt_log.KERNEL:
        return [Check(_NAME, WARN, "no nfnetlink_log: read from the kernel's own log, which drops lines", fix)]
    what = "what tasks of the hold uid try around their gate is not recorded, only what the gate refuses"
    return [Check(_NAME, WARN, what, fix)]
