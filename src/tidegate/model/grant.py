"""What lets a connection through that a person was asked about, for as long as it lasts (ASK-7)."""

from __future__ import annotations

from tidegate.model.value import Value


class Grant(Value):
    """The part of an answer that the gate needs: which question was answered, and how many bytes it is good for.

    All connections under one grant share its bytes, both directions added. None is no bound.
    """

    question: int
    bytes: int | None = None
