"""The guard of one task: what it covers, what it holds, and what it says."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest

from tidegate.inspect import model_watch
from tidegate.inspect.model_watch import Guard, Look
from tidegate.model.reason import Reason

API = ("api.anthropic.com", 443)
GOOGLE = ("generativelanguage.googleapis.com", 443)
OPENAI = ("api.openai.com", 443)
JSON = [(b"Content-Type", b"application/json")]
GOOD = b'{"model":"x","messages":[]}'
BAD = b'{"model":"x","messages":[],"mcp_servers":[{"type":"url","url":"https://x"}]}'


def look(guard: Guard, *, place: Any = API, method: str = "POST", target: bytes = b"/v1/messages", **more: Any) -> Look:
    """Begin to look at a call."""
    options = {"fields": JSON, "socket": False, "empty": False, **more}
    fields = options.pop("fields")
    return guard.look(place, method, target, fields, **options)


def test_it_covers_what_it_was_made_for() -> None:
    """INS-8: known services of the policy, at their port; others are not its business."""
    guard = Guard([API, ("llm.example.com", 443)])
    assert guard.covers(*API)
    for host, port in (("api.anthropic.com", 80), ("llm.example.com", 443), OPENAI):
        assert not guard.covers(host, port)


def test_a_call_in_pieces_passes_as_it_is() -> None:
    """INS-8: what was looked at is what is sent; the room is given back."""
    guard = Guard([API], room=1000)
    one = look(guard)
    assert (one.why, one.body) == ("", True)
    for at in range(len(GOOD)):
        one.take(memoryview(GOOD)[at : at + 1])
    assert guard.left == 1000 - len(GOOD)
    assert (one.done(), one.why) == (GOOD, "")
    one.let_go()
    one.let_go()
    assert guard.left == 1000


def test_a_coded_call_is_sent_plain() -> None:
    """INS-8: nobody behind us decodes it another way."""
    one = look(Guard([API]), fields=[*JSON, (b"Content-Encoding", b"gzip")])
    one.take(gzip.compress(GOOD))
    assert (one.done(), one.why) == (GOOD, "")
    bad = look(Guard([API]), fields=[*JSON, (b"content-encoding", b"gzip")])
    bad.take(gzip.compress(BAD))
    assert bad.done() == b""
    assert "mcp_servers" in bad.why
    torn = look(Guard([API]), fields=[*JSON, (b"content-encoding", b"gzip")])
    torn.take(b"no gzip")
    assert (torn.done(), torn.reason) == (b"", Reason.MODEL_GUARD)


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-8: one body, a body that grows as it is decoded, and all of a task's at once."""
    monkeypatch.setattr(model_watch, "MOST", 50)
    guard = Guard([API], room=120)
    large = look(guard)
    large.take(bytes(51))
    assert (large.reason, large.reason.status) == (Reason.MODEL_BODY, 413)
    assert guard.left == 120
    bomb = look(guard, fields=[*JSON, (b"Content-Encoding", b"gzip")])
    bomb.take(gzip.compress(bytes(10_000)))
    assert (bomb.done(), bomb.reason) == (b"", Reason.MODEL_BODY)
    held = [look(guard) for _ in range(3)]
    for one in held:
        one.take(bytes(45))
    assert [one.reason for one in held] == [Reason.ALLOWED, Reason.ALLOWED, Reason.OUT_OF_RESOURCES]
    for one in held:
        one.let_go()
    assert guard.left == 120


@pytest.mark.parametrize(
    ("more", "reason", "says"),
    [
        ({"target": b"/v1/files"}, Reason.MODEL_GUARD, "no agent calls POST here"),
        ({"method": "DELETE"}, Reason.MODEL_GUARD, "no agent calls DELETE here"),
        ({"socket": True, "method": "GET"}, Reason.MODEL_SOCKET, "looked at"),
        ({"fields": []}, Reason.MODEL_GUARD, "application/json"),
        ({"method": "GET", "target": b"/v1/models"}, Reason.MODEL_GUARD, "has a body"),
    ],
)
def test_what_is_refused_by_its_head(more: dict[str, Any], reason: Reason, says: str) -> None:
    """INS-8: nothing of its body is awaited."""
    one = look(Guard([API]), **more)
    assert (one.reason, says in one.why, one.body) == (reason, True, False)


def test_what_has_no_body_is_not_awaited() -> None:
    """INS-8: models are listed, and telemetry is passed on."""
    listed = look(Guard([API]), method="GET", target=b"/v1/models?limit=1000", fields=[], empty=True)
    assert (listed.why, listed.body) == ("", False)
    told = look(Guard([API]), target=b"/api/event_logging/batch")
    assert (told.why, told.body) == ("", False)


def test_a_refusal_has_the_form_of_the_service() -> None:
    """INS-8, GAT-7: an agent shows the message; the path on record has no query."""
    one = look(Guard([API]))
    one.take(BAD)
    one.done()
    assert json.loads(one.answer("no")) == {"type": "error", "error": {"type": "permission_error", "message": "no"}}
    path = look(Guard([API]), target=b"/v1/files?secret=1")
    assert path.path == "/v1/files"
    assert json.loads(path.answer("no"))["error"]["type"] == "permission_error"
    said = look(Guard([OPENAI]), place=OPENAI, target=b"/v1/files")
    assert json.loads(said.answer("no"))["error"] == {
        "message": "no",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_guard",
    }
    google = look(Guard([GOOGLE]), place=GOOGLE, target=b"/v1beta/files")
    assert json.loads(google.answer("no"))["error"] == {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}
    factory = look(Guard([("api.factory.ai", 443)]), place=("api.factory.ai", 443), target=b"/api/llm/a/v1/messages")
    factory.take(BAD)
    factory.done()
    assert json.loads(factory.answer("no"))["type"] == "error"  # the shape of the path, not of the host


def test_a_body_in_the_smallest_of_pieces_takes_no_more_room_than_it_is_said_to() -> None:
    """INS-8: 128 MiB of a task are held at most, also where each chunk has two bytes, and nobody else pays for it."""
    one = look(Guard([API]))
    piece = memoryview(b"ab")
    tracemalloc.start()
    try:
        for _ in range(200_000):
            one.take(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 400_000
    one.let_go()
