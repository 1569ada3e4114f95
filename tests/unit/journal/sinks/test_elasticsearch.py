"""tidegate.journal.sinks.elasticsearch: the bytes of `_bulk`, and what its answer says of each item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.sinks.receivers import Bulk, until
from tests.sinks.rig import Log, rig
from tests.unit.journal.sinks.test_record import record
from tidegate.journal.sinks.elasticsearch import _items, document
from tidegate.journal.sinks.sink import LATER, TAKEN
from tidegate.journal.sinks.target import Reply

if TYPE_CHECKING:
    from pathlib import Path


def test_a_document() -> None:
    """JRN-6: `create` with an id that is the same each time, and a source with a time as data streams want it."""
    one = record(host="h.test:443")
    action, source, end = document(one).split(b"\n")
    assert end == b""
    assert action == b'{"create":{"_id":"%s"}}' % one.id.encode()
    fields = json.loads(source)
    assert fields["@timestamp"] == "2026-11-29T00:00:00.125Z"
    assert (fields["seq"], fields["host"], fields["severity"], fields["hash"]) == (1, "h.test:443", 4, one.hash)


@pytest.mark.parametrize(
    ("answer", "state", "refused"),
    [
        ([("a", 201)], TAKEN, []),
        ([("a", 409)], TAKEN, []),
        ([("a", 400)], TAKEN, [0]),
        ([("a", 429)], LATER, []),
        ([("a", 503)], LATER, []),
        ([("a", 404)], LATER, []),
        ([("b", 201)], LATER, []),
        ([], LATER, []),
        ([("a", 201), ("a", 201)], LATER, []),
        ("<html>log in</html>", LATER, []),
        ("[" * 100_000, LATER, []),
        ('{"items":{}}', LATER, []),
        ('{"items":[{"index":{}}]}', LATER, []),
        ("", LATER, []),
    ],
)
def test_what_the_answer_says_of_each_item(answer: Any, state: str, refused: list[int]) -> None:
    """JRN-6: 201 and 409 are there, 400 is refused for ever, all else is tried again; other pages confirm nothing."""
    one = record()
    if isinstance(answer, list):
        items = [{"create": {"_id": one.id if name == "a" else name, "status": status}} for name, status in answer]
        answer = json.dumps({"errors": False, "items": items})
    outcome = _items(Reply(200, body=answer.encode()), [one])
    assert (outcome.state, list(outcome.refused)) == (state, refused)


def test_what_a_receiver_calls_an_error_is_a_word() -> None:
    """JRN-6: its reason may quote the record, and is not shown."""
    one = record()
    item = {"_id": one.id, "status": 400, "error": {"type": "a <b>\n", "reason": "x"}}
    body = json.dumps({"items": [{"create": item}]}).encode()
    assert _items(Reply(200, body=body), [one]).refused == {0: "an item is answered 400"}


@pytest.mark.parametrize(("key", "header"), [(b"a2V5", "ApiKey a2V5"), (b"u:p", "Basic dTpw")])
def test_the_key(tmp_path: Path, key: bytes, header: str) -> None:
    """JRN-6: an API key, or a user with a password; the answer is asked for in its short form."""
    log = Log(tmp_path / "a")
    wanted = log.blocked(1)
    with Bulk() as bulk:
        bulk.key = key
        with rig(log, bulk):
            until(lambda: bulk.seqs == wanted)
        _, path, headers, _ = bulk.got[0]
    assert headers["Authorization"] == header
    assert path == "/audit/_bulk?filter_path=errors,items.*._id,items.*.status,items.*.error.type"
    assert headers["Content-Type"] == "application/x-ndjson"
