"""What names a task to the rest of the house."""

from __future__ import annotations

from tidegate.model.value import Value
from tidegate.model.verdict import Phase


class Task(Value):
    """One confined run: a short id that also names its kernel objects, its folder and its phase."""

    id: str
    folder: str
    phase: Phase = Phase.RUNTIME
