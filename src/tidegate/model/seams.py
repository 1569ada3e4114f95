"""What the gate needs of rooms below it, as three small protocols (DESIGN: Asker, Recorder, Inspector).

`runtime/` wires real ones; the gate never imports the rooms that provide them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from tidegate.model.decision import Decision
    from tidegate.model.event import Event
else:
    Protocol = object


class Recorder(Protocol):
    """Takes events from the gate. Must not block and must not raise: a full disk never stops a task."""

    def record(self, event: Event) -> None:
        """Take one event."""

    def flush(self) -> None:
        """Write what was taken; called at the end of each turn of the reactor that recorded something."""


class Asker(Protocol):
    """Someone who may put a decision with verdict `ask` before a person."""

    def ask(self, task: str, decision: Decision, answer: Callable[[Decision], None]) -> Callable[[], None] | None:
        """Open or join the question for this task, host and port.

        Returns a callable that withdraws this connection, or None where nobody is asked: then `answer` is
        never called and the caller refuses at once. `answer` is called once, on the gate's thread, perhaps before
        this returns, with the decision turned into allow or deny.
        """

    def known(self, task: str, decision: Decision) -> Decision | None:
        """Return the decision that an answer from before makes of this one; None where there is none.

        For those whose command line asks no one: what a person said for the whole task counts for them too.
        """

    def failed(self, task: str, decision: Decision) -> None:
        """Hear that what a person allowed is refused all the same, by address (ADR-4)."""

    def spend(self, task: str, decision: Decision, count: int) -> bool:
        """Count bytes that moved under the decision's grant; False when it is good for no more, or is over."""


class Inspector(Protocol):
    """Says whether a destination is read inside TLS, and reads it. Memory only; the gate moves the bytes."""

    def inspects(self, decision: Decision) -> bool:
        """Whether this connection is terminated and read (INS-1)."""
