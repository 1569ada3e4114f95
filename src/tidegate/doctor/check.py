"""What a check of doctor says: one row, with the command that mends it."""

from __future__ import annotations

from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

OK, WARN, FAIL = "ok", "warn", "fail"


class Check(Value):
    """One row. `fix` is what to do where it is not `ok`; `mend` does it, where that is safe without a person."""

    name: str
    state: str
    what: str = ""
    fix: str = ""
    mend: Callable[[], None] | None = None
