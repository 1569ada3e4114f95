"""What a sink is, and what a receiver can say to a batch (JRN-6).

A sink sends what it is given and says what became of it; everything else (from where, how often, what is kept) is the
follower's. HTTP statuses are judged here once for all that post.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Final, Protocol

from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.journal.sinks.record import Record
    from tidegate.journal.sinks.target import Reply

TAKEN, LATER, SMALLER, REFUSED = "taken", "later", "smaller", "refused"
_LATER: Final = frozenset((408, 421, 425, 429))
_SETUP: Final = frozenset((401, 402, 403, 404, 405, 406, 407, 410, 411, 415, 426, 431, 451, 511))
LONGEST_WHY: Final = 200


class Outcome(Value):
    """What became of a batch.

    TAKEN: the receiver has it, but for `refused`, each by its place in the batch with why, and for `lost` records that
    it did not name; of `idle` there was nothing to send. LATER: nothing is known to have arrived; again, after at least
    `wait` seconds. SMALLER: too large for it. REFUSED: it would refuse the same for ever. `why` is what it answered.
    """

    state: str
    why: str = ""
    wait: float = 0.0
    refused: dict[int, str] = {}  # noqa: RUF012  a value: nobody changes it
    lost: int = 0
    idle: int = 0


class Sink(Protocol):
    """Somewhere records go. On its follower's thread, but for `abort`."""

    def send(self, batch: Sequence[Record]) -> Outcome:
        """Send a batch, in order. Blocks, for a bounded time.

        Raises:
            OSError, http.client.HTTPException: as LATER.
        """

    def abort(self) -> None:
        """End what is on its way: the server stops. From any thread."""

    def close(self) -> None:
        """Let go of what is open."""


def attempted(sink: Sink, batch: Sequence[Record]) -> Outcome:
    """Send a batch, and return what became of it, whatever happened."""
    try:
        return sink.send(batch)
    except (OSError, http.client.HTTPException) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        return Outcome(LATER, cleaned(why))
    except Exception as error:  # noqa: BLE001  a bug in one sink is that sink's error, and loses nothing
        return Outcome(LATER, f"a bug of tidegate: {type(error).__name__}: {cleaned(error)}")


def judged(reply: Reply) -> Outcome:
    """Return what a status says of the whole batch.

    What only a person can put right (a wrong key, a wrong path, a redirect) is no fault of the records: they wait.
    """
    status = reply.status
    why = f"it answers {status}"
    if 200 <= status < 300:
        return Outcome(TAKEN, why)
    if status == http.client.REQUEST_ENTITY_TOO_LARGE:
        return Outcome(SMALLER, why)
    if status in _LATER or status in _SETUP or status < 400 or status >= 500:
        return Outcome(LATER, why, reply.wait or 0.0)
    return Outcome(REFUSED, why)


def cleaned(text: object) -> str:
    """Return what a receiver says, as one short line without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:LONGEST_WHY])
