"""The log as documents of an index or data stream: `_bulk` of Elasticsearch and OpenSearch.

Each record is a `create` whose `_id` is its number and hash, so a repetition is answered 409 and is there already. What
an item is answered counts for that item; an answer that does not speak of every item is no confirmation, whatever its
status: a login page answers 200 too. See "Bulk API" in the reference of either.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.journal.sinks.record import Record
    from tidegate.journal.sinks.target import Reply, Target

_PATH: Final = "_bulk?filter_path=errors,items.*._id,items.*.status,items.*.error.type"
_ANSWER: Final = 1 << 20  # bytes: 500 items of about 150
_CONFLICT: Final = 409
_WORDS = frozenset("abcdefghijklmnopqrstuvwxyz_")


class ElasticsearchSink:
    """See the head of the file. The target's path is the index; `headers` say who we are."""

    def __init__(self, target: Target, headers: dict[str, str]) -> None:
        self._target = target
        self._path = f"{target.path.rstrip('/')}/{_PATH}"
        self._headers = headers | {"Content-Type": "application/x-ndjson", "User-Agent": "tidegate"}

    def send(self, batch: Sequence[Record]) -> Outcome:
        """Create the documents of a batch."""
        body = b"".join(document(record) for record in batch)
        reply = self._target.post(body, self._headers, path=self._path, keep=_ANSWER)
        outcome = judged(reply)
        return _items(reply, batch, outcome.why) if outcome.state == TAKEN else outcome

    def abort(self) -> None:
        """End what is on its way."""
        self._target.abort()

    def close(self) -> None:
        """Nothing stays open."""


def document(record: Record) -> bytes:
    """Return the two lines that create a record's document."""
    action = {"create": {"_id": record.id}}
    source = {"@timestamp": record.at, **record.fields, "severity": record.severity, "hash": record.hash}
    return "".join(json.dumps(part, separators=(",", ":")) + "\n" for part in (action, source)).encode("ascii")


def _items(reply: Reply, batch: Sequence[Record], why: str = "") -> Outcome:
    try:
        items = [item["create"] for item in json.loads(reply.body)["items"]]
        found = [(item["_id"], int(item["status"]), _error(item)) for item in items]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        found = []
    if [one for one, _, _ in found] != [record.id for record in batch]:
        return Outcome(LATER, "it answers with something that is not the answer of _bulk")
    refused: dict[int, str] = {}
    for place, (_, status, error) in enumerate(found):
        if 200 <= status < 300 or status == _CONFLICT:
            continue
        said = f"an item is answered {status}" + (f" ({error})" if error else "")
        if status >= 500 or status in (401, 403, 404, 408, 429):
            return Outcome(LATER, said)  # those that are created by now are answered 409 then
        refused[place] = said
    return Outcome(TAKEN, why, refused=refused)


def _error(item: dict[str, Any]) -> str:
    kind = str(item.get("error", {}).get("type", ""))[:80]
    return kind if set(kind) <= _WORDS else ""
