"""What a check of doctor says: one row, with the command that mends it."""

from __future__ import annotations

from tidegate.model.value import Value

OK, WARN, FAIL = "ok", "warn", "fail"


class Check(Value):
    """One row. `fix` is what to do where it is not `ok`."""

    name: str
    state: str
    what: str = ""
    fix: str = ""
