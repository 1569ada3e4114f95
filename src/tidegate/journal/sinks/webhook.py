"""The log as signed JSON lines to the operator's own address.

One POST a batch: `application/x-ndjson`, each line as it stands in the log, byte for byte, so that its hash is the next
one's `prev`. Signed as questions are (signature.py). `Idempotency-Key` names the batch's first and last record: a
receiver that has both has it all; one that cares for less tells lines by `seq` and `prev`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.journal.sinks.signature import signed
from tidegate.journal.sinks.sink import judged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.journal.sinks.record import Record
    from tidegate.journal.sinks.sink import Outcome
    from tidegate.journal.sinks.target import Target


class WebhookSink:
    """See the head of the file. `wall` gives Unix time in seconds."""

    def __init__(self, target: Target, *, wall: Callable[[], float]) -> None:
        self._target = target
        self._wall = wall

    def send(self, batch: Sequence[Record]) -> Outcome:
        """Post a batch."""
        body = b"".join(record.raw + b"\n" for record in batch)
        headers = signed(self._target.key, int(self._wall()), body) | {
            "Content-Type": "application/x-ndjson",
            "Idempotency-Key": f'"{batch[0].id}/{batch[-1].id}"',
        }
        return judged(self._target.post(body, headers))

    def abort(self) -> None:
        """End what is on its way."""
        self._target.abort()

    def close(self) -> None:
        """Nothing stays open."""
