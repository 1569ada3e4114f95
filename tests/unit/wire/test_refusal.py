"""Proves that a refusal is a response every client can read, and that it says what, why and what to do (GAT-7)."""

from __future__ import annotations

from json import loads

import h11
import pytest

from tidegate.model.decision import Decision
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.wire.errors import WireError
from tidegate.wire.framing import Framing, Kind, response_framing
from tidegate.wire.http1 import parse_response_head
from tidegate.wire.refusal import reads_json, refusal_response, refuse_decision, refuse_error


def refused(reason: Reason, fix: str = "--allow a.test:22") -> Decision:
    """Return a decision that refuses a.test:22."""
    where = parse_authority(b"a.test:22")
    return Decision(Verdict.DENY, where, Phase.RUNTIME, reason, None, "no-rule", "default", fix=fix)


def test_a_refusal_says_what_why_and_what_to_do() -> None:
    """Status, one line of text with host, port, rule and fix, Proxy-Status with the same, close (GAT-7, B41)."""
    assert refuse_decision(refused(Reason.PORT_NOT_ALLOWED)) == (
        b"HTTP/1.1 403 Forbidden\r\n"
        b"Content-Type: text/plain\r\n"
        b"Content-Length: 126\r\n"
        b'Proxy-Status: tidegate; error=http_request_denied; details="port-not-allowed"; fix="--allow a.test:22"\r\n'
        b"Connection: close\r\n"
        b"\r\n"
        b"a.test:22: a rule names this host, but with another port "
        b"[port-not-allowed; no-rule, default]; to allow it: --allow a.test:22\n"
    )


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("method", ["GET", "HEAD", "CONNECT"])
def test_every_reason_makes_a_whole_response(reason: Reason, method: str) -> None:
    """Strictly parsed it is one complete message that closes, with a length that is right; 405 says what is allowed."""
    data = refusal_response(reason, reason.sentence, body=method != "HEAD")
    head_bytes, _, content = data.partition(b"\r\n\r\n")
    head = parse_response_head(head_bytes + b"\r\n\r\n")
    assert head.status == (reason.status or 403)
    assert head.get(b"content-type") == b"text/plain"
    assert head.get(b"connection") == b"close"
    assert (head.get(b"allow") is not None) is (head.status == 405)
    length = int(head.get(b"content-length") or b"")
    assert content == (b"" if method == "HEAD" else reason.sentence.encode() + b"\n")
    if method != "HEAD":
        assert response_framing(head, method) == Framing(Kind.LENGTH, length)
        assert length == len(content)
    client = h11.Connection(h11.CLIENT)
    target = "a.test:443" if method == "CONNECT" else "/"
    client.send(h11.Request(method=method, target=target, headers=[("Host", "a.test")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    assert isinstance(client.next_event(), h11.Response)


@pytest.mark.parametrize(
    ("fields", "json"),
    [
        ([], False),
        ([(b"Accept", b"*/*")], False),
        ([(b"Accept", b"text/html, application/json;q=0.9")], False),
        ([(b"accept", b"application/json")], True),
        ([(b"Accept", b"application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*")], True),
        ([(b"Accept", b"*/*"), (b"Content-Type", b"Application/JSON;charset=utf-8")], True),
        ([(b"Content-Type", b"application/jsonx")], False),
        ([(b"X-Accept", b"application/json")], False),
    ],
)
def test_who_reads_json(fields: list[tuple[bytes, bytes]], json: bool) -> None:
    """INS-7: who sends JSON, or names it first; the others are told in text."""
    assert reads_json(fields) is json


def test_a_refusal_in_json_is_one_object_of_its_own_length() -> None:
    """INS-7, B07: what npm and cargo show is in it, and nothing in the line can break out."""
    data = refusal_response(Reason.METHOD_NOT_ALLOWED, 'a "quoted"\r\nline', json=True)
    head_bytes, _, content = data.partition(b"\r\n\r\n")
    head = parse_response_head(head_bytes + b"\r\n\r\n")
    assert head.get(b"content-type") == b"application/json"
    assert head.get(b"content-length") == str(len(content)).encode()
    line = 'a "quoted"??line'
    assert loads(content) == {"error": line, "reason": "method-not-allowed", "errors": [{"detail": line}]}


@pytest.mark.parametrize("reason", [Reason.METHOD_NOT_ALLOWED, Reason.REGISTRY_READ_ONLY, Reason.GIT_READ_ONLY])
def test_the_phrase_says_why_where_the_host_is_allowed(reason: Reason) -> None:
    """INS-6, INS-7: twine and Maven show nothing else; a host that is refused as a whole has the usual phrase."""
    first = f"HTTP/1.1 403 Forbidden by tidegate: {reason.sentence}\r\n".encode("ascii")
    assert refuse_decision(refused(reason)).startswith(first)
    assert refuse_decision(refused(Reason.NO_RULE)).startswith(b"HTTP/1.1 403 Forbidden\r\n")


def test_nothing_in_the_line_can_break_out() -> None:
    """Line ends, controls and non-ASCII become harmless, and the line is bounded (B07)."""
    data = refusal_response(Reason.BAD_HOST, "a\r\nX: y\x1b[2J\u202e\u2026" + "z" * 5000, fix='"\r\nX: y')
    head, _, content = data.partition(b"\r\n\r\n")
    assert b"\r\nX: y" not in head
    assert content.startswith(b"a??X: y?[2J?...zz")
    assert content.count(b"\n") == 1
    assert len(content) <= 2049
    assert data.isascii()


def test_an_error_is_told_with_its_detail() -> None:
    """A malformed request gets a clear line with the escaped host (GAT-1, B43)."""
    data = refuse_error(WireError(Reason.BAD_PORT, "the port 0443 has a leading zero", raw="a.test:0443"))
    assert data.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert data.endswith(
        b"\r\n\r\na.test:0443: the port is missing or malformed: the port 0443 has a leading zero [bad-port]\n"
    )
    assert refuse_error(WireError(Reason.BAD_PORT, "x"), body=False).endswith(b"\r\n\r\n")
