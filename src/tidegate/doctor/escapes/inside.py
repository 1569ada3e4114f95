"""The command that is held: runs the rows of one hold and prints as JSON what came of each.

Each row runs in a process of its own and reports the errno it ended with, `passed`, `false` where it saw something
wrong, or the signal that killed it.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.table import HELD, PASSED, TABLE
from tidegate.doctor.escapes.tools import PATIENCE, SaidError, begin

if TYPE_CHECKING:
    from tidegate.doctor.escapes.table import Row

_SAME = {"ENOTSUP": "EOPNOTSUPP"}  # two names of one number


def report(row: Row) -> str:
    """Run one row in a process of its own and name what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(4 * PATIENCE)
        os.write(writing, _answer(row).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return answer or (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "nothing")


def _answer(row: Row) -> str:
    begin(row.name)
    try:
        row.run()
    except SaidError as said:
        return str(said)
    except OSError as error:
        answer = errno.errorcode.get(error.errno or 0, str(error))
        return _SAME.get(answer, answer)
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is the row's answer)
        return f"false: {error!r}"
    return PASSED


def main() -> None:
    """Run the rows of this hold, or those that are named in HELD, and print the answers."""
    wanted = HELD.get("rows") or TABLE
    json.dump({name: report(TABLE[name]) for name in wanted if HELD["hold"] in TABLE[name].holds}, sys.stdout)
