"""tidegate.journal.sinks.sink: what a status says of a batch."""

from __future__ import annotations

import pytest

from tidegate.journal.sinks.sink import LATER, REFUSED, SMALLER, TAKEN, cleaned, judged
from tidegate.journal.sinks.target import Reply


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((status, TAKEN) for status in (200, 201, 202, 204)),
        *((status, LATER) for status in (301, 302, 307, 401, 403, 404, 407, 408, 425, 429, 500, 502, 503, 504)),
        (413, SMALLER),
        *((status, REFUSED) for status in (400, 409, 422)),
    ],
)
def test_statuses(status: int, state: str) -> None:
    """JRN-6: only what the records themselves cause is refused for ever."""
    assert judged(Reply(status)).state == state


def test_the_wait_that_is_asked_for_is_kept() -> None:
    """JRN-6: with 429 and 503 alike; what a receiver says is one short line."""
    assert judged(Reply(503, 5.0)).wait == 5.0
    assert judged(Reply(429)).wait == 0.0
    assert cleaned("a\r\n\x1b[2J" + "x" * 500) == "a   [2J" + "x" * 193
