"""Calls to a model service at the gate: looked at whole before any of them is sent, in HTTP/1.1 and HTTP/2 (INS-8)."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trustme

from tests.coded import coded
from tests.h2_site import H2Site
from tests.unit.gate.inside import Inside, answer, get, inside, read_all
from tests.unit.gate.kit import read_head, read_until, wait
from tidegate.gate import inner_guard
from tidegate.inspect.model_watch import Guard
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits
from tidegate.model.verdict import How
from tidegate.policy.index import RuleIndex
from tidegate.policy.rows import LIMITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]

API = "api.anthropic.com"
WHERE = f"{API}:443"
GOOD = b'{"model":"x","messages":[{"role":"user","content":"please use web_search and mcp_servers"}]}'
BAD = b'{"model":"x","messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}'
JSON = "Content-Type: application/json"


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set(API, A=["1.2.3.4"])


@pytest.fixture
def guarded(inside: Start) -> Start:
    """Gates that read the model API and look at what is asked there."""

    def start(**options: Any) -> Inside:
        gate = inside(WHERE, **options)
        gate.contexts.guard = Guard([(API, 443)])
        policy = gate.gate.task.policy
        rows = tuple((*row[:LIMITS], None, *row[LIMITS + 1 :]) for row in policy.index.rows)  # as a harness's are
        gate.gate.task.change(policy=policy.replace(index=RuleIndex(rows), guarded=((API, 443),)))
        return gate

    return start


def post(body: bytes, *lines: str, path: str = "/v1/messages?beta=true") -> bytes:
    """A call as an agent makes it."""
    return get(API, path, JSON, f"Content-Length: {len(body)}", *lines, method="POST") + body


def chunked(body: bytes, size: int, *lines: str) -> bytes:
    """The same in chunks of so many bytes."""
    head = get(API, "/v1/messages", JSON, "Transfer-Encoding: chunked", *lines, method="POST")
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return head + b"".join(b"%x;a=b\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\nX-T: y\r\n\r\n"


def test_calls_on_one_connection_are_looked_at_one_by_one(lab: Lab, guarded: Start) -> None:
    """INS-8: texts may say what they like; the call that has the service search is 403 in the service's own words."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    with gate.tunnel(WHERE) as sock:
        for _ in range(2):
            sock.sendall(post(GOOD))
            head, body = answer(sock)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert GOOD in body
        sock.sendall(post(BAD, path="/v1/messages?beta=true"))
        refusal = read_all(sock)
    head, _, said = refusal.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"\r\nContent-Type: application/json\r\n" in head
    assert b'details="model-guard"' in head
    error = json.loads(said)
    assert (error["type"], error["error"]["type"]) == ("error", "permission_error")
    assert "[model-guard; rule 'api.anthropic.com:443'" in error["error"]["message"]
    assert "a tool of the type 'web_search_20250305', which the service carries out" in error["error"]["message"]
    assert origin.requests == 2
    events = gate.gate.events(3)
    assert [event.how for event in events] == [How.INSPECTED, How.INSPECTED, How.REFUSED]
    refused = events[2]
    assert (refused.reason, refused.status, refused.path) == (Reason.MODEL_GUARD, 403, "/v1/messages")
    assert [event.path for event in events[:2]] == ["", ""]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("body", [GOOD, BAD])
def test_a_body_in_chunks(lab: Lab, guarded: Start, size: int, body: bytes) -> None:
    """INS-8: wherever the borders lie; it goes on with a length, and without trailers."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    with gate.tunnel(WHERE) as sock:
        sock.sendall(chunked(body, size))
        got = read_all(sock) if body is BAD else b"".join(answer(sock))
    assert got.startswith(b"HTTP/1.1 200 " if body is GOOD else b"HTTP/1.1 403 ")
    assert origin.requests == int(body is GOOD)
    if body is GOOD:
        assert body in got
        assert b"\r\nContent-Length: %d\r\n" % len(body) in origin.heads[0]
        assert b"chunked" not in origin.heads[0]


def test_byte_by_byte(lab: Lab, guarded: Start) -> None:
    """INS-8: the destination hears nothing before the last byte."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    data = post(GOOD)
    with gate.tunnel(WHERE) as sock:
        for at in range(len(data) - 1):
            sock.sendall(data[at : at + 1])
        assert origin.requests == 0
        sock.sendall(data[-1:])
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
    assert origin.requests == 1


@pytest.mark.parametrize("coding", ["gzip", "zstd", "ZSTD", "br"])
def test_a_coded_body_goes_on_plain(lab: Lab, guarded: Start, coding: str) -> None:
    """INS-8: what was looked at is what is sent, so no two decoders differ."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    with gate.tunnel(WHERE) as sock:
        sock.sendall(post(coded(GOOD, coding.lower()), f"Content-Encoding: {coding}"))
        assert GOOD in answer(sock)[1]
        assert b"ncoding" not in origin.heads[0]
        sock.sendall(post(coded(BAD, coding.lower()), f"Content-Encoding: {coding}"))
        assert read_all(sock).startswith(b"HTTP/1.1 403 ")
    assert origin.requests == 1


ATTACKS = {
    "escaped": b'{"model":"x","\\u0074ools":[{"type":"web_\\u0073earch_20250305"}]}',
    "twice": b'{"tools":[],"tools":[{"type":"web_search_20250305"}]}',
    "twice escaped": b'{"tools":[],"t\\u006fols":[{"type":"web_search_20250305"}]}',
    "other case": b'{"Tools":[{"TYPE":"web_search_20250305"}]}',
    "deep": b'{"messages":[{"content":[{"content":[{"source":{"type":"url","url":"https://x"}}]}]}]}',
    "mark": b"\xef\xbb\xbf" + GOOD,
    "utf-16": GOOD.decode().encode("utf-16"),
    "utf-32": GOOD.decode().encode("utf-32"),
    "latin-1": b'{"model":"\xe9"}',
    "trailing": GOOD + b"{}",
    "two lines": GOOD + b"\n" + BAD,
    "list": b"[" + BAD + b"]",
    "not JSON": b"tools=web_search_20250305",
    "empty": b"",
    "nested": b'{"a":' * 200 + b"1" + b"}" * 200,
    "huge number": b'{"a":1' + b"0" * 500 + b"}",
    "NaN": b'{"a":NaN}',
    "comment": b'{"a":1/*,"tools":[]*/}',
    "surrogate": b'{"a":"\\ud800"}',
    "NUL": b'{"a":"\x00"}',
    "form": b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n" + GOOD + b"\r\n--x--\r\n",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_body_that_another_reader_could_take_for_more(lab: Lab, guarded: Start, name: str) -> None:
    """INS-8: 403, and the destination hears nothing of it."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    got = gate.ask(WHERE, post(ATTACKS[name]))
    assert got.startswith(b"HTTP/1.1 403 "), got
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["message"].startswith("tidegate: api.anthropic.com:443: ")
    assert origin.requests == 0


HEADS = {
    "upload": post(GOOD, path="/v1/files"),
    "batch": post(GOOD, path="/v1/messages/batches"),
    "dots": post(GOOD, path="/v1/messages/../files"),
    "encoded dots": post(GOOD, path="/v1/messages/%2e%2e/files"),
    "encoded slash": post(GOOD, path="/v1%2Fmessages"),
    "double slash": post(GOOD, path="//v1/messages"),
    "parameters": post(GOOD, path="/v1/messages;/../files"),
    "query": post(GOOD, path="/v1/messages?beta=true&redirect=https://x"),
    "override": post(GOOD, "X-HTTP-Method-Override: PUT"),
    "override with a line": post(GOOD, "X_HTTP_Method_Override: PUT"),
    "rewrite": post(GOOD, "X-Original-URL: /v1/files"),
    "text": get(API, "/v1/messages", "Content-Type: text/plain", "Content-Length: 2", method="POST") + b"{}",
    "form": get(
        API, "/v1/messages", "Content-Type: multipart/form-data; boundary=x", "Content-Length: 2", method="POST"
    )
    + b"{}",
    "no kind": get(API, "/v1/messages", "Content-Length: 2", method="POST") + b"{}",
    "two kinds": post(GOOD, "Content-Type: text/plain"),
    "other coding": post(GOOD, "Content-Encoding: compress"),
    "two codings": post(GOOD, "Content-Encoding: gzip, identity"),
    "GET with a body": get(API, "/v1/models", "Content-Length: 2") + b"{}",
    "another method": get(API, "/v1/messages", JSON, "Content-Length: 2", method="PUT") + b"{}",
    "no body": get(API, "/v1/messages", JSON, "Content-Length: 0", method="POST"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_call_that_no_agent_makes(lab: Lab, guarded: Start, name: str) -> None:
    """INS-8, B34: other paths and spellings of paths, other kinds of bodies, heads that say two things."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    got = gate.ask(WHERE, HEADS[name])
    assert got.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 ")), got
    assert origin.requests == 0
    assert gate.gate.event().reason in {Reason.MODEL_GUARD, Reason.BAD_REQUEST}


def test_a_websocket_is_told_to_use_http(lab: Lab, guarded: Start) -> None:
    """INS-8: 426, on which Codex goes on over HTTP at once."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    offer = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: x" + "A" * 22,
    )
    got = gate.ask(WHERE, get(API, "/v1/messages", *offer))
    assert got.startswith(b"HTTP/1.1 426 Upgrade Required\r\n")
    assert b"\r\nUpgrade: HTTP/1.1\r\n" in got
    assert (origin.requests, gate.gate.event().reason) == (0, Reason.MODEL_SOCKET)


def test_what_is_too_large_is_not_held(lab: Lab, guarded: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-8: 413 in the service's words, as soon as it is too much; the neighbour passes, and room comes back."""
    monkeypatch.setattr("tidegate.inspect.model_watch.MOST", 1 << 20)
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    guard = gate.contexts.guard
    assert isinstance(guard, Guard)
    left = guard.left
    fits = GOOD[:-1] + b',"x":"' + b"a" * ((1 << 20) - len(GOOD) - 7) + b'"}'
    with gate.tunnel(WHERE) as sock:
        sock.sendall(post(fits))
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
        sock.sendall(post(fits + b" " * 10))
        refusal = read_all(sock)
    assert refusal.startswith(b"HTTP/1.1 413 Content Too Large\r\n")
    assert json.loads(refusal.partition(b"\r\n\r\n")[2])["error"]["type"] == "request_too_large"
    assert origin.requests == 1
    assert gate.gate.events(2)[1].reason is Reason.MODEL_BODY
    assert guard.left == left


def test_a_client_that_goes_away_gives_its_room_back(lab: Lab, guarded: Start) -> None:
    """INS-8: in the middle of a body."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    guard = gate.contexts.guard
    assert isinstance(guard, Guard)
    left = guard.left
    with gate.tunnel(WHERE) as sock:
        sock.sendall(post(GOOD)[:-5])
    assert gate.gate.event().reason is Reason.CLIENT_GONE
    assert (origin.requests, guard.left) == (0, left)


def test_a_body_that_stops_coming_ends(lab: Lab, guarded: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-8: nobody holds room by saying nothing."""
    monkeypatch.setattr(inner_guard, "SILENT", 0.3)
    lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    with gate.tunnel(WHERE) as sock:
        sock.sendall(post(GOOD)[:-5])
        assert read_all(sock) == b""
    assert gate.gate.event().reason is Reason.HEADER_TIMEOUT


def test_whoever_waits_for_100_gets_it(lab: Lab, guarded: Start) -> None:
    """INS-8: from us, since the destination has heard nothing."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    data = post(GOOD, "Expect: 100-continue")
    with gate.tunnel(WHERE) as sock:
        sock.sendall(data[: -len(GOOD)])
        assert read_head(sock).startswith(b"HTTP/1.1 100 ")
        assert origin.requests == 0
        sock.sendall(GOOD)
        assert GOOD in answer(sock)[1]
    assert b"xpect" not in origin.heads[0]


def test_what_has_no_body_passes(lab: Lab, guarded: Start) -> None:
    """INS-8: models are listed, and telemetry is passed on as it is."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    gate = guarded()
    with gate.tunnel(WHERE) as sock:
        sock.sendall(get(API, "/v1/models?limit=1000"))
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
        sock.sendall(post(b"anything", path="/api/event_logging/batch"))
        assert answer(sock)[1].endswith(b"anything")
    assert origin.requests == 2


def test_events_come_as_they_are_sent(lab: Lab, guarded: Start) -> None:
    """INS-8, B55: a streaming answer is not held back: its first event is there long before its last is sent."""
    lab.origin("stream", "1.2.3.4", 443, tls=API, interval=600)
    gate = guarded()
    with gate.tunnel(WHERE) as sock:
        sock.sendall(post(GOOD))
        got = read_until(sock, b"data: 0")
        assert b"text/event-stream" in got
        assert b"data: 1" not in got


def test_the_key_is_swapped_where_the_call_is_looked_at(lab: Lab, guarded: Start) -> None:
    """INS-5, INS-8: both at once; a stand-in in the wrong header is refused, and neither is in the other's way."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls=API)
    value, stands = b"sk-ant-api03-RealRealReal0001", b"sk-ant-api03-FakeFakeFake0002"
    key = Secret("ANTHROPIC_API_KEY", ((API, 443),), Place(Where.HEADER, b"x-api-key"), value, stands)
    gate = guarded(limit=RuleLimits(), secrets=(key,))
    with gate.tunnel(WHERE) as sock:
        sock.sendall(post(GOOD, f"x-api-key: {stands.decode()}"))
        body = answer(sock)[1]
        assert stands in body
        assert value not in body
        assert b"x-api-key: " + value in origin.heads[0]
        assert GOOD in body
        sock.sendall(post(BAD, f"x-api-key: {stands.decode()}"))
        assert read_all(sock).startswith(b"HTTP/1.1 403 ")
    got = gate.ask(WHERE, post(GOOD, f"X-Other: {stands.decode()}"))
    assert b"secret-misdirected" in got
    assert origin.requests == 1


@pytest.fixture
def site(lab: Lab) -> Iterator[tuple[H2Site, str]]:
    """The service over HTTP/2, and the root of its certificate."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(API).configure_cert(context)
    with H2Site(lab.listener("1.2.3.4", 443), context) as made:
        yield made, authority.cert_pem.bytes().decode()


def over_h2(gate: Inside) -> httpx.Client:
    """A client of HTTP/2 behind the gate."""
    proxy = "http://{}:{}".format(*gate.gate.address)
    return httpx.Client(http2=True, verify=gate.context(), proxy=proxy, timeout=20, trust_env=False)


def test_over_http2(site: tuple[H2Site, str], guarded: Start) -> None:
    """INS-8, INS-3: streams are looked at like requests, and the others go on."""
    made, roots = site
    gate = guarded(roots=roots)
    with over_h2(gate) as client:
        url = f"https://{API}/v1/messages"
        for _ in range(2):
            good = client.post(f"{url}?beta=true", content=GOOD, headers={"content-type": "application/json"})
            assert (good.status_code, good.http_version) == (200, "HTTP/2")
        assert made.bodies == [GOOD, GOOD]
        bad = client.post(url, content=BAD, headers={"content-type": "application/json"})
        assert (bad.status_code, bad.headers["content-type"]) == (403, "application/json")
        assert "web_search_20250305" in bad.json()["error"]["message"]
        for path in ("/v1/files", "/v1/messages/%2e%2e/files", "/v1/messages/batches"):
            other = client.post(f"https://{API}{path}", content=GOOD, headers={"content-type": "application/json"})
            assert other.status_code == 403
        packed = client.post(
            url,
            content=coded(GOOD, "zstd"),
            headers={"content-type": "application/json", "content-encoding": "zstd"},
        )
        assert packed.status_code == 200
        assert client.get(f"https://{API}/v1/models").status_code == 200
        large = GOOD[:-1] + b',"x":"' + b"a" * 3_000_000 + b'"}'  # more than the windows of either side
        assert client.post(url, content=large, headers={"content-type": "application/json"}).status_code == 200
    assert made.bodies == [GOOD, GOOD, GOOD, b"", large]
    assert dict(made.requests[2]).get("content-encoding") is None
    assert made.connections == 1
    events = gate.gate.events(9)
    refused = [event for event in events if event.how is How.REFUSED]
    assert [event.path for event in refused] == [
        "/v1/messages", "/v1/files", "/v1/messages/%2e%2e/files", "/v1/messages/batches",
    ]  # fmt: skip
    assert {event.reason for event in refused} == {Reason.MODEL_GUARD}
    guard = gate.contexts.guard
    assert isinstance(guard, Guard)
    wait(lambda: guard.left == Guard([]).left)


@pytest.mark.parametrize("name", ATTACKS)
def test_over_http2_no_body_is_taken_for_another(site: tuple[H2Site, str], guarded: Start, name: str) -> None:
    """INS-8: the same table."""
    made, roots = site
    gate = guarded(roots=roots)
    with over_h2(gate) as client:
        got = client.post(
            f"https://{API}/v1/messages", content=ATTACKS[name], headers={"content-type": "application/json"}
        )
    assert got.status_code == 403
    assert made.requests == []
