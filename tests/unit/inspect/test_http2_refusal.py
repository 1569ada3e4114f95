"""How a stream is refused in the terms of its client: text, JSON, gRPC, or the status alone (GAT-7, INS-3)."""

from __future__ import annotations

import json

import pytest

from tidegate.inspect.http2_refusal import refusal
from tidegate.model.reason import Reason

LINE = "a.test:443: why 100% not"
GRPC = [(b":method", b"POST"), (b"content-type", b"application/grpc+proto")]


@pytest.mark.parametrize("asked", [[], [(b"accept", b"*/*")], [(b"accept", b"text/html, application/json")]])
def test_it_is_a_line_of_text(asked: list[tuple[bytes, bytes]]) -> None:
    """GAT-7: for whoever reads anything, with the length it has."""
    fields, body = refusal(Reason.METHOD_NOT_ALLOWED, LINE, asked, method="PUT", room=65535)
    assert body == f"{LINE}\n".encode()
    assert dict(fields)[b":status"] == b"403"
    assert dict(fields)[b"content-type"] == b"text/plain"
    assert dict(fields)[b"content-length"] == str(len(body)).encode()
    assert b"method-not-allowed" in dict(fields)[b"proxy-status"]


def test_a_client_that_reads_json_gets_json() -> None:
    """INS-7: npm sends JSON and shows `error`, cargo asks for it and shows `errors`."""
    asked = [(b"content-type", b"application/json")]
    fields, body = refusal(Reason.METHOD_NOT_ALLOWED, LINE, asked, method="PUT", room=65535)
    assert dict(fields)[b"content-type"] == b"application/json"
    told = json.loads(body)
    assert told == {"error": LINE, "reason": "method-not-allowed", "errors": [{"detail": LINE}]}


@pytest.mark.parametrize(
    ("reason", "status"),
    [(Reason.METHOD_NOT_ALLOWED, b"7"), (Reason.UPSTREAM_CLOSED, b"14"), (Reason.MISDIRECTED, b"2")],
)
def test_grpc_is_told_in_its_trailers(reason: Reason, status: bytes) -> None:
    """INS-3: 200 with grpc-status and a message that is percent-encoded, and no body."""
    fields, body = refusal(reason, LINE, GRPC, method="POST", room=65535)
    assert body == b""
    assert dict(fields)[b":status"] == b"200"
    assert dict(fields)[b"grpc-status"] == status
    assert dict(fields)[b"grpc-message"] == b"a.test:443: why 100%25 not"


def test_without_room_the_status_is_told_alone() -> None:
    """GAT-7: a client whose windows are closed, and HEAD, get no body; HEAD is told the length it would have."""
    fields, body = refusal(Reason.METHOD_NOT_ALLOWED, LINE, [], method="PUT", room=3)
    assert (body, b"content-length" in dict(fields)) == (b"", False)
    fields, body = refusal(Reason.METHOD_NOT_ALLOWED, LINE, [], method="HEAD", room=65535)
    assert (body, dict(fields)[b"content-length"]) == (b"", str(len(LINE) + 1).encode())
