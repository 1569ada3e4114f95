"""Places of requests and answers that a secret could pass through unseen, over real TLS, row by row (INS-5)."""

from __future__ import annotations

import base64
import gzip
import html
import json
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.certificates import Made
from tests.coded import coded
from tests.unit.gate.inside import Inside, answer, get, inside, read_all
from tests.unit.gate.peer import Peer, playing
from tests.unit.gate.test_inner_streams import GET, site, talk
from tests.unit.gate.test_secrets_inside import BEARER, NONE, STANDS, TOKEN, VALUE, secret
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.reason import Reason
from tidegate.wire.body import ChunkedBody
from tidegate.wire.headers import websocket_accept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tests.h2_site import H2Site
    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside", "site", "talk"]

STOOD, REAL = STANDS.decode(), VALUE.decode()
FIELD = ("authorization", f"Bearer {STOOD}")


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])


# What is asked.


@pytest.mark.parametrize("method", [STOOD, STOOD.lower(), f"X{STOOD}"])
def test_as_a_method_it_is_refused(lab: Lab, inside: Start, method: str) -> None:
    """INS-5, B124: of the head, too: 403 that names the secret, and the origin hears nothing; in clear text as well."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    plain = lab.origin("echo", "1.2.3.5", 80)
    gate = inside("a.test:443", "b.test:80", limit=NONE, secrets=TOKEN)
    assert b"the secret TOKEN" in gate.ask("a.test:443", get("a.test", method=method))
    got = gate.gate.raw(f"{method} http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 403 ")
    assert [event.reason for event in gate.gate.events(2)] == [Reason.SECRET_MISDIRECTED] * 2
    assert (origin.requests, plain.requests) == (0, 0)


PSEUDO = {
    "method": ([(":method", STOOD), *GET[1:]], "403"),
    "scheme": ([GET[0], (":scheme", STOOD), *GET[2:]], "400"),
    "authority": ([*GET[:2], (":authority", f"{STOOD.replace('_', '-')}.a.test"), GET[3]], "421"),
    "user": ([*GET[:2], (":authority", f"{STOOD}@a.test"), GET[3]], "421"),
    "path": ([*GET[:3], (":path", f"/{STOOD}")], "403"),
    "path-in-base64": ([*GET[:3], (":path", f"/{base64.b64encode(STANDS).decode()}")], "403"),
    "cookie-crumb": ([*GET, ("cookie", "a=b"), ("cookie", f"t={STOOD}"), ("cookie", "c=d")], "403"),
    "te": ([*GET, ("te", STOOD)], "400"),
    "name": ([*GET, (STOOD.lower(), "x")], "403"),
}


@pytest.mark.parametrize("kind", PSEUDO)
def test_no_field_of_http2_carries_it_past(talk: Any, site: tuple[H2Site, str], kind: str) -> None:
    """INS-4, INS-5: pseudo-fields, crumbs of cookies, names: refused, and the site hears nothing."""
    client, _ = talk(secrets=TOKEN, limit=NONE)
    fields, status = PSEUDO[kind]
    head, _, _, _ = client.answer(client.ask(fields))
    assert head.get(":status", "400") == status
    assert site[0].requests == []


def test_each_crumb_of_a_cookie_is_swapped_where_that_is_its_place(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-5, RFC 9113 section 8.2.3: one field in HTTP/1, several here."""
    client, _ = talk(secrets=secret(Place(Where.HEADER, b"cookie")), limit=NONE)
    crumbs = [("cookie", "a=b"), ("cookie", f"s={STOOD}"), ("cookie", f"t={STOOD}")]
    _, body, _, _ = client.answer(client.ask([*GET, *crumbs]))
    assert [value for name, value in site[0].requests[0] if name == "cookie"] == [f"a=b; s={REAL}; t={REAL}"]
    assert VALUE not in body


def test_in_trailers_and_extensions_of_a_request_it_is_worth_nothing(lab: Lab, inside: Start) -> None:
    """INS-5: as in a body: trailers pass as they are, unswapped; what stands behind a chunk's size does not travel."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=(*TOKEN, *secret(Place(Where.HEADER, b"x-key"))))
    request = get("a.test", "/", "Transfer-Encoding: chunked", "Trailer: X-Key", method="POST")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(request + f"2;x={STOOD}\r\nhi\r\n0\r\nX-Key: {STOOD}\r\n\r\n".encode())
        got = answer(sock)
    assert got[0].startswith(b"HTTP/1.1 200 ")
    assert origin.received.endswith(f"\r\n\r\n2\r\nhi\r\n0\r\nX-Key: {STOOD}\r\n\r\n".encode())
    assert VALUE not in origin.received


def test_in_trailers_of_http2_it_is_worth_nothing(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-5: likewise."""
    client, _ = talk(secrets=secret(Place(Where.HEADER, b"x-key")), limit=NONE)
    number = client.conn.get_next_available_stream_id()
    client.conn.send_headers(number, [(":method", "POST"), *GET[1:]])
    client.conn.send_data(number, b"hi")
    client.conn.send_headers(number, [("x-key", STOOD)], end_stream=True)
    client.flush()
    assert client.answer(number)[0][":status"] == "200"
    assert not any(VALUE in value.encode() for _, value in site[0].requests[0])


def test_what_a_websocket_carries_is_nobodys_business(lab: Lab, inside: Start) -> None:
    """INS-5: beside the secret's host one opens; what is in its frames passes both ways as it is, unswapped."""
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    accept = websocket_accept(key.encode()).decode()
    switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    switch += f"Sec-WebSocket-Accept: {accept}\r\n\r\n"
    origin = lab.origin(
        "script", "1.2.3.5", 443, tls="b.test", steps=[["head"], ["send", f"{switch}\x81\x18{REAL}"], ["drain"]]
    )
    gate = inside("b.test:443", secrets=TOKEN)
    offer = ("Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
    with gate.tunnel("b.test:443") as sock:
        sock.sendall(get("b.test", "/", *offer) + b"\x81\x98\0\0\0\0" + STANDS)
        got = read_all_of(sock, VALUE)
    assert got.endswith(b"\x81\x18" + VALUE)  # which it never had from us
    gate.gate.idle()
    assert origin.received.endswith(STANDS)
    assert VALUE not in origin.received
    with gate.tunnel("b.test:443") as sock:
        sock.sendall(get("b.test", "/", *offer, f"Sec-WebSocket-Protocol: {STOOD}"))
        assert read_all(sock).startswith(b"HTTP/1.1 403 ")


def read_all_of(sock: Any, last: bytes) -> bytes:
    """Read until this has come."""
    got = b""
    while last not in got and (data := sock.recv(65536)):
        got += data
    return got


# What is answered.

ROOT: list[Made] = []


def chain() -> str:
    """What a.test shows; ROOT signs it."""
    if not ROOT:
        ROOT.append(Made("root", ca=True))
    return ROOT[0].issue("", names=["a.test"]).chain()


class Told:
    """What a client got of an answer that a host of a secret gave in these pieces, each a record of its own."""

    def __init__(
        self, lab: Lab, inside: Start, folder: Path, *pieces: bytes, how: str = "GET", secrets: Any = TOKEN
    ) -> None:
        def script(peer: Peer) -> None:
            peer.read()
            peer.sock.sendall(peer.gathered(*pieces, then=peer.finish))
            peer.sock.recv(1)

        with playing(lab, folder, chain(), script):
            gate = inside("a.test:443", limit=NONE, secrets=secrets, roots=ROOT[0].pem)
            lines = (BEARER, "Accept-Encoding: gzip, br, zstd, deflate", "Connection: close")
            self.all = gate.ask("a.test:443", get("a.test", "/", *lines, method=how))
        self.head, _, self.body = self.all.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in self.head.lower():
            reader = ChunkedBody(decode=True)
            self.body = b"".join(reader.feed(self.body)[1])
        self.event = gate.gate.event()


@pytest.fixture
def told(lab: Lab, inside: Start, tmp_path: Path) -> Callable[..., Told]:
    """Let a.test answer so."""
    return lambda *pieces, **how: Told(lab, inside, tmp_path, *pieces, **how)


def sized(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    """An answer with a length."""
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(body)}", "", "")).encode() + body


LINES = {
    "refresh": "Refresh: 0; url=https://c.test/?t={}",
    "link": "Link: <https://c.test/{}>; rel=preload",
    "content-location": "Content-Location: /{}",
    "disposition": 'Content-Disposition: attachment; filename="{}"',
    "authenticate": 'WWW-Authenticate: Bearer realm="{}"',
    "authentication-info": "Authentication-Info: nextnonce={}",
    "server-timing": "Server-Timing: a;desc={}",
    "report-to": 'Report-To: {{"url":"https://c.test/{}"}}',
    "csp": "Content-Security-Policy: report-uri https://c.test/{}",
    "etag": 'ETag: "{}"',
    "warning": '''Warning: 199 - "{}"''',
    "unknown": "X-{0}: {0}",
    "vary": "Vary: {}",
    "connection": "Connection: {}",
    "trailer": "Trailer: {}",
    "content-type": "Content-Type: text/plain; charset={}",
}


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("status", ["200 OK", "304 Not Modified", "103 Early Hints", "204 No Content"])
def test_no_field_of_an_answer_tells_it(told: Callable[..., Told], kind: str, status: str) -> None:
    """B118: whatever the field and the status, interim ones too."""
    line = LINES[kind].format(REAL)
    body = b"" if status[:1] != "2" or status[:3] == "204" else b"hi"
    said = (
        f"HTTP/1.1 {status}\r\n{line}\r\n\r\n".encode() + sized(b"hi")
        if status[:1] == "1"
        else sized(body, line, status=status)
    )
    got = told(said).all
    assert got.startswith(f"HTTP/1.1 {status[:3]} ".encode())
    assert VALUE not in got
    assert STANDS in got or kind in {"connection", "trailer"}


def test_a_boundary_that_repeats_it_stays_one(told: Callable[..., Told]) -> None:
    """B118: in the head and in the body it is the same text afterwards, so its parts are still parts."""
    body = f"--{REAL}\r\nContent-Type: text/plain\r\n\r\nhi\r\n--{REAL}--\r\n".encode()
    got = told(sized(body, f"Content-Type: multipart/mixed; boundary={REAL}"))
    assert f"boundary={STOOD}".encode() in got.head
    assert got.body == body.replace(VALUE, STANDS)


ODD_VALUE, ODD_STANDS = b"gh+_R/al=eal&\"al<0001>'x", b"gh+_F/ke=ake&\"ke<0002>'y"
FORMS: dict[str, Callable[[bytes], bytes]] = {
    "as-it-is": bytes,
    "percent": lambda text: quote(text, safe="").encode(),
    "percent-lower": lambda text: quote(text, safe="").encode().replace(b"%3C", b"%3c").replace(b"%2B", b"%2b").replace(
        b"%2F", b"%2f").replace(b"%3D", b"%3d").replace(b"%3E", b"%3e"),
    "json": lambda text: json.dumps(text.decode()).encode()[1:-1],
    "json-in-json": lambda text: json.dumps(json.dumps(text.decode())).encode()[3:-3],
    "html": lambda text: html.escape(text.decode()).encode(),
    "hex": lambda text: text.hex().encode(),
    "base64": base64.b64encode,
    "base64-url": base64.urlsafe_b64encode,
    "utf-16": lambda text: text.decode().encode("utf-16-le"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_echoes_in_each_form_and_size(told: Callable[..., Told], form: str, size: int) -> None:
    """B118: in records and chunks of one byte each as well as at once."""
    secrets = (Secret("TOKEN", (("a.test", 443),), Place(Where.HEADER, b"x-none"), ODD_VALUE, ODD_STANDS), *TOKEN)
    write = FORMS[form]
    text = b"<<" + write(ODD_VALUE) + b">> " + write(VALUE) + b" end"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    got = told(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n", secrets=secrets)
    assert len(got.body) == len(text)
    for value in (ODD_VALUE, VALUE):
        assert write(value)[3:-3] not in got.body
    if not form.startswith("base64"):  # where the edges of it share bits with what is beside it
        assert got.body == b"<<" + write(ODD_STANDS) + b">> " + write(STANDS) + b" end"


def _wide(text: bytes) -> bytes:
    """A gzip of several members, the value over the border of two, an empty one between them."""
    half = len(VALUE) // 2
    return gzip.compress(b"x" + text[:half]) + gzip.compress(b"") + gzip.compress(text[half:] + b"y")


PLAIN = b"before " + VALUE + b" after"
CODED: dict[str, tuple[str, Callable[[], bytes], bool]] = {
    "members": ("gzip", lambda: _wide(VALUE), True),
    "upper-case": ("GZIP", lambda: gzip.compress(PLAIN), True),
    "old-name": ("x-gzip", lambda: gzip.compress(PLAIN), True),
    "identity-first": ("identity, gzip", lambda: gzip.compress(PLAIN), True),
    "identity-alone": ("identity", lambda: PLAIN, True),
    "gzip-br": ("gzip, br", lambda: coded(PLAIN, "gzip", "br"), True),
    "br-zstd-gzip": ("br, zstd, gzip", lambda: coded(PLAIN, "br", "zstd", "gzip"), True),
    "behind-a-window": ("gzip", lambda: gzip.compress(bytes(32_768 - 5) + PLAIN), True),
    "behind-a-wide-window": ("br", lambda: coded(bytes((1 << 20) - 9) + PLAIN, "br"), True),
    "zstd-behind-a-block": ("zstd", lambda: coded(bytes((1 << 17) - 11) + PLAIN, "zstd"), True),
    "raw-deflate": ("deflate", lambda: coded(PLAIN, "raw-deflate"), True),
    "empty-members-of-a-list": (", gzip ,", lambda: gzip.compress(PLAIN), True),
    "lie-plain": ("gzip", lambda: PLAIN, False),
    "lie-other": ("br", lambda: gzip.compress(PLAIN), False),
    "once-more-than-it-says": ("gzip, gzip", lambda: gzip.compress(PLAIN), False),
    "cut": ("gzip", lambda: gzip.compress(PLAIN)[:-9], False),
    "wrong-sum": ("gzip", lambda: gzip.compress(PLAIN)[:-8] + bytes(8), False),
    "plain-behind-it": ("gzip", lambda: gzip.compress(b"x") + PLAIN, False),
    "unknown": ("rot13", lambda: PLAIN, False),
    "parameter": ("gzip;q=1", lambda: gzip.compress(PLAIN), False),
    "quoted": ('"gzip"', lambda: gzip.compress(PLAIN), False),
    "four-in-a-row": ("gzip, gzip, gzip, gzip", lambda: coded(PLAIN, *["gzip"] * 4), False),
}


@pytest.mark.parametrize("kind", CODED)
@pytest.mark.parametrize("fields", ["one", "two"])
def test_codings_of_an_answer(told: Callable[..., Told], kind: str, fields: str) -> None:
    """INS-5, B118, issue 6: read and clean, or refused; what is not as it says is never passed on unread."""
    named, make, reads = CODED[kind]
    body = make()
    lines = [f"Content-Encoding: {one}" for one in ([named] if fields == "one" else named.split(","))]
    got = told(sized(body, *lines))
    assert VALUE not in got.all
    assert VALUE[:12] not in got.all
    if reads:
        assert got.head.startswith(b"HTTP/1.1 200 "), got.all
        assert STANDS in got.body
        assert b"content-encoding: gzip" not in got.head.lower()
    else:
        assert got.all.startswith(b"HTTP/1.1 502 ") or not got.all.endswith(b"0\r\n\r\n")
        assert got.event.reason is Reason.UPSTREAM_RESPONSE


PARTS = {
    "206": (sized(VALUE[:9], "Content-Range: bytes 0-8/24", status="206 Partial Content"), b"502"),
    "206-no-range": (sized(VALUE[:9], status="206 Partial Content"), b"502"),
    "206-parts": (
        sized(VALUE[:9], "Content-Type: multipart/byteranges; boundary=x", status="206 Partial Content"),
        b"502",
    ),
    "200-with-a-range": (sized(VALUE[:9], "Content-Range: bytes 0-8/24"), b"502"),
    "226": (sized(VALUE[:9], "IM: feed", status="226 IM Used"), b"502"),
    "416": (sized(VALUE, "Content-Range: bytes */24", status="416 Range Not Satisfiable"), b"416"),
    "items": (sized(VALUE, "Content-Range: 0-0/1", status="206 Partial Content"), b"206"),
}


@pytest.mark.parametrize("kind", PARTS)
def test_parts_of_an_answer(told: Callable[..., Told], kind: str) -> None:
    """INS-5, B118: half a value is none that anybody recognises; rows of a table and a refusal pass, clean."""
    said, status = PARTS[kind]
    got = told(said)
    assert got.all[9:12] == status
    assert VALUE[:9] not in got.all.replace(STANDS, b"")
    assert (STANDS in got.body) == (status != b"502")


def test_a_transfer_coding_is_none_of_an_answers(told: Callable[..., Told]) -> None:
    """GAT-4, B118: compressed on the way, which nobody asked for: 502."""
    packed = gzip.compress(PLAIN)
    for coding in ("gzip, chunked", "gzip"):
        head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
        got = told(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(packed), packed))
        assert got.all.startswith(b"HTTP/1.1 502 ")


def test_an_archive_is_not_opened(told: Callable[..., Told]) -> None:
    """The limit that the docs name: what is compressed as a file, without a coding, passes as it is."""
    packed = zlib.compress(PLAIN)
    assert told(sized(packed, "Content-Type: application/zlib")).body == packed


def test_an_extension_of_a_chunk_tells_nothing(told: Callable[..., Told]) -> None:
    """B118: chunks are made anew."""
    body = f"2;x={REAL}\r\nhi\r\n0;y={REAL}\r\nX: {REAL}\r\n\r\n".encode()
    got = told(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert got.body == b"hi"
    assert VALUE not in got.all
