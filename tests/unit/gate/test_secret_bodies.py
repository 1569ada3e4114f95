"""A secret in a field of a body, with real peers over both versions of HTTP (INS-5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.coded import coded
from tests.unit.gate.inside import Inside, answer, get, inside
from tests.unit.gate.kit import read_head
from tests.unit.gate.test_inner_streams import GET, site, talk
from tests.unit.gate.test_secrets_inside import NONE, STANDS, VALUE, secret
from tidegate.inspect.body_look import MOST
from tidegate.inspect.secrets import Place, Where
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.h2_site import H2Site
    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside", "site", "talk"]

KEY = secret(Place(Where.BODY, b"key"))
SENT = b'{"n": 1.50, "key": "' + STANDS + b'"}'
SEEN = SENT.replace(STANDS, VALUE)
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(autouse=True)
def _name(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


def post(body: bytes, *lines: str) -> bytes:
    """A request with a length."""
    return get("a.test", "/token", *lines, f"Content-Length: {len(body)}", method="POST") + body


@pytest.mark.parametrize(
    ("body", "lines", "seen"),
    [
        (SENT, (JSON,), SEEN),
        (b"a=1&key=" + STANDS, (FORM,), b"a=1&key=" + VALUE),
        (coded(SENT, "gzip"), (JSON, "Content-Encoding: gzip"), SEEN),
        (b"", (JSON,), b""),
        (STANDS, ("Content-Type: text/plain",), STANDS),
    ],
)
def test_the_origin_sees_the_value_with_the_right_length(
    lab: Lab, inside: Start, body: bytes, lines: tuple[str, ...], seen: bytes
) -> None:
    """INS-5, B118: twice on one connection; the echo has the stand-in again."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=KEY)
    with gate.tunnel("a.test:443") as sock:
        for _ in range(2):
            sock.sendall(post(body, *lines))
            head, echoed = answer(sock)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert VALUE not in echoed
    assert bytes(origin.received).count(seen) >= (2 if seen else 0)
    assert all(f"content-length: {len(seen)}\r\n".encode() in one.lower() for one in origin.heads)
    assert origin.requests == 2


def test_in_chunks_and_for_who_waits_to_be_asked(lab: Lab, inside: Start) -> None:
    """INS-5, B46: chunks become a length; 100 Continue comes from the gate, and the origin is not asked for it."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=KEY)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", JSON, "Transfer-Encoding: chunked", "Expect: 100-continue", method="POST"))
        assert read_head(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for at in range(0, len(SENT), 9):
            sock.sendall(b"%x\r\n%b\r\n" % (len(SENT[at : at + 9]), SENT[at : at + 9]))
        assert origin.requests == 0
        sock.sendall(b"0\r\n\r\n")
        assert SENT in answer(sock)[1]
    assert bytes(origin.received).endswith(SEEN)
    assert b"expect" not in origin.heads[0].lower()
    assert b"chunked" not in origin.heads[0].lower()


@pytest.mark.parametrize(
    ("body", "lines", "says"),
    [
        (b'{"other": "' + STANDS + b'"}', (JSON,), b"the secret TOKEN belongs in body-field key, and was sent in"),
        (b'{"key": "a", "key": "' + STANDS + b'"}', (JSON,), b"a key twice"),
        (b"--x\r\n\r\n" + STANDS, ("Content-Type: multipart/form-data; boundary=x",), b"in a multipart body"),
        (b'"' + bytes(MOST) + b'"', (JSON,), b"a body of more than 4 MiB is not read"),
        (SENT, (JSON, "X-Other: " + STANDS.decode()), b"belongs in body-field key, and was sent to a.test:443"),
    ],
    ids=range(5),
)
def test_what_may_not_be_sent_is_not(lab: Lab, inside: Start, body: bytes, lines: tuple[str, ...], says: bytes) -> None:
    """INS-5, GAT-7: 403 that names the secret, a line of the journal; the origin hears nothing."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=KEY)
    got = gate.ask("a.test:443", post(body, *lines))
    assert got.startswith(b"HTTP/1.1 403 ")
    assert says in got
    assert VALUE not in got
    assert gate.gate.event().reason is Reason.SECRET_MISDIRECTED
    assert origin.requests == 0


def test_over_http2_likewise(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-3, INS-5: swapped with its length, refused elsewhere, and other bodies pass on the same connection."""
    client, gate = talk(secrets=KEY, limit=NONE)
    fields = [(":method", "POST"), *GET[1:], ("content-type", "application/json")]
    head, body, _, _ = client.answer(client.ask([*fields, ("content-length", str(len(SENT)))], SENT))
    assert (head[":status"], SENT in body, VALUE in body) == ("200", True, False)
    assert site[0].bodies == [SEEN]
    assert dict(site[0].requests[0])["content-length"] == str(len(SEEN))
    head, body, _, _ = client.answer(client.ask(fields, b'{"x": "' + STANDS + b'"}'))
    assert (head[":status"], b"belongs in body-field key" in body) == ("403", True)
    assert json.loads(body)["error"]["message"].startswith("tidegate: ")
    large = bytes(300_000)
    head, _, _, _ = client.answer(upload(client, [*fields[:4], ("content-type", "application/x-tar")], large))
    assert (head[":status"], site[0].bodies[-1]) == ("200", large)
    assert len(site[0].requests) == 2
    assert gate.gate.events(2)[1].reason is Reason.SECRET_MISDIRECTED


def upload(client: Any, fields: list[tuple[str, str]], body: bytes) -> int:
    """Send what is larger than a window, as it opens."""
    number: int = client.conn.get_next_available_stream_id()
    client.conn.send_headers(number, fields)
    while body:
        room = min(client.conn.local_flow_control_window(number), 16384)
        if not room:
            client.until(lambda event: type(event).__name__ == "WindowUpdated")
            continue
        client.conn.send_data(number, body[:room], end_stream=len(body) <= room)
        body = body[room:]
        client.flush()
    return number
